//! Element-wise operators, reductions, products, quantisation.

use engine::graph::Attr;
use engine::{DType, Output, Tensor};

use crate::load;
use crate::map::{Map, MapError, Mapped, One, axis};

pub fn map(m: &Map<'_>) -> Option<Mapped> {
    let one = unary(m).or_else(|| binary(m)).or_else(|| reduction(m)).or_else(|| other(m));
    if let Some(one) = one {
        return Some(one.map(|o| vec![o]));
    }
    (m.node.op_type == "DynamicQuantizeLinear").then(|| dynamic_quantize(m))
}

fn unary(m: &Map<'_>) -> Option<One> {
    let op = match m.node.op_type.as_str() {
        "Abs" | "Neg" | "Sign" | "Floor" | "Ceil" | "Round" | "Sqrt" | "Exp" | "Log" | "Sin" | "Cos" | "Tan"
        | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh" | "Tanh" | "Asinh" | "Acosh" | "Atanh" | "Erf" | "Sigmoid"
        | "Reciprocal" | "Relu" | "Softplus" | "Softsign" | "Identity" => m.node.op_type.as_str(),
        "Not" => "LogicalNot",
        "BitwiseNot" => "Invert",
        "IsNaN" => "IsNan",
        "Det" => "MatrixDeterminant",
        _ => return activation(m),
    };
    Some(m.x(0).and_then(|x| m.op(op, &[x])))
}

fn activation(m: &Map<'_>) -> Option<One> {
    let f: fn(&Map<'_>, Output) -> One = match m.node.op_type.as_str() {
        "Elu" => |m, x| {
            let k = m.number(m.float("alpha", 1.0), x)?;
            let low = m.op("Expm1", &[x])?;
            let low = m.op("Mul", &[k, low])?;
            positive_or(m, x, x, low)
        },
        "Celu" => |m, x| {
            let k = m.number(m.float("alpha", 1.0), x)?;
            let low = m.op("RealDiv", &[x, k])?;
            let low = m.op("Expm1", &[low])?;
            let low = m.op("Mul", &[k, low])?;
            positive_or(m, x, x, low)
        },
        "Selu" => |m, x| {
            let k = m.number(m.float("alpha", 1.673_263_192_176_818_8), x)?;
            let scale = m.number(m.float("gamma", 1.050_701_022_148_132_3), x)?;
            let low = m.op("Expm1", &[x])?;
            let low = m.op("Mul", &[k, low])?;
            let y = positive_or(m, x, x, low)?;
            m.op("Mul", &[scale, y])
        },
        "LeakyRelu" => |m, x| {
            let k = m.number(m.float("alpha", 0.01), x)?;
            let low = m.op("Mul", &[k, x])?;
            positive_or(m, x, x, low)
        },
        "PRelu" => |m, x| {
            let low = m.op("Mul", &[m.x(1)?, x])?;
            positive_or(m, x, x, low)
        },
        "ThresholdedRelu" => |m, x| {
            let (k, zero) = (m.number(m.float("alpha", 1.0), x)?, m.number(0.0, x)?);
            let above = m.op("Greater", &[x, k])?;
            m.op("SelectV2", &[above, x, zero])
        },
        "HardSigmoid" => |m, x| hard_sigmoid(m, x, m.float("alpha", 0.2), m.float("beta", 0.5)),
        "HardSwish" => |m, x| {
            let gate = hard_sigmoid(m, x, 1.0 / 6.0, 0.5)?;
            m.op("Mul", &[x, gate])
        },
        "Mish" => |m, x| {
            let inner = m.op("Softplus", &[x])?;
            let inner = m.op("Tanh", &[inner])?;
            m.op("Mul", &[x, inner])
        },
        "Gelu" => gelu,
        "Shrink" => shrink,
        "IsInf" => |m, x| {
            let infinite = m.op("IsInf", &[x])?;
            let zero = m.number(0.0, x)?;
            let side = match (m.int("detect_negative", 1), m.int("detect_positive", 1)) {
                (0, 0) => return m.op("ZerosLike", &[infinite]),
                (0, _) => m.op("Greater", &[x, zero])?,
                (_, 0) => m.op("Less", &[x, zero])?,
                _ => return Ok(infinite),
            };
            m.op("LogicalAnd", &[infinite, side])
        },
        _ => return None,
    };
    Some(m.x(0).and_then(|x| f(m, x)))
}

