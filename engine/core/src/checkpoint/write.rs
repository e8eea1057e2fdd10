//! Writing: files that are whole or not there, and the index that makes shards a checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::files::{FORMAT, INDEX, SHARD, with_suffix};
use super::safetensors::{self, Entry, SafetensorsFile};
use super::{CheckpointError, SliceSpec};
use crate::tensor::Tensor;

/// A tensor to be saved: its name, the part of the whole tensor that it is, its value.
pub type Saved = (String, Option<SliceSpec>, Tensor);

/// Writes `content` to a file that appears under its name only once it is completely on the disk.
pub fn write_whole(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> Result<(), CheckpointError>,
) -> Result<(), CheckpointError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let io = |source| CheckpointError::io(path, source);
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(io)?;
    // In the same folder, so that renaming does not copy; unique, so that two writers do not meet.
    let temporary = with_suffix(path, &format!(".{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let written = (|| {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&temporary).map_err(io)?);
        content(&mut out)?;
        let file = out.into_inner().map_err(|e| io(e.into_error()))?;
        file.sync_all().map_err(io)?;
        fs::rename(&temporary, path).map_err(io)
    })();
    if written.is_err() {
        // The error is what counts; what is left behind is swept when a run restores.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder(folder)
}

/// The folder of a file; of a bare name, the working folder.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a folder survive a crash of the machine.
pub fn sync_folder(folder: &Path) -> Result<(), CheckpointError> {
    File::open(folder).and_then(|f| f.sync_all()).map_err(|e| CheckpointError::io(folder, e))
}

/// Writes `PREFIX.safetensors`: a whole checkpoint, or the shard of one task of a larger one ([`merge`]).
///
/// # Errors
/// The system refuses, a name is there twice, or a tensor is of a type that cannot be stored.
pub fn write_shard(
    prefix: impl AsRef<Path>,
    tensors: &[Saved],
    metadata: &BTreeMap<String, String>,
) -> Result<(), CheckpointError> {
    let path = with_suffix(prefix.as_ref(), SHARD);
    let mut metadata = metadata.clone();
    metadata.insert("format".into(), FORMAT.into());
    for (name, slice, value) in tensors {
        let fits = slice.as_ref().is_none_or(|spec| spec.slice.shape() == *value.shape());
        if !fits {
            let got = format!("the value has shape {}, its slice another", value.shape());
            return Err(CheckpointError::conflict(name, got));
        }
    }
    let entries: Vec<Entry<'_>> = tensors.iter().map(entry_of).collect();
    write_whole(&path, |out| safetensors::write(&path, out, &entries, &metadata))
}

fn entry_of((name, slice, value): &Saved) -> Entry<'_> {
    Entry { name, slice: slice.clone(), value }
}

/// Writes a bundle that TensorFlow reads: `PREFIX.data-00000-of-00001` and `PREFIX.index`.
///
/// # Errors
/// The system refuses, or a tensor is of a type that cannot be stored.
pub fn write_bundle(prefix: impl AsRef<Path>, tensors: &BTreeMap<String, Tensor>) -> Result<(), CheckpointError> {
    let (index, data) = super::bundle::write(tensors)?;
    for (suffix, bytes) in [(".data-00000-of-00001", data), (".index", index)] {
        let path = with_suffix(prefix.as_ref(), suffix);
        write_whole(&path, |out| out.write_all(&bytes).map_err(|e| CheckpointError::io(&path, e)))?;
    }
    Ok(())
}

/// Makes the shards that were written under `prefixes` the checkpoint `destination`: they are renamed, then the index
/// is written, with which the checkpoint is whole. One shard alone needs no index.
///
/// # Errors
/// A shard is not there or damaged, two have the same tensor, or the system refuses.
pub fn merge(prefixes: &[impl AsRef<Path>], destination: impl AsRef<Path>) -> Result<(), CheckpointError> {
    let destination = destination.as_ref();
    let folder = folder_of(destination);
    fs::create_dir_all(folder).map_err(|e| CheckpointError::io(folder, e))?;
    // A prefix may be named twice (TensorFlow's savers do, where tasks share one).
    let unique: BTreeSet<PathBuf> = prefixes.iter().map(|p| with_suffix(p.as_ref(), SHARD)).collect();
    let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(|e| CheckpointError::io(from, e));
    if let Some(only) = unique.first().filter(|_| unique.len() == 1) {
        rename(only, &with_suffix(destination, SHARD))?;
        return sync_folder(folder);
    }
    let mut weight_map = Map::new();
    let mut total = 0u64;
    let mut moves = Vec::new();
    for (i, from) in unique.iter().enumerate() {
        let shard = SafetensorsFile::open(from)?;
        let to = with_suffix(destination, &format!("-{i:05}-of-{:05}{SHARD}", unique.len()));
        let file_name = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (name, info) in shard.infos() {
            let before = weight_map.insert(name.to_owned(), json!(file_name));
            if before.is_some_and(|b| b != json!(file_name)) && info.parts.is_empty() {
                return Err(CheckpointError::conflict(name, "it is in several shards"));
            }
        }
        total += fs::metadata(from).map_err(|e| CheckpointError::io(from, e))?.len();
        moves.push((from, to, file_name));
    }
    for (from, to, _) in &moves {
        rename(from, to)?;
    }
    sync_folder(folder)?;
    let shards: Vec<&str> = moves.iter().map(|(_, _, name)| name.as_str()).collect();
    let metadata = json!({"format": FORMAT, "total_size": total, "shards": shards});
    let text = json!({"metadata": metadata, "weight_map": weight_map}).to_string();
    let path = with_suffix(destination, INDEX);
    write_whole(&path, |out| out.write_all(text.as_bytes()).map_err(|e| CheckpointError::io(&path, e)))
}

/// The files that the index of `prefix` names.
pub fn read_index(prefix: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let path = with_suffix(prefix, INDEX);
    let text = fs::read(&path).map_err(|e| CheckpointError::io(&path, e))?;
    let bad = |problem: String| CheckpointError::format(&path, problem);
    let index: Value = serde_json::from_slice(&text).map_err(|e| bad(format!("it is not JSON: {e}")))?;
    let listed = index["metadata"]["shards"].as_array().map(|all| all.iter().collect::<Vec<_>>());
    let map = index["weight_map"].as_object().ok_or_else(|| bad("it has no weight_map".into()))?;
    let names = listed.unwrap_or_else(|| map.values().collect());
    let names: Option<BTreeSet<&str>> = names.into_iter().map(Value::as_str).collect();
    let names = names.ok_or_else(|| bad("a file's name is not text".into()))?;
    // Only files next to the index: a name must not lead elsewhere.
    if let Some(name) = names.iter().find(|name| name.contains(['/', '\\']) || **name == "..") {
        return Err(bad(format!("{name:?} is no file's name")));
    }
    Ok(names.into_iter().map(|name| folder_of(&path).join(name)).collect())
}
