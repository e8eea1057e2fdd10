//! Sums, means, products and extremes over axes.
//!
//! Where the last dimensions are reduced, a block takes each row; elsewhere a thread takes each result, so that neighbours
//! read neighbours. Few results of many elements are made in parts, which a second kernel joins, always in one order, by a
//! block for each result where there are many parts.

use engine::geometry::Reduction;
use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelDef, KernelError, measure};
use engine::{DType, Tensor};

use super::support::{FLOATS, NUMBERS, PRELUDE, THREADS, c_type, c_wide, device, gpu, grid, kernel, operand, strides};
use crate::backend::{Address, Grid};
use crate::gpu::{Argument, Gpu};

/// The source of all reductions.
pub const SOURCE: &str = include_str!("../cu/reduce.cu");
/// Threads that fill a large device.
const FULL: usize = 132 * 2048;

/// What joins two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
    /// `a && b`
    All,
    /// `a || b`
    Any,
}

impl Join {
    /// All of them.
    pub const ALL: [Join; 6] = [Join::Sum, Join::Product, Join::Max, Join::Min, Join::All, Join::Any];

    /// The expression of two, and the neutral element.
    pub fn texts(self, dtype: DType) -> (&'static str, &'static str) {
        let (lowest, largest) = match dtype {
            DType::I32 => ("(C)(-2147483647-1)", "(C)2147483647"),
            DType::I64 => ("(C)(-9223372036854775807LL-1)", "(C)9223372036854775807LL"),
            _ => ("(C)(-1.0/0.0)", "(C)(1.0/0.0)"),
        };
        match self {
            Join::Sum => ("((a)+(b))", "(C)0"),
            Join::Product => ("((a)*(b))", "(C)1"),
            Join::Max => ("larger(a,b)", lowest),
            Join::Min => ("smaller(a,b)", largest),
            Join::All => ("((a)&&(b))", "true"),
            Join::Any => ("((a)||(b))", "false"),
        }
    }
}

/// The macros of a reduction from one type to another.
pub fn reduce_macros(join: Join, dtype: DType, from: &str, to: &str) -> Vec<String> {
    let (text, start) = join.texts(dtype);
    vec![
        format!("I={from}"),
        format!("O={to}"),
        format!("C={}", c_wide(dtype)),
        format!("OP(a,b)={text}"),
        format!("START={start}"),
    ]
}

/// The dimensions that stay and those that are reduced, each with its step through the input.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Plan {
    outer: Vec<(usize, i64)>,
    reduced: Vec<(usize, i64)>,
}

impl Plan {
    fn of(reduction: &Reduction) -> Plan {
        let mut plan = Plan::default();
        let dims: Vec<usize> = reduction.dims.iter().map(|(dim, _)| *dim).collect();
        for ((dim, is_reduced), step) in reduction.dims.iter().zip(strides(&dims)) {
            let side = if *is_reduced { &mut plan.reduced } else { &mut plan.outer };
            side.push((*dim, step));
        }
        plan
    }
}

fn sides(of: &[(usize, i64)]) -> Result<(usize, [i64; 8], [i64; 8]), KernelError> {
    if of.len() > 8 {
        return Err(KernelError::invalid("more than eight separate dimensions are reduced"));
    }
    let (mut dims, mut strides) = ([1; 8], [0; 8]);
    for (i, (dim, stride)) in of.iter().enumerate() {
        (dims[i], strides[i]) = (*dim as i64, *stride);
    }
    Ok((of.len(), dims, strides))
}

/// A reduction of memory to memory.
struct Pass<'a> {
    join: Join,
    dtype: DType,
    from: (&'a str, Address),
    to: (&'a str, Address),
    plan: &'a Plan,
    n_parts: usize,
    scale: f64,
}

impl Pass<'_> {
    fn run(&self, gpu: &Gpu) -> Result<(), KernelError> {
        let count = |side: &[(usize, i64)]| side.iter().map(|(dim, _)| *dim).product::<usize>();
        let (n_out, n_in) = (count(&self.plan.outer), count(&self.plan.reduced));
        let ((out_rank, out_dims, out_strides), (in_rank, in_dims, in_strides)) =
            (sides(&self.plan.outer)?, sides(&self.plan.reduced)?);
        let is_row = self.plan.reduced.last().is_some_and(|(dim, stride)| *stride == 1 && *dim >= 32);
        let n = n_out * self.n_parts;
        // A few threads would wait for memory once for each of many elements.
        let is_long = n_in / self.n_parts >= 64 && n < FULL / 4;
        let (name, grid) = match is_row || is_long {
            true => ("reduce_blocks", Grid { blocks: [n.min(1 << 20) as u32, 1, 1], threads: THREADS }),
            false => ("reduce_threads", grid(n)),
        };
        let macros = reduce_macros(self.join, self.dtype, self.from.0, self.to.0);
        let function = gpu.function("reduce.cu", name, &macros, || format!("{PRELUDE}{SOURCE}"))?;
        let arguments: [Argument; 12] = [
            n_out.into(),
            n_in.into(),
            self.n_parts.into(),
            out_rank.into(),
            in_rank.into(),
            out_dims.into(),
            out_strides.into(),
            in_dims.into(),
            in_strides.into(),
            self.scale.into(),
            self.from.1.into(),
            self.to.1.into(),
        ];
        // SAFETY: the kernel takes these; the plan's steps stay within the input, there are `n` results.
        unsafe { gpu.launch(function, grid, &arguments) }
    }
}