/// `high` where x is positive, elsewhere `low`.
fn positive_or(m: &Map<'_>, x: Output, high: Output, low: Output) -> One {
    let zero = m.number(0.0, x)?;
    let positive = m.op("GreaterEqual", &[x, zero])?;
    m.op("SelectV2", &[positive, high, low])
}

fn hard_sigmoid(m: &Map<'_>, x: Output, alpha: f64, beta: f64) -> One {
    let (a, b, zero, one) = (m.number(alpha, x)?, m.number(beta, x)?, m.number(0.0, x)?, m.number(1.0, x)?);
    let y = m.op("Mul", &[a, x])?;
    let y = m.op("AddV2", &[y, b])?;
    m.op("ClipByValue", &[y, zero, one])
}

fn gelu(m: &Map<'_>, x: Output) -> One {
    let (half, one) = (m.number(0.5, x)?, m.number(1.0, x)?);
    let inner = if m.text("approximate", "none") == "tanh" {
        let (three, k) = (m.number(3.0, x)?, m.number(0.044_715, x)?);
        let cube = m.op("Pow", &[x, three])?;
        let cube = m.op("Mul", &[k, cube])?;
        let sum = m.op("AddV2", &[x, cube])?;
        let k = m.number((2.0 / std::f64::consts::PI).sqrt(), x)?;
        let sum = m.op("Mul", &[k, sum])?;
        m.op("Tanh", &[sum])?
    } else {
        let k = m.number(std::f64::consts::FRAC_1_SQRT_2, x)?;
        let scaled = m.op("Mul", &[k, x])?;
        m.op("Erf", &[scaled])?
    };
    let gate = m.op("AddV2", &[one, inner])?;
    let gate = m.op("Mul", &[half, gate])?;
    m.op("Mul", &[x, gate])
}

fn shrink(m: &Map<'_>, x: Output) -> One {
    let (lambd, bias) = (m.float("lambd", 0.5), m.float("bias", 0.0));
    let (low, high, bias, zero) = (m.number(-lambd, x)?, m.number(lambd, x)?, m.number(bias, x)?, m.number(0.0, x)?);
    let (below, above) = (m.op("Less", &[x, low])?, m.op("Greater", &[x, high])?);
    let (plus, minus) = (m.op("AddV2", &[x, bias])?, m.op("Sub", &[x, bias])?);
    let rest = m.op("SelectV2", &[above, minus, zero])?;
    m.op("SelectV2", &[below, plus, rest])
}

fn binary(m: &Map<'_>) -> Option<One> {
    let op = match m.node.op_type.as_str() {
        "Add" => "AddV2",
        "Sub" => "Sub",
        "Mul" => "Mul",
        "Div" if m.dtype(0).is_ok_and(DType::is_integer) => "TruncateDiv",
        "Div" => "RealDiv",
        "And" => "LogicalAnd",
        "Or" => "LogicalOr",
        "Xor" => "NotEqual",
        "Equal" => "Equal",
        "Less" => "Less",
        "LessOrEqual" => "LessEqual",
        "Greater" => "Greater",
        "GreaterOrEqual" => "GreaterEqual",
        "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" => m.node.op_type.as_str(),
        "BitShift" if m.text("direction", "") == "LEFT" => "LeftShift",
        "BitShift" => "RightShift",
        "StringConcat" => "Add",
        "Pow" => return Some(pow(m)),
        "Mod" => return Some(modulo(m)),
        "Max" => return Some(variadic(m, "Maximum")),
        "Min" => return Some(variadic(m, "Minimum")),
        "Sum" => return Some(variadic(m, "AddV2")),
        "Mean" => {
            return Some(variadic(m, "AddV2").and_then(|sum| {
                let n = m.number(m.inputs.len() as f64, sum)?;
                m.op("RealDiv", &[sum, n])
            }));
        }
        _ => return None,
    };
    Some(m.x(0).and_then(|x| m.op(op, &[x, m.x(1)?])))
}

fn variadic(m: &Map<'_>, op: &str) -> One {
    (1..m.inputs.len()).try_fold(m.x(0)?, |sum, i| m.op(op, &[sum, m.x(i)?]))
}

