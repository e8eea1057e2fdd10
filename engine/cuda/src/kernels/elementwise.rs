//! Element-wise ops: kernels are generated from the engine's formulas for the types and shapes that come.

use engine::graph::{Attr, Node};
use engine::kernels::formula::{FORMULAS, Formula, Kind, Numbers, Operands, source};
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::{DType, Shape, Tensor};
use smallvec::{SmallVec, smallvec};

use super::plumbing::whole;
use super::pointwise::{Pointwise, Side, name};
use crate::backend::Address;
use crate::gpu::Gpu;

use super::support::{FLOATS, NUMBERS, c_type, c_wide, count, device, gpu, kernel, operand, strides};

/// The kernels of the engine's formulas.
#[linkme::distributed_slice(KERNEL_TABLES)]
static MAPPED: &[KernelDef] = &{
    let mut lines = [const { gpu("", ("", &[]), map) }; FORMULAS.len()];
    let mut i = 0;
    while i < lines.len() {
        lines[i] = line(&FORMULAS[i]);
        i += 1;
    }
    lines
};

const fn line(formula: &Formula) -> KernelDef {
    let types: (&str, &'static [DType]) = match formula.numbers {
        Numbers::Real => ("T", FLOATS),
        Numbers::Scalar => ("T", NUMBERS),
        Numbers::Truth => ("", &[]),
    };
    let build: fn(&Node) -> Built = match (formula.kind, formula.operands) {
        (Kind::Predicate, _) => truth,
        (Kind::Number, Operands::Several) => add_n,
        (Kind::Number, Operands::Bias) => bias_add,
        (Kind::Number, _) => map,
    };
    gpu(formula.op, types, build)
}

const WHOLE: &[DType] = &[DType::I32, DType::I64];

// Division rounds: on the host only, where sizes are divided.
#[linkme::distributed_slice(KERNEL_TABLES)]
static DIVIDED: &[KernelDef] = &[
    gpu("FloorDiv", ("T", WHOLE), whole),
    gpu("FloorMod", ("T", WHOLE), whole),
    gpu("Div", ("T", WHOLE), whole),
    gpu("RealDiv", ("T", WHOLE), whole),
    gpu("TruncateDiv", ("T", WHOLE), whole),
    gpu("Mod", ("T", WHOLE), whole),
];

const CAST: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::I8, DType::U8, DType::Bool];

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[
    gpu("Cast", ("SrcT", CAST), cast),
    gpu("SelectV2", ("T", CAST), select),
    gpu("Select", ("T", CAST), select_v1),
    gpu("LeakyRelu", ("T", FLOATS), leaky),
    gpu("LeakyReluGrad", ("T", FLOATS), leaky),
    gpu("ClipByValue", ("T", NUMBERS), clip),
];

/// The shape that operands are broadcast to.
///
/// # Errors
/// They do not fit.
pub(super) fn broadcast(shapes: &[&Shape]) -> Result<Shape, KernelError> {
    let rank = shapes.iter().map(|shape| shape.rank()).max().unwrap_or(0);
    let mut dims = vec![1usize; rank];
    for shape in shapes {
        let at = rank - shape.rank();
        for (to, dim) in dims[at..].iter_mut().zip(shape.dims()) {
            match (*to, *dim) {
                (1, dim) => *to = dim,
                (to, dim) if dim != 1 && dim != to => {
                    let all: Vec<String> = shapes.iter().map(ToString::to_string).collect();
                    return Err(KernelError::invalid(format!("shapes {} cannot be broadcast", all.join(" and "))));
                }
                _ => {}
            }
        }
    }
    Ok(Shape::new(&dims))
}

/// Steps through an operand of this shape while a result of `to` is walked.
pub(super) fn broadcast_strides(shape: &Shape, to: &Shape) -> SmallVec<[i64; 8]> {
    let own = strides(shape.dims());
    let mut out: SmallVec<[i64; 8]> = smallvec![0; to.rank()];
    let at = to.rank() - shape.rank();
    for (i, dim) in shape.dims().iter().enumerate() {
        out[at + i] = if *dim == 1 { 0 } else { own[i] };
    }
    out
}

/// A tensor with where it lies.
pub(super) type Placed = (Tensor, Address);

/// The result of an expression of operands, broadcast.
pub(super) fn evaluate(gpu: &Gpu, text: &str, operands: &[Placed], to: DType) -> Result<Placed, KernelError> {
    let shapes: SmallVec<[&Shape; 4]> = operands.iter().map(|(t, _)| t.shape()).collect();
    let shape = broadcast(&shapes)?;
    count(&shape)?;
    let side = |(t, at): &Placed| {
        let of = c_type(t.dtype()).ok_or_else(|| KernelError::invalid(format!("{} on a GPU", t.dtype())))?;
        Ok(Side { at: *at, of, strides: broadcast_strides(t.shape(), &shape) })
    };
    let inputs = operands.iter().map(side).collect::<Result<SmallVec<[Side; 4]>, KernelError>>()?;
    let (out, at) = gpu.room(to, shape.clone())?;
    let output = Side { at, of: c_type(to).unwrap_or("float"), strides: strides(shape.dims()).into() };
    let wide = operands.last().map_or("float", |(t, _)| c_wide(t.dtype()));
    let body = format!("    typedef {wide} C;\n");
    let outputs = [(output, text.to_owned())];
    // SAFETY: sides are whole tensors, walked as their shapes say; the output was just made.
    unsafe { Pointwise { dims: shape.dims(), inputs: &inputs, body: &body, outputs: &outputs }.run(gpu)? };
    Ok((out, at))
}