/// Reduces a tensor in memory, into memory for the results.
pub(super) fn reduce(
    gpu: &Gpu,
    join: Join,
    (input, from): (&Tensor, Address),
    reduction: &Reduction,
    to: Address,
    scale: f64,
) -> Result<(), KernelError> {
    let (dtype, plan, n_in) = (input.dtype(), Plan::of(reduction), reduction.n_reduced);
    let of = c_type(dtype).ok_or_else(|| KernelError::invalid(format!("{dtype} is not reduced on a GPU")))?;
    let n_out = reduction.shape.n_elements();
    if n_out == 0 {
        return Ok(());
    }
    let is_row = plan.reduced.last().is_some_and(|(dim, stride)| *stride == 1 && *dim >= 32);
    let (each, threads) = if is_row { (4096, FULL / THREADS as usize) } else { (32, FULL) };
    let n_parts = (n_in / each).min(threads / n_out.min(threads)).max(1);
    if n_parts == 1 {
        return Pass { join, dtype, from: (of, from), to: (of, to), plan: &plan, n_parts, scale }.run(gpu);
    }
    let wide = c_wide(dtype);
    let size = if wide == "float" { 4 } else { dtype.size().max(1) };
    let between = gpu.block(n_out * n_parts * size)?;
    let parts = (wide, between.address());
    Pass { join, dtype, from: (of, from), to: parts, plan: &plan, n_parts, scale: 1.0 }.run(gpu)?;
    // The parts lie one behind the other, each with all results.
    let joined = Plan { outer: vec![(n_out, 1)], reduced: vec![(n_parts, n_out as i64)] };
    Pass { join, dtype, from: parts, to: (of, to), plan: &joined, n_parts: 1, scale }.run(gpu)
}

fn over_axes(node: &Node, join: Join, is_mean: bool) -> Built {
    let keeps = *node.flag("keep_dims")?;
    kernel(node, move |ctx| {
        let reduction = measure::reduction(ctx, keeps)?;
        let (input, from) = operand(ctx, 0)?;
        let gpu = device(ctx)?;
        let (value, to) = gpu.room(input.dtype(), reduction.shape.clone())?;
        let scale = if is_mean { 1.0 / reduction.n_reduced as f64 } else { 1.0 };
        reduce(gpu, join, (&input, from), &reduction, to, scale)?;
        ctx.set(0, value);
        Ok(())
    })
}

/// Sums over all dimensions but the channels'.
fn bias_add_grad(node: &Node) -> Built {
    let is_first = super::elementwise::is_channels_first(node);
    kernel(node, move |ctx| {
        let (input, from) = operand(ctx, 0)?;
        let rank = input.shape().rank();
        if rank < 2 {
            return Err(KernelError::invalid(format!("a gradient of shape {} has no channels", input.shape())));
        }
        let channel = if is_first { 1 } else { rank - 1 };
        let reduction = Reduction::all_but(input.dims(), channel);
        let gpu = device(ctx)?;
        let (value, to) = gpu.room(input.dtype(), reduction.shape.clone())?;
        reduce(gpu, Join::Sum, (&input, from), &reduction, to, 1.0)?;
        ctx.set(0, value);
        Ok(())
    })
}

/// Half the sum of the squares.
fn l2_loss(node: &Node) -> Built {
    kernel(node, |ctx| {
        super::elementwise::compute(ctx, "a * a", ctx.input(0)?.dtype(), &[0])?;
        let Some(squares) = ctx.outputs[0].take() else { return Ok(()) };
        let gpu = device(ctx)?;
        let (squares, from) = gpu.bring(&squares)?;
        let reduction = Reduction::new(squares.dims(), &vec![true; squares.shape().rank()], false);
        let (value, to) = gpu.room(squares.dtype(), reduction.shape.clone())?;
        reduce(gpu, Join::Sum, (&squares, from), &reduction, to, 0.5)?;
        ctx.set(0, value);
        Ok(())
    })
}

const TRUTHS: (&str, &[DType]) = ("", &[]);

#[linkme::distributed_slice(KERNEL_TABLES)]
static REDUCE: &[KernelDef] = &[
    gpu("Sum", ("T", NUMBERS), |n| over_axes(n, Join::Sum, false)),
    gpu("Mean", ("T", FLOATS), |n| over_axes(n, Join::Sum, true)),
    gpu("Prod", ("T", NUMBERS), |n| over_axes(n, Join::Product, false)),
    gpu("Max", ("T", NUMBERS), |n| over_axes(n, Join::Max, false)),
    gpu("Min", ("T", NUMBERS), |n| over_axes(n, Join::Min, false)),
    gpu("All", TRUTHS, |n| over_axes(n, Join::All, false)),
    gpu("Any", TRUTHS, |n| over_axes(n, Join::Any, false)),
    gpu("BiasAddGrad", ("T", FLOATS), bias_add_grad),
    gpu("L2Loss", ("T", FLOATS), l2_loss),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_input() {
        let of = |dims: &[usize], mask: &[bool]| Plan::of(&Reduction::new(dims, mask, false));
        let plan = of(&[2, 3, 4, 5], &[false, false, true, true]);
        assert_eq!(plan, Plan { outer: vec![(6, 20)], reduced: vec![(20, 1)] });
        let plan = of(&[2, 3, 4], &[true, false, true]);
        assert_eq!(plan, Plan { outer: vec![(3, 4)], reduced: vec![(2, 12), (4, 1)] });
    }
}