fn pow(m: &Map<'_>) -> One {
    let (x, y) = (m.x(0)?, m.x(1)?);
    let (tx, ty) = (m.type_of(x), m.type_of(y));
    if tx.is_integer() && ty.is_float() {
        let wide = m.op("Pow", &[m.cast(x, DType::F64)?, m.cast(y, DType::F64)?])?;
        return m.cast(wide, tx);
    }
    if tx.is_integer() {
        let wide = m.op("Pow", &[m.cast(x, DType::I64)?, m.cast(y, DType::I64)?])?;
        return m.cast(wide, tx);
    }
    m.op("Pow", &[x, m.cast(y, tx)?])
}

fn modulo(m: &Map<'_>) -> One {
    let (x, y) = (m.x(0)?, m.x(1)?);
    if m.int("fmod", 0) == 0 {
        return m.op("FloorMod", &[x, y]);
    }
    let own = m.type_of(x);
    let wide = if own.is_integer() { DType::I64 } else { own };
    let rest = m.op("TruncateMod", &[m.cast(x, wide)?, m.cast(y, wide)?])?;
    m.cast(rest, own)
}

fn reduction(m: &Map<'_>) -> Option<One> {
    let kind = m.node.op_type.strip_prefix("Reduce")?;
    let reduced = || {
        let mut x = m.x(0)?;
        let rank = m.dims(0)?.len() as i64;
        let axes = m.ints_of("axes", 1)?.unwrap_or_default();
        if axes.is_empty() && m.int("noop_with_empty_axes", 0) != 0 {
            return Ok(x);
        }
        let axes = if axes.is_empty() { (0..rank).collect() } else { axes };
        let keep = m.int("keepdims", 1) != 0;
        match kind {
            "L1" => x = m.op("Abs", &[x])?,
            "L2" | "SumSquare" => x = m.op("Square", &[x])?,
            "LogSumExp" => x = m.op("Exp", &[x])?,
            _ => {}
        }
        let is_bool = m.type_of(x) == DType::Bool;
        let op = match kind {
            "Max" if is_bool => "Any",
            "Min" if is_bool => "All",
            "Max" | "Min" | "Prod" | "Mean" => kind,
            _ => "Sum",
        };
        let y = m.reduce(op, x, &axes, keep)?;
        match kind {
            "L2" if m.type_of(y).is_integer() => {
                let root = m.op("Sqrt", &[m.cast(y, DType::F64)?])?;
                m.cast(root, m.type_of(y))
            }
            "L2" => m.op("Sqrt", &[y]),
            "LogSum" | "LogSumExp" => m.op("Log", &[y]),
            _ => Ok(y),
        }
    };
    Some(reduced())
}

fn other(m: &Map<'_>) -> Option<One> {
    Some(match m.node.op_type.as_str() {
        "Where" => m.x(0).and_then(|c| m.op("SelectV2", &[c, m.x(1)?, m.x(2)?])),
        "Clip" => clip(m),
        "Cast" => load::dtype(m.int("to", 0)).and_then(|to| cast(m, to)),
        "CastLike" => m.dtype(1).and_then(|to| cast(m, to)),
        "ArgMax" | "ArgMin" => arg(m),
        "CumSum" => cumsum(m),
        "MatMul" => m.x(0).and_then(|x| matmul(m, x, m.x(1)?)),
        "MatMulInteger" => matmul_integer(m),
        "Gemm" => gemm(m),
        "Einsum" => einsum(m),
        "DequantizeLinear" => dequantize(m),
        "QuantizeLinear" => m.x(0).and_then(|x| quantize(m, x, 1)),
        "QLinearMatMul" => qlinear_matmul(m),
        _ => return None,
    })
}

fn clip(m: &Map<'_>) -> One {
    let mut x = m.x(0)?;
    for (i, name, op) in [(1, "min", "Maximum"), (2, "max", "Minimum")] {
        let bound = if m.has(i) {
            Some(m.x(i)?)
        } else if m.has_attr(name) {
            Some(m.number(m.float(name, 0.0), x)?)
        } else {
            None
        };
        if let Some(bound) = bound {
            x = m.op(op, &[x, bound])?;
        }
    }
    Ok(x)
}

