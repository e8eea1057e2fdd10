//! Kernels that save and restore tensors (white paper, section 3.3). Any of the formats of [`engine_core::checkpoint`] is read.

use std::collections::BTreeMap;

use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, KernelStates};
use engine_core::checkpoint::{
    Checkpoint, CheckpointError, Saved, SliceSpec, merge, saved_kernel, saved_kernels, write_shard,
};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static CHECKPOINT: &[KernelDef] = &[
    cpu_any("Save", |_| kernel(|c| save(c, 2))),
    cpu_any("SaveSlices", |_| kernel(|c| save(c, 3))),
    cpu_any("SaveV2", |_| kernel(|c| save(c, 3))),
    cpu_any("Restore", restore_one),
    cpu_any("RestoreSlice", restore_one),
    cpu_any("RestoreV2", restore_many),
    cpu_any("MergeV2Checkpoints", merge_shards),
    cpu_any("_SaveStates", save_states),
    cpu_any("_RestoreStates", restore_states),
    cpu_any("ShardedFilename", |_| cheap(sharded_filename)),
    cpu_any("ShardedFilespec", |_| cheap(sharded_filespec)),
];

/// Input `i`: one string.
pub(super) fn text(c: &KernelContext<'_>, i: usize) -> Result<String, KernelError> {
    match c.input(i)?.strings()? {
        [one] => String::from_utf8(one.clone()).map_err(|_| KernelError::invalid(format!("input {i} is not UTF-8"))),
        more => Err(KernelError::invalid(format!("input {i} must be one string, got {}", more.len()))),
    }
}

/// Input `i`: strings.
pub(super) fn texts(c: &KernelContext<'_>, i: usize) -> Result<Vec<String>, KernelError> {
    let not_utf8 = |_| KernelError::invalid(format!("input {i} is not UTF-8"));
    c.input(i)?.strings()?.iter().map(|s| String::from_utf8(s.clone()).map_err(not_utf8)).collect()
}

/// The parts that input `i` asks for, one for each of `n` tensors.
fn specs(c: &KernelContext<'_>, i: usize, n: usize) -> Result<Vec<Option<SliceSpec>>, KernelError> {
    let texts = texts(c, i)?;
    if texts.len() != n {
        return Err(KernelError::invalid(format!("{n} tensor names, but {} slices", texts.len())));
    }
    Ok(texts.iter().map(|t| SliceSpec::parse(t)).collect::<Result<_, _>>()?)
}

/// Inputs: prefix, names, perhaps slices, then (from `first` on) the tensors.
fn save(c: &mut KernelContext<'_>, first: usize) -> Computed {
    let (prefix, names) = (text(c, 0)?, texts(c, 1)?);
    let specs = if first == 3 { specs(c, 2, names.len())? } else { vec![None; names.len()] };
    let n = c.inputs.len() - first;
    if n != names.len() {
        return Err(KernelError::invalid(format!("{} names for {n} tensors", names.len())));
    }
    let mut saved: Vec<Saved> = Vec::with_capacity(n);
    for (i, (name, spec)) in names.into_iter().zip(specs).enumerate() {
        // A part that is everything is the tensor itself.
        let spec = spec.filter(|s| !s.slice.is_full(&s.shape));
        saved.push((name, spec, c.input(first + i)?.clone()));
    }
    Ok(write_shard(prefix, &saved, &BTreeMap::new())?)
}

fn read(of: &Checkpoint, name: &str, spec: Option<&SliceSpec>, dtype: DType) -> Result<Tensor, KernelError> {
    let info = of.info(name)?;
    let shape = spec.map_or(&info.shape, |s| &s.shape);
    if info.dtype != dtype || info.shape != *shape {
        return Err(KernelError::from(CheckpointError::Mismatch {
            path: of.prefix().to_owned(),
            name: name.into(),
            expected: format!("{dtype}{shape}").into(),
            got: format!("{}{}", info.dtype, info.shape).into(),
        }));
    }
    Ok(match spec {
        Some(spec) => of.read_slice(name, &spec.slice)?,
        None => of.read(name)?,
    })
}

