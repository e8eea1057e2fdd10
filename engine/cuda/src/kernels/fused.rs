//! What the fusion pass makes one node of is one kernel here: values between stay in registers.

use std::fmt::Write;

use engine::graph::{Attr, Node};
use engine::kernels::formula::source;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::{DType, Shape};

use super::elementwise::{broadcast, broadcast_strides};
use super::pointwise::{Pointwise, Side, name};
use super::support::{c_type, device, gpu, kernel, operand, strides};

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUSED: &[KernelDef] = &[gpu("_FusedElementwise", ("T", &[DType::F32, DType::F64]), fused)];

/// An output: steps whose results lie side by side along an axis.
struct Joined {
    axis: usize,
    steps: Vec<usize>,
}

struct Program {
    dtype: DType,
    /// Of each input: axis, begin, size; axis -1: the entire input.
    windows: Vec<[i64; 3]>,
    /// Statements that make `r0`, `r1`, ... of the inputs.
    body: String,
    outputs: Vec<Joined>,
}

fn texts(node: &Node, attr: &str) -> Result<Vec<String>, KernelError> {
    match node.attrs.get(attr) {
        Some(Attr::ListStr(list)) => Ok(list.iter().map(|t| String::from_utf8_lossy(t).into_owned()).collect()),
        _ => Err(KernelError::invalid(format!("attribute {attr} is missing"))),
    }
}

impl Program {
    fn of(node: &Node) -> Result<Program, KernelError> {
        let bad = |what: &str| KernelError::invalid(format!("{what} of a fused node contradict each other"));
        let dtype = *node.dtype("T")?;
        let n_inputs = usize::try_from(*node.int("N")?).map_err(|_| bad("inputs"))?;
        let (ops, operands) = (texts(node, "ops")?, node.ints("operands")?);
        if operands.len() != 2 * ops.len() || ops.is_empty() {
            return Err(bad("operands"));
        }
        let mut body = format!("    typedef {} C;\n", c_type(dtype).unwrap_or("float"));
        for (i, (op, pair)) in ops.iter().zip(operands.chunks(2)).enumerate() {
            let value = |of: i64| match usize::try_from(of) {
                Ok(of) if of < n_inputs => Ok(name(of)),
                Ok(of) if of < n_inputs + i => Ok(format!("r{}", of - n_inputs)),
                _ => Err(bad("operands")),
            };
            let text = source(op).ok_or_else(|| KernelError::invalid(format!("{op} has no formula")))?;
            let (a, b) = (value(pair[0])?, value(pair[1])?);
            // Its operands under the names that the expression uses.
            let _ = writeln!(body, "    C r{i}; {{ C t0 = {a}, t1 = {b}; C a = t0, b = t1; (void)b; r{i} = {text}; }}");
        }
        let windows = node.ints("windows")?;
        let windows: Vec<[i64; 3]> = match windows.is_empty() {
            true => vec![[-1, 0, 0]; n_inputs],
            false => windows.as_chunks::<3>().0.to_vec(),
        };
        if windows.len() != n_inputs {
            return Err(bad("windows"));
        }
        Ok(Program { dtype, windows, body, outputs: Program::outputs(node, ops.len())? })
    }

    fn outputs(node: &Node, n_steps: usize) -> Result<Vec<Joined>, KernelError> {
        let bad = || KernelError::invalid("results of a fused node contradict each other");
        let (results, joined) = (node.ints("results")?, node.ints("joined")?);
        let steps: Option<Vec<usize>> =
            results.iter().map(|r| usize::try_from(*r).ok().filter(|step| *step < n_steps)).collect();
        let mut steps = steps.ok_or_else(bad)?;
        if steps.is_empty() {
            steps.push(n_steps - 1);
        }
        let single: Vec<i64> = steps.iter().flat_map(|_| [0, 1]).collect();
        let mut outputs = Vec::new();
        for [axis, n] in (if joined.is_empty() { &single } else { joined }).as_chunks::<2>().0 {
            let (axis, n) = (usize::try_from(*axis).map_err(|_| bad())?, usize::try_from(*n).map_err(|_| bad())?);
            if n == 0 || n > steps.len() {
                return Err(bad());
            }
            outputs.push(Joined { axis, steps: steps.drain(..n).collect() });
        }
        if steps.is_empty() && outputs.len() == node.outputs.len() { Ok(outputs) } else { Err(bad()) }
    }

    fn run(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let (gpu, of) = (device(ctx)?, c_type(self.dtype).unwrap_or("float"));
        let mut inputs = Vec::with_capacity(self.windows.len());
        for (i, [axis, begin, size]) in self.windows.iter().enumerate() {
            let (t, at) = operand(ctx, i)?;
            let (mut dims, own) = (t.dims().to_vec(), strides(t.dims()));
            let mut first = 0;
            if let Ok(axis) = usize::try_from(*axis) {
                let fits = dims.get(axis).is_some_and(|dim| begin + size <= *dim as i64 && *begin >= 0 && *size >= 0);
                if !fits {
                    let text = format!("{size} elements from {begin} are not in dimension {axis} of {}", t.shape());
                    return Err(KernelError::invalid(text));
                }
                dims[axis] = *size as usize;
                first = begin * own[axis];
            }
            inputs.push((t, at + (first as usize * self.dtype.size()) as u64, Shape::new(&dims), own));
        }
        let shapes: Vec<&Shape> = inputs.iter().map(|(.., shape, _)| shape).collect();
        let shape = broadcast(&shapes)?;
        let side = |(_, at, own, steps): &(_, u64, Shape, Vec<i64>)| {
            // A window's steps are those of the whole.
            let mut walked = broadcast_strides(own, &shape);
            let behind = shape.rank() - own.rank();
            for (d, dim) in own.dims().iter().enumerate().filter(|(_, dim)| **dim != 1) {
                let _ = dim;
                walked[behind + d] = steps[d];
            }
            Side { at: *at, of, strides: walked }
        };
        let sides: Vec<Side> = inputs.iter().map(side).collect();
        let mut outputs = Vec::new();
        for (i, output) in self.outputs.iter().enumerate() {
            let mut dims = shape.dims().to_vec();
            let n = output.steps.len();
            let part = dims.get(output.axis).copied().unwrap_or(1);
            if let Some(dim) = dims.get_mut(output.axis) {
                *dim *= n;
            }
            let (value, to) = gpu.room(self.dtype, Shape::new(&dims))?;
            let steps = strides(&dims);
            for (k, step) in output.steps.iter().enumerate() {
                let first = k * part * steps.get(output.axis).map_or(0, |step| *step as usize);
                let at = to + (first * self.dtype.size()) as u64;
                outputs.push((Side { at, of, strides: steps.clone().into() }, format!("r{step}")));
            }
            ctx.set(i, value);
        }
        // SAFETY: windows lie in their inputs, parts side by side in outputs that were made for them.
        unsafe { Pointwise { dims: shape.dims(), inputs: &sides, body: &self.body, outputs: &outputs }.run(gpu) }
    }
}

fn fused(node: &Node) -> Built {
    let program = Program::of(node)?;
    kernel(node, move |ctx| program.run(ctx))
}
