//! Elements by their numbers: gathers, sums of segments, positions of extremes, one-hot vectors.

use engine::geometry::{Along, Gather, OneHot, one};
use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelDef, KernelError, measure};
use engine::{DType, Shape};

use super::support::{NUMBERS, Unit, device, gpu, kernel, on_the_host, operand, run};

/// Gathers and positions.
pub const UNIT: Unit = Unit {
    name: "index.cu",
    text: include_str!("../cu/index.cu"),
    kernels: &["gather32", "gather64", "largest", "hot32", "hot64"],
    dtypes: NUMBERS,
};
const SUMMED: &[DType] = &[DType::F32, DType::F64];
/// Sums of segments.
pub const SEGMENTS: Unit =
    Unit { name: "segments.cu", text: include_str!("../cu/segments.cu"), kernels: &["add32", "add64"], dtypes: SUMMED };

#[linkme::distributed_slice(KERNEL_TABLES)]
static INDEX: &[KernelDef] = &[
    gpu("GatherV2", ("Tparams", NUMBERS), gather),
    gpu("Gather", ("Tparams", NUMBERS), gather),
    gpu("UnsortedSegmentSum", ("T", SUMMED), segment_sum),
    gpu("ArgMax", ("T", NUMBERS), |node| position(node, 0)),
    gpu("ArgMin", ("T", NUMBERS), |node| position(node, 1)),
    gpu("OneHot", ("T", NUMBERS), one_hot),
];

/// The name of a kernel for indices of this type.
fn by(name: &str, indices: DType) -> Result<String, KernelError> {
    match indices {
        DType::I32 => Ok(format!("{name}32")),
        DType::I64 => Ok(format!("{name}64")),
        other => Err(KernelError::invalid(format!("{other} are no indices on a GPU"))),
    }
}

fn gather(node: &Node) -> Built {
    if node.int("batch_dims").is_ok_and(|dims| *dims != 0) {
        return on_the_host(node);
    }
    let geometry = measure::gather(node);
    kernel(node, move |ctx| {
        let Gather { shape, n_rows, inner, n_indices, .. } = geometry(ctx)?;
        let ((params, from), (indices, at)) = (operand(ctx, 0)?, operand(ctx, 1)?);
        let gpu = device(ctx)?;
        let (value, to) = gpu.room(params.dtype(), shape)?;
        let n = value.len();
        let arguments = [n.into(), n_rows.into(), n_indices.into(), inner.into(), from.into(), at.into(), to.into()];
        // SAFETY: the kernel takes these; numbers out of range are not followed.
        unsafe { run(gpu, (&UNIT, &by("gather", indices.dtype())?, params.dtype()), n, &arguments)? };
        ctx.set(0, value);
        Ok(())
    })
}

fn segment_sum(node: &Node) -> Built {
    kernel(node, |ctx| {
        let rows = one("num_segments", &ctx.ints(2)?)?;
        let rows = usize::try_from(rows).map_err(|_| KernelError::invalid("num_segments is negative"))?;
        let ((data, from), (indices, at)) = (operand(ctx, 0)?, operand(ctx, 1)?);
        if !data.dims().starts_with(indices.dims()) {
            let (d, i) = (data.shape(), indices.shape());
            return Err(KernelError::invalid(format!("segment ids {i} are no beginning of data {d}")));
        }
        let after = &data.dims()[indices.shape().rank()..];
        let out: Vec<usize> = std::iter::once(rows).chain(after.iter().copied()).collect();
        let gpu = device(ctx)?;
        let (value, to) = gpu.room(data.dtype(), Shape::new(&out))?;
        gpu.zero(to, value.n_bytes())?;
        let inner: usize = after.iter().product();
        let arguments = [data.len().into(), rows.into(), inner.into(), from.into(), at.into(), to.into()];
        let name = by("add", indices.dtype())?;
        // SAFETY: the kernel takes these; numbers out of range are not followed.
        unsafe { run(gpu, (&SEGMENTS, &name, data.dtype()), data.len(), &arguments)? };
        ctx.set(0, value);
        Ok(())
    })
}

fn position(node: &Node, is_min: usize) -> Built {
    let to_type = *node.dtype("output_type")?;
    if !matches!(to_type, DType::I32 | DType::I64) {
        return on_the_host(node);
    }
    kernel(node, move |ctx| {
        let (Along { n, inner, .. }, shape) = measure::position(ctx)?;
        let (input, from) = operand(ctx, 0)?;
        let gpu = device(ctx)?;
        let (value, to) = gpu.room(to_type, shape)?;
        let is_wide = usize::from(to_type == DType::I64);
        let arguments =
            [value.len().into(), n.into(), inner.into(), is_min.into(), is_wide.into(), from.into(), to.into()];
        // SAFETY: the kernel takes these; each result is written once.
        unsafe { run(gpu, (&UNIT, "largest", input.dtype()), value.len(), &arguments)? };
        ctx.set(0, value);
        Ok(())
    })
}

fn one_hot(node: &Node) -> Built {
    let geometry = measure::one_hot(node)?;
    if !matches!(node.dtype("TI")?, DType::I32 | DType::I64) {
        return on_the_host(node);
    }
    kernel(node, move |ctx| {
        let OneHot { shape, depth, inner } = geometry(ctx)?;
        let ((indices, at), (on, at_on), (_off, at_off)) = (operand(ctx, 0)?, operand(ctx, 2)?, operand(ctx, 3)?);
        let gpu = device(ctx)?;
        let (value, to) = gpu.room(on.dtype(), shape)?;
        let n = value.len();
        let arguments = [n.into(), depth.into(), inner.into(), at.into(), at_on.into(), at_off.into(), to.into()];
        // SAFETY: the kernel takes these; each result is written once.
        unsafe { run(gpu, (&UNIT, &by("hot", indices.dtype())?, on.dtype()), n, &arguments)? };
        ctx.set(0, value);
        Ok(())
    })
}