/// A pattern of shards (`model-?????-of-00002`) means the checkpoint that they make up.
fn prefix_of(pattern: &str) -> &str {
    match pattern.find("-?????-of-").or_else(|| pattern.find("-*-of-")) {
        Some(at) => &pattern[..at],
        None => pattern,
    }
}

fn restore_one(node: &Node) -> Built {
    let dtype = *node.dtype("dt")?;
    kernel(move |c| {
        let (pattern, name) = (text(c, 0)?, text(c, 1)?);
        let spec = if c.inputs.len() > 2 { SliceSpec::parse(&text(c, 2)?)? } else { None };
        let value = read(&Checkpoint::open(prefix_of(&pattern))?, &name, spec.as_ref(), dtype)?;
        c.set(0, value);
        Ok(())
    })
}

fn restore_many(node: &Node) -> Built {
    let Some(Attr::ListType(dtypes)) = node.attrs.get("dtypes").cloned() else {
        return Err(KernelError::invalid("dtypes must be a list of types"));
    };
    kernel(move |c| {
        let (prefix, names) = (text(c, 0)?, texts(c, 1)?);
        let specs = specs(c, 2, names.len())?;
        if names.len() != dtypes.len() {
            return Err(KernelError::invalid(format!("{} names for {} tensors", names.len(), dtypes.len())));
        }
        let checkpoint = Checkpoint::open(prefix)?;
        for (i, (name, spec)) in names.iter().zip(&specs).enumerate() {
            let value = read(&checkpoint, name, spec.as_ref(), dtypes[i])?;
            c.set(i, value);
        }
        Ok(())
    })
}

fn merge_shards(node: &Node) -> Built {
    let delete = *node.flag("delete_old_dirs")?;
    kernel(move |c| {
        let (shards, destination) = (texts(c, 0)?, text(c, 1)?);
        merge(&shards, &destination)?;
        if delete {
            for shard in &shards {
                // Only where nothing else lies in it: that is all that deleting the folder of the parts is for.
                std::path::Path::new(shard).parent().map(std::fs::remove_dir);
            }
        }
        Ok(())
    })
}

/// The attribute `nodes`.
fn nodes_of(node: &Node) -> Result<Vec<String>, KernelError> {
    match node.attrs.get("nodes") {
        Some(Attr::ListStr(names)) => Ok(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()),
        _ => Err(KernelError::invalid("nodes must be a list of names")),
    }
}

fn save_states(node: &Node) -> Built {
    let nodes = nodes_of(node)?;
    kernel(move |c| {
        let prefix = text(c, 0)?;
        let states = c.functions.kernels().map(KernelStates::save).unwrap_or_default();
        let own = states.into_iter().filter(|(name, _)| nodes.iter().any(|node| **node == **name));
        let saved: Vec<Saved> = own.flat_map(|(name, fields)| saved_kernel(&name, fields)).collect();
        Ok(write_shard(prefix, &saved, &BTreeMap::new())?)
    })
}

fn restore_states(node: &Node) -> Built {
    let nodes = nodes_of(node)?;
    kernel(move |c| {
        let mut states = saved_kernels(&Checkpoint::open(text(c, 0)?)?)?;
        states.retain(|name, _| nodes.iter().any(|node| **node == **name));
        let Some(kernels) = c.functions.kernels() else {
            return Err(KernelError::invalid("there are no kernels to restore outside of a session"));
        };
        Ok(kernels.restore(states)?)
    })
}

fn shard_numbers(c: &KernelContext<'_>, first: usize, n: usize) -> Result<Vec<i32>, KernelError> {
    (first..first + n).map(|i| c.item::<i32>(i)).collect()
}

fn sharded_filename(c: &mut KernelContext<'_>) -> Computed {
    let (base, numbers) = (text(c, 0)?, shard_numbers(c, 1, 2)?);
    c.set(0, Tensor::string(format!("{base}-{:05}-of-{:05}", numbers[0], numbers[1])));
    Ok(())
}

fn sharded_filespec(c: &mut KernelContext<'_>) -> Computed {
    let (base, numbers) = (text(c, 0)?, shard_numbers(c, 1, 1)?);
    c.set(0, Tensor::string(format!("{base}-?????-of-{:05}", numbers[0])));
    Ok(())
}