fn cast(m: &Map<'_>, to: DType) -> One {
    let x = m.x(0)?;
    if (m.type_of(x) == DType::String) != (to == DType::String) {
        return Err(m.uncovered("between strings and numbers"));
    }
    m.cast(x, to)
}

fn arg(m: &Map<'_>) -> One {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    let at = axis(m.int("axis", 0), dims.len());
    let at_input = m.scalar(at as i64)?;
    let mut y = if m.int("select_last_index", 0) != 0 {
        let axes = m.int_vector(&[at as i64])?;
        let back = m.op("ReverseV2", &[x, axes])?;
        let found = m.op(&m.node.op_type, &[back, at_input])?;
        let last = m.constant(Tensor::scalar(dims[at] as i64 - 1))?;
        m.op("Sub", &[last, found])?
    } else {
        m.op(&m.node.op_type, &[x, at_input])?
    };
    if m.int("keepdims", 1) != 0 {
        y = m.op("ExpandDims", &[y, at_input])?;
    }
    Ok(y)
}

fn cumsum(m: &Map<'_>) -> One {
    let at = m.scalar(m.ints(1)?.first().copied().unwrap_or(0))?;
    let flag = |name: &str| Attr::Bool(m.int(name, 0) != 0);
    m.op_with("Cumsum", &[m.x(0)?, at], &[("exclusive", flag("exclusive")), ("reverse", flag("reverse"))])
}

/// As numpy's: vectors are rows on the left, columns on the right.
pub fn matmul(m: &Map<'_>, x: Output, y: Output) -> One {
    let (dx, dy) = (m.shape(x)?, m.shape(y)?);
    let left = if dx.len() == 1 { m.reshape(x, &[1, dx[0]])? } else { x };
    let right = if dy.len() == 1 { m.reshape(y, &[dy[0], 1])? } else { y };
    let product = m.op("BatchMatMulV2", &[left, right])?;
    let mut dims = m.shape(product)?;
    if dy.len() == 1 {
        dims.pop();
    }
    if dx.len() == 1 {
        dims.remove(dims.len() - 1 - usize::from(dy.len() > 1));
    }
    if dims.len() == m.shape(product)?.len() { Ok(product) } else { m.reshape(product, &dims) }
}

/// Input `i` as int32, less its zero point, input `zero`; that is one number, or one per row (`column` false) or column.
fn centred(m: &Map<'_>, i: usize, zero: usize, rows: bool) -> One {
    let x = m.cast(m.x(i)?, DType::I32)?;
    if !m.has(zero) {
        return Ok(x);
    }
    let mut z = m.cast(m.x(zero)?, DType::I32)?;
    if rows && m.dims(zero)?.len() == 1 && m.dims(zero)?[0] > 1 {
        z = m.reshape(z, &[m.dims(zero)?[0], 1])?;
    }
    m.op("Sub", &[x, z])
}

fn matmul_integer(m: &Map<'_>) -> One {
    matmul(m, centred(m, 0, 2, true)?, centred(m, 1, 3, false)?)
}

fn gemm(m: &Map<'_>) -> One {
    let flag = |name: &str| Attr::Bool(m.int(name, 0) != 0);
    let mut y =
        m.op_with("MatMul", &[m.x(0)?, m.x(1)?], &[("transpose_a", flag("transA")), ("transpose_b", flag("transB"))])?;
    let alpha = m.number(m.float("alpha", 1.0), y)?;
    y = m.op("Mul", &[alpha, y])?;
    if m.has(2) {
        let beta = m.number(m.float("beta", 1.0), y)?;
        let c = m.op("Mul", &[beta, m.x(2)?])?;
        y = m.op("AddV2", &[y, c])?;
    }
    Ok(y)
}

fn einsum(m: &Map<'_>) -> One {
    let list = (0..m.inputs.len()).map(|i| m.x(i)).collect::<Result<Vec<_>, _>>()?;
    let mut equation = m.text("equation", "").replace(' ', "");
    if !equation.contains("->") {
        // The output that numpy means: what is broadcast, then the letters that occur once, in order.
        let mut letters: Vec<char> = equation.chars().filter(|c| c.is_alphabetic()).collect();
        letters.sort_unstable();
        let once = letters.chunk_by(|a, b| a == b).filter(|same| same.len() == 1).flatten();
        let broadcast = if equation.contains("...") { "..." } else { "" };
        equation = format!("{equation}->{broadcast}{}", once.collect::<String>());
    }
    m.op_of_list("Einsum", &list, &[], &[("equation", Attr::from(equation.as_str()))])
}

