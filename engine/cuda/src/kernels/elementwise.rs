//! Element-wise ops: one table of expressions, from which kernels are generated for the types and shapes that come.

use engine::graph::{Attr, Node};
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::{DType, Shape, Tensor};
use smallvec::{SmallVec, smallvec};

use super::pointwise::{Pointwise, Side, name};
use crate::backend::Address;
use crate::gpu::Gpu;

use super::support::{FLOATS, NUMBERS, c_type, c_wide, count, device, gpu, kernel, operand, strides};

/// An op: its expression in `a`, `b`, `c`, computed in type `C`.
struct Expression {
    op: &'static str,
    text: &'static str,
}

const fn e(op: &'static str, text: &'static str) -> Expression {
    Expression { op, text }
}

/// Results have the type of the operands.
const EXPRESSIONS: &[Expression] = &[
    e("Neg", "-a"),
    e("Abs", "(a < (C)0 ? -a : a)"),
    e("Square", "a * a"),
    e("Sign", "(C)((a > (C)0) - (a < (C)0))"),
    e("Reciprocal", "(C)1 / a"),
    e("Inv", "(C)1 / a"),
    e("Sqrt", "root(a)"),
    e("Rsqrt", "inverse_root(a)"),
    e("Exp", "e_to(a)"),
    e("Expm1", "expm1_of(a)"),
    e("Log", "log_of(a)"),
    e("Log1p", "log1p_of(a)"),
    e("Tanh", "tanh_of(a)"),
    e("Sigmoid", "logistic(a)"),
    e("Softplus", "softplus(a)"),
    e("Softsign", "a / ((C)1 + (a < (C)0 ? -a : a))"),
    e("Sin", "sin_of(a)"),
    e("Cos", "cos_of(a)"),
    e("Erf", "erf_of(a)"),
    e("Floor", "floor_of(a)"),
    e("Ceil", "ceil_of(a)"),
    e("Rint", "nearest(a)"),
    e("Relu", "(a < (C)0 ? (C)0 : a)"),
    e("Relu6", "(a < (C)0 ? (C)0 : a > (C)6 ? (C)6 : a)"),
    e("Elu", "(a < (C)0 ? expm1_of(a) : a)"),
    e("Add", "a + b"),
    e("AddV2", "a + b"),
    e("Sub", "a - b"),
    e("Mul", "a * b"),
    e("Maximum", "larger(a, b)"),
    e("Minimum", "smaller(a, b)"),
    e("SquaredDifference", "(a - b) * (a - b)"),
    e("Div", "a / b"),
    e("RealDiv", "a / b"),
    e("DivNoNan", "(b == (C)0 ? (C)0 : a / b)"),
    e("MulNoNan", "(b == (C)0 ? (C)0 : a * b)"),
    e("Xdivy", "(a == (C)0 ? (C)0 : a / b)"),
    e("Xlogy", "(a == (C)0 ? (C)0 : a * log_of(b))"),
    e("Pow", "power(a, b)"),
    e("TanhGrad", "b * ((C)1 - a * a)"),
    e("SigmoidGrad", "b * a * ((C)1 - a)"),
    e("SqrtGrad", "(b == (C)0 ? (C)0 : b * (C)0.5 / a)"),
    e("RsqrtGrad", "(b == (C)0 ? (C)0 : (C)-0.5 * b * a * a * a)"),
    e("ReciprocalGrad", "(b == (C)0 ? (C)0 : -b * a * a)"),
    e("InvGrad", "(b == (C)0 ? (C)0 : -b * a * a)"),
    e("SoftplusGrad", "a / ((C)1 + e_to(-b))"),
    e("SoftsignGrad", "a / (((C)1 + (b < (C)0 ? -b : b)) * ((C)1 + (b < (C)0 ? -b : b)))"),
    e("ReluGrad", "(b > (C)0 ? a : (C)0)"),
    e("Relu6Grad", "(b > (C)0 && b < (C)6 ? a : (C)0)"),
    e("EluGrad", "(b < (C)0 ? a * (b + (C)1) : a)"),
];

/// Results are truths.
const PREDICATES: &[Expression] = &[
    e("Equal", "a == b"),
    e("NotEqual", "a != b"),
    e("Less", "a < b"),
    e("LessEqual", "a <= b"),
    e("Greater", "a > b"),
    e("GreaterEqual", "a >= b"),
    e("LogicalAnd", "a && b"),
    e("LogicalOr", "a || b"),
    e("LogicalNot", "!a"),
];

/// The expression of an op, where there is one.
pub(super) fn expression(op: &str) -> Option<&'static str> {
    EXPRESSIONS.iter().chain(PREDICATES).find(|known| known.op == op).map(|known| known.text)
}

const WHOLE: &[DType] = &[DType::I32, DType::I64];

macro_rules! lines {
    ($name:ident, $attr:literal, $types:expr, $build:expr; $($op:literal)*) => {
        #[linkme::distributed_slice(KERNEL_TABLES)]
        static $name: &[KernelDef] = &[$(gpu($op, ($attr, $types), $build)),*];
    };
}

lines! { ONE_FLOAT, "T", FLOATS, map;
"Reciprocal" "Inv" "Sqrt" "Rsqrt" "Exp" "Expm1" "Log" "Log1p" "Tanh" "Sigmoid" "Softplus" "Softsign" "Sin" "Cos" "Erf"
"Floor" "Ceil" "Rint" "Relu" "Relu6" "Elu" "Div" "RealDiv" "DivNoNan" "MulNoNan" "Xdivy" "Xlogy" "Pow" "TanhGrad"
"SigmoidGrad" "SqrtGrad" "RsqrtGrad" "ReciprocalGrad" "InvGrad" "SoftplusGrad" "SoftsignGrad" "ReluGrad" "Relu6Grad"
"EluGrad" }
lines! { ANY_NUMBER, "T", NUMBERS, map;
"Neg" "Abs" "Square" "Sign" "Add" "AddV2" "Sub" "Mul" "Maximum" "Minimum" "SquaredDifference" }
lines! { COMPARED, "T", NUMBERS, truth; "Equal" "NotEqual" "Less" "LessEqual" "Greater" "GreaterEqual" }
lines! { LOGICAL, "", &[], truth; "LogicalAnd" "LogicalOr" "LogicalNot" }
// Division rounds: on the host only, where sizes are divided.
lines! { DIVIDED, "T", WHOLE, super::plumbing::whole; "FloorDiv" "FloorMod" "Div" "RealDiv" "TruncateDiv" "Mod" }

const CAST: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::I8, DType::U8, DType::Bool];

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[
    gpu("AddN", ("T", NUMBERS), add_n),
    gpu("BiasAdd", ("T", FLOATS), bias_add),
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
    let text = expression(node.op.name).ok_or_else(|| KernelError::invalid("there is no expression"))?;
    let n = node.inputs.len().min(2).max(usize::from(text.contains('b')) + 1);
    kernel(node, move |ctx| {
        let which: SmallVec<[usize; 2]> = (0..ctx.inputs.len().min(n)).collect();
        let to = ctx.input(0)?.dtype();
        compute(ctx, text, to, &which)
    })
}

fn truth(node: &Node) -> Built {
    let text = expression(node.op.name).ok_or_else(|| KernelError::invalid("there is no expression"))?;
    kernel(node, move |ctx| {
        let which: SmallVec<[usize; 2]> = (0..ctx.inputs.len()).collect();
        compute(ctx, text, DType::Bool, &which)
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