/// The sum of two values of one shape.
///
/// # Errors
/// Elements of their type are not added up on a GPU, or the driver refuses.
pub(crate) fn sum(gpu: &Gpu, both: &[Placed; 2]) -> Result<Tensor, KernelError> {
    let dtype = both[0].0.dtype();
    if !NUMBERS.contains(&dtype) {
        return Err(KernelError::invalid(format!("elements of {dtype} are not added up on a GPU")));
    }
    Ok(evaluate(gpu, "a + b", both, dtype)?.0)
}

/// The result of an expression of these inputs, as output 0.
pub(super) fn compute(ctx: &mut KernelContext<'_>, text: &str, to: DType, which: &[usize]) -> Result<(), KernelError> {
    let operands = which.iter().map(|i| operand(ctx, *i)).collect::<Result<SmallVec<[Placed; 4]>, _>>()?;
    let (out, _) = evaluate(device(ctx)?, text, &operands, to)?;
    ctx.set(0, out);
    Ok(())
}

fn map(node: &Node) -> Built {
    formula(node, None)
}

fn truth(node: &Node) -> Built {
    formula(node, Some(DType::Bool))
}

/// The formula of a node's op; its results are of the operands' type where no other is named.
fn formula(node: &Node, to: Option<DType>) -> Built {
    let text = source(node.op.name).ok_or_else(|| KernelError::invalid("there is no formula"))?;
    kernel(node, move |ctx| {
        let which: SmallVec<[usize; 2]> = (0..ctx.inputs.len()).collect();
        let to = to.unwrap_or(ctx.input(0)?.dtype());
        compute(ctx, text, to, &which)
    })
}

fn add_n(node: &Node) -> Built {
    kernel(node, |ctx| {
        let n = ctx.inputs.len();
        let first = ctx.input(0)?.shape().clone();
        for i in 1..n {
            if *ctx.input(i)?.shape() != first {
                let got = ctx.input(i)?.shape();
                return Err(KernelError::invalid(format!("shapes {first} and {got} cannot be added")));
            }
        }
        let text = (0..n).map(name).collect::<Vec<_>>().join(" + ");
        let which: Vec<usize> = (0..n).collect();
        let to = ctx.input(0)?.dtype();
        compute(ctx, &text, to, &which)
    })
}

/// Whether a node's channels come behind its batch.
pub(super) fn is_channels_first(node: &Node) -> bool {
    matches!(node.attrs.get("data_format"), Some(Attr::Str(format)) if format.starts_with(b"NC"))
}

fn bias_add(node: &Node) -> Built {
    let is_first = is_channels_first(node);
    kernel(node, move |ctx| {
        let (rank, bias) = (ctx.input(0)?.shape().rank(), ctx.input(1)?.clone());
        let channel = if is_first { 1 } else { rank.saturating_sub(1) };
        let channels = ctx.input(0)?.dims().get(channel).copied();
        if bias.shape().rank() != 1 || rank < 2 || channels != Some(bias.len()) {
            let (x, b) = (ctx.input(0)?.shape(), bias.shape());
            return Err(KernelError::invalid(format!("a bias of shape {b} does not fit a value of shape {x}")));
        }
        let mut dims = vec![1; rank];
        dims[channel] = bias.len();
        ctx.inputs[1] = Some(bias.into_shape(Shape::new(&dims))?);
        let to = ctx.input(0)?.dtype();
        compute(ctx, "a + b", to, &[0, 1])
    })
}

fn cast(node: &Node) -> Built {
    let (from, to) = (*node.dtype("SrcT")?, *node.dtype("DstT")?);
    if !CAST.contains(&to) {
        return super::support::on_the_host(node);
    }
    kernel(node, move |ctx| {
        if from == to {
            let value = ctx.take(0)?;
            ctx.set(0, value);
            return Ok(());
        }
        compute(ctx, "a", to, &[0])
    })
}

fn select(node: &Node) -> Built {
    kernel(node, |ctx| {
        let to = ctx.input(1)?.dtype();
        compute(ctx, "a ? b : c", to, &[0, 1, 2])
    })
}

/// The condition is of the values' shape, a scalar, or one truth for each row.
fn select_v1(node: &Node) -> Built {
    kernel(node, |ctx| {
        let (condition, value) = (ctx.input(0)?, ctx.input(1)?);
        let (of, to) = (condition.shape().clone(), value.shape().clone());
        if of != to && of.rank() == 1 && to.rank() > 1 {
            let mut dims = vec![1; to.rank()];
            dims[0] = of.n_elements();
            ctx.inputs[0] = Some(condition.reshaped(Shape::new(&dims))?);
        }
        let to = ctx.input(1)?.dtype();
        compute(ctx, "a ? b : c", to, &[0, 1, 2])
    })
}

fn leaky(node: &Node) -> Built {
    let alpha = *node.float("alpha")?;
    let text = match node.op.name {
        "LeakyRelu" => format!("(a < (C)0 ? (C){alpha:e} * a : a)"),
        _ => format!("(b > (C)0 ? a : (C){alpha:e} * a)"),
    };
    let which: &[usize] = if node.op.name == "LeakyRelu" { &[0] } else { &[0, 1] };
    kernel(node, move |ctx| {
        let to = ctx.input(0)?.dtype();
        compute(ctx, &text, to, which)
    })
}

fn clip(node: &Node) -> Built {
    kernel(node, |ctx| {
        let to = ctx.input(0)?.dtype();
        compute(ctx, "smaller(larger(a, b), c)", to, &[0, 1, 2])
    })
}