/// A scale or zero point, shaped to run along attribute `axis` of an input of these dimensions.
fn along(m: &Map<'_>, i: usize, dims: &[usize]) -> One {
    let value = m.value(i)?;
    if value.len() == 1 {
        return m.reshape(m.x(i)?, &[]);
    }
    if value.shape().rank() != 1 || m.int("block_size", 0) != 0 {
        return Err(m.uncovered("in blocks"));
    }
    let mut shape = vec![1; dims.len()];
    shape[axis(m.int("axis", 1), dims.len())] = value.len();
    m.reshape(m.x(i)?, &shape)
}

fn dequantize(m: &Map<'_>) -> One {
    let dims = m.dims(0)?;
    let scale = along(m, 1, &dims)?;
    let to = m.type_of(scale);
    let mut x = m.cast(m.x(0)?, DType::I32)?;
    if m.has(2) {
        let zero = m.cast(along(m, 2, &dims)?, DType::I32)?;
        x = m.op("Sub", &[x, zero])?;
    }
    m.op("Mul", &[m.cast(x, to)?, scale])
}

/// `x` over the scale, input `scale`, rounded to even, with the zero point behind it, and saturated to its type.
fn quantize(m: &Map<'_>, x: Output, scale: usize) -> One {
    let dims = m.shape(x)?;
    let to = if m.has(scale + 1) { m.dtype(scale + 1)? } else { DType::U8 };
    let (low, high) = match to {
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
        DType::U16 => (0.0, 65_535.0),
        DType::I16 => (-32_768.0, 32_767.0),
        _ => return Err(m.uncovered("to other types than of 8 and 16 bits")),
    };
    let s = along(m, scale, &dims)?;
    let y = m.op("RealDiv", &[m.cast(x, m.type_of(s))?, s])?;
    let mut y = m.op("Round", &[m.cast(y, DType::F32)?])?;
    if m.has(scale + 1) {
        let zero = m.cast(along(m, scale + 1, &dims)?, DType::F32)?;
        y = m.op("AddV2", &[y, zero])?;
    }
    let (low, high) = (m.number(low, y)?, m.number(high, y)?);
    m.cast(m.op("ClipByValue", &[y, low, high])?, to)
}

fn qlinear_matmul(m: &Map<'_>) -> One {
    let product = matmul(m, centred(m, 0, 2, true)?, centred(m, 3, 5, false)?)?;
    let wide = m.cast(product, DType::F32)?;
    let (a, b) = (m.cast(m.x(1)?, DType::F32)?, m.cast(m.x(4)?, DType::F32)?);
    let scale = m.op("Mul", &[a, b])?;
    let y = m.op("Mul", &[wide, scale])?;
    quantize(m, y, 6)
}

/// uint8 over the range of x, which is made to contain 0; with scale and zero point.
fn dynamic_quantize(m: &Map<'_>) -> Mapped {
    let x = m.x(0)?;
    let rank = m.dims(0)?.len() as i64;
    let axes: Vec<i64> = (0..rank).collect();
    let zero = m.number(0.0, x)?;
    let low = m.op("Minimum", &[m.reduce("Min", x, &axes, false)?, zero])?;
    let high = m.op("Maximum", &[m.reduce("Max", x, &axes, false)?, zero])?;
    let top = m.number(255.0, x)?;
    let scale = m.op("RealDiv", &[m.op("Sub", &[high, low])?, top])?;
    let point = m.op("RealDiv", &[m.op("Neg", &[low])?, scale])?;
    let point = m.op("Round", &[m.op("ClipByValue", &[point, zero, top])?])?;
    let y = m.op("Round", &[m.op("RealDiv", &[x, scale])?])?;
    let y = m.op("ClipByValue", &[m.op("AddV2", &[y, point])?, zero, top])?;
    Ok::<_, MapError>(vec![m.cast(y, DType::U8)?, scale, m.cast(point, DType::U8)?])
}
