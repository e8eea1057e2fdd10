//! Element-wise operators, reductions, products, quantisation.

use engine::DType;
use engine::graph::{Attr, Value};

use super::super::load;
use super::super::map::{Map, Mapped, One, axis, cast};

pub fn map(m: &Map) -> Option<Mapped<'_>> {
    let one = unary(m).or_else(|| binary(m)).or_else(|| reduction(m)).or_else(|| other(m));
    if let Some(one) = one {
        return Some(one.map(|o| vec![o]));
    }
    (m.node.op_type == "DynamicQuantizeLinear").then(|| dynamic_quantize(m))
}

fn unary(m: &Map) -> Option<One<'_>> {
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
    Some(m.x(0).map(|x| x.op(op)))
}

fn activation(m: &Map) -> Option<One<'_>> {
    let f: for<'g> fn(&'g Map, Value<'g>) -> One<'g> = match m.node.op_type.as_str() {
        "Elu" => |m, x| Ok(positive_or(x, m.float("alpha", 1.0) * x.op("Expm1"))),
        "Celu" => |m, x| {
            let alpha = m.float("alpha", 1.0);
            Ok(positive_or(x, alpha * (x / alpha).op("Expm1")))
        },
        "Selu" => |m, x| {
            let (alpha, gamma) = (m.float("alpha", 1.673_263_192_176_818_8), m.float("gamma", 1.050_701_022_148_132_3));
            Ok(gamma * positive_or(x, alpha * x.op("Expm1")))
        },
        "LeakyRelu" => |m, x| Ok(positive_or(x, m.float("alpha", 0.01) * x)),
        "PRelu" => |m, x| Ok(positive_or(x, m.x(1)? * x)),
        "ThresholdedRelu" => |m, x| Ok(x.greater(m.float("alpha", 1.0)).select(x, x.number(0.0))),
        "HardSigmoid" => |m, x| Ok(hard_sigmoid(m, x, m.float("alpha", 0.2), m.float("beta", 0.5))),
        "HardSwish" => |m, x| Ok(x * hard_sigmoid(m, x, 1.0 / 6.0, 0.5)),
        "Mish" => |_, x| Ok(x * x.softplus().tanh()),
        "Gelu" => gelu,
        "Shrink" => |m, x| {
            let (limit, bias) = (m.float("lambd", 0.5), m.float("bias", 0.0));
            let rest = x.greater(limit).select(x - bias, x.number(0.0));
            Ok(x.less(-limit).select(x + bias, rest))
        },
        "IsInf" => |m, x| {
            let infinite = x.op("IsInf");
            let side = match (m.int("detect_negative", 1), m.int("detect_positive", 1)) {
                (0, 0) => return Ok(infinite.zeros_like()),
                (0, _) => x.greater(0.0),
                (_, 0) => x.less(0.0),
                _ => return Ok(infinite),
            };
            Ok(infinite.op_with("LogicalAnd", side))
        },
        _ => return None,
    };
    Some(m.x(0).and_then(|x| f(m, x)))
}

/// x where it is positive, elsewhere `low`.
fn positive_or<'g>(x: Value<'g>, low: Value<'g>) -> Value<'g> {
    x.greater_equal(0.0).select(x, low)
}

fn hard_sigmoid<'g>(m: &'g Map, x: Value<'g>, alpha: f64, beta: f64) -> Value<'g> {
    m.op("ClipByValue", &[alpha * x + beta, x.number(0.0), x.number(1.0)])
}

fn gelu<'g>(m: &'g Map, x: Value<'g>) -> One<'g> {
    let inner = if m.text("approximate", "none") == "tanh" {
        ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.pow(3.0))).tanh()
    } else {
        (std::f64::consts::FRAC_1_SQRT_2 * x).op("Erf")
    };
    Ok(x * (0.5 * (1.0 + inner)))
}

fn binary(m: &Map) -> Option<One<'_>> {
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
        "Mean" => return Some(variadic(m, "AddV2").map(|sum| sum / m.inputs.len() as f64)),
        _ => return None,
    };
    Some(m.x(0).and_then(|x| Ok(x.op_with(op, m.x(1)?))))
}

fn variadic<'g>(m: &'g Map, op: &str) -> One<'g> {
    (1..m.inputs.len()).try_fold(m.x(0)?, |sum, i| Ok(sum.op_with(op, m.x(i)?)))
}

fn pow(m: &Map) -> One<'_> {
    let (x, y) = (m.x(0)?, m.x(1)?);
    let (tx, ty) = (x.dtype(), y.dtype());
    Ok(match (tx.is_integer(), ty.is_float()) {
        (true, true) => cast(cast(x, DType::F64).pow(cast(y, DType::F64)), tx),
        (true, false) => cast(cast(x, DType::I64).pow(cast(y, DType::I64)), tx),
        _ => x.pow(cast(y, tx)),
    })
}

fn modulo(m: &Map) -> One<'_> {
    let (x, y) = (m.x(0)?, m.x(1)?);
    if m.int("fmod", 0) == 0 {
        return Ok(x.op_with("FloorMod", y));
    }
    let own = x.dtype();
    let wide = if own.is_integer() { DType::I64 } else { own };
    Ok(cast(cast(x, wide).op_with("TruncateMod", cast(y, wide)), own))
}

fn reduction(m: &Map) -> Option<One<'_>> {
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
            "L1" => x = x.abs(),
            "L2" | "SumSquare" => x = x.square(),
            "LogSumExp" => x = x.exp(),
            _ => {}
        }
        let is_bool = x.dtype() == DType::Bool;
        let op = match kind {
            "Max" if is_bool => "Any",
            "Min" if is_bool => "All",
            "Max" | "Min" | "Prod" | "Mean" => kind,
            _ => "Sum",
        };
        let y = m.reduce(op, x, &axes, keep);
        Ok(match kind {
            "L2" if y.dtype().is_integer() => cast(cast(y, DType::F64).sqrt(), y.dtype()),
            "L2" => y.sqrt(),
            "LogSum" | "LogSumExp" => y.log(),
            _ => y,
        })
    };
    Some(reduced())
}

fn other(m: &Map) -> Option<One<'_>> {
    Some(match m.node.op_type.as_str() {
        "Where" => m.x(0).and_then(|c| Ok(c.select(m.x(1)?, m.x(2)?))),
        "Clip" => clip(m),
        "Cast" => load::dtype(m.int("to", 0)).and_then(|to| cast_to(m, to)),
        "CastLike" => m.dtype(1).and_then(|to| cast_to(m, to)),
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

fn clip(m: &Map) -> One<'_> {
    let mut x = m.x(0)?;
    for (i, name, op) in [(1, "min", "Maximum"), (2, "max", "Minimum")] {
        let bound = if m.has(i) {
            Some(m.x(i)?)
        } else if m.has_attr(name) {
            Some(x.number(m.float(name, 0.0)))
        } else {
            None
        };
        if let Some(bound) = bound {
            x = x.op_with(op, bound);
        }
    }
    Ok(x)
}

fn cast_to(m: &Map, to: DType) -> One<'_> {
    let x = m.x(0)?;
    if (x.dtype() == DType::String) != (to == DType::String) {
        return Err(m.uncovered("between strings and numbers"));
    }
    Ok(cast(x, to))
}

fn arg(m: &Map) -> One<'_> {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    let at = axis(m.int("axis", 0), dims.len());
    let (op, axis) = (m.node.op_type.as_str(), m.scalar(at as i64));
    let found = if m.int("select_last_index", 0) != 0 {
        let back = x.op_with("ReverseV2", m.longs(&[at as i64]));
        (dims[at] as f64 - 1.0) - back.op_with(op, axis)
    } else {
        x.op_with(op, axis)
    };
    Ok(if m.int("keepdims", 1) != 0 { found.expand_dims(axis) } else { found })
}

fn cumsum(m: &Map) -> One<'_> {
    let at = m.scalar(m.ints(1)?.first().copied().unwrap_or(0));
    let flag = |name: &'static str| (name, Attr::Bool(m.int(name, 0) != 0));
    Ok(m.op_with("Cumsum", &[m.x(0)?, at], &["exclusive", "reverse"].map(flag)))
}

/// As numpy's: vectors are rows on the left, columns on the right.
fn matmul<'g>(m: &'g Map, x: Value<'g>, y: Value<'g>) -> One<'g> {
    let (dx, dy) = (m.shape(x)?, m.shape(y)?);
    let left = if dx.len() == 1 { m.reshape(x, &[1, dx[0]]) } else { x };
    let right = if dy.len() == 1 { m.reshape(y, &[dy[0], 1]) } else { y };
    let product = left.op_with("BatchMatMulV2", right);
    let mut dims = m.shape(product)?;
    let rank = dims.len();
    if dy.len() == 1 {
        dims.pop();
    }
    if dx.len() == 1 {
        dims.remove(dims.len() - 1 - usize::from(dy.len() > 1));
    }
    Ok(if dims.len() == rank { product } else { m.reshape(product, &dims) })
}

/// Input `i` as int32, less its zero point, input `zero`; that is one number, or one per row (`column` false) or column.
fn centred(m: &Map, i: usize, zero: usize, rows: bool) -> One<'_> {
    let x = cast(m.x(i)?, DType::I32);
    if !m.has(zero) {
        return Ok(x);
    }
    let mut z = cast(m.x(zero)?, DType::I32);
    if rows && m.dims(zero)?.len() == 1 && m.dims(zero)?[0] > 1 {
        z = m.reshape(z, &[m.dims(zero)?[0], 1]);
    }
    Ok(x - z)
}

fn matmul_integer(m: &Map) -> One<'_> {
    matmul(m, centred(m, 0, 2, true)?, centred(m, 1, 3, false)?)
}

fn gemm(m: &Map) -> One<'_> {
    let product = m.x(0)?.matmul_with(m.x(1)?, m.int("transA", 0) != 0, m.int("transB", 0) != 0);
    let y = m.float("alpha", 1.0) * product;
    Ok(if m.has(2) { y + m.float("beta", 1.0) * m.x(2)? } else { y })
}

fn einsum(m: &Map) -> One<'_> {
    let mut equation = m.text("equation", "").replace(' ', "");
    if !equation.contains("->") {
        // The output that numpy means: what is broadcast, then the letters that occur once, in order.
        let mut letters: Vec<char> = equation.chars().filter(|c| c.is_alphabetic()).collect();
        letters.sort_unstable();
        let once = letters.chunk_by(|a, b| a == b).filter(|same| same.len() == 1).flatten();
        let broadcast = if equation.contains("...") { "..." } else { "" };
        equation = format!("{equation}->{broadcast}{}", once.collect::<String>());
    }
    Ok(m.op_of_list("Einsum", &m.xs()?, &[], &[("equation", Attr::from(equation.as_str()))]))
}

/// A scale or zero point, shaped to run along attribute `axis` of an input of these dimensions.
fn along<'g>(m: &'g Map, i: usize, dims: &[usize]) -> One<'g> {
    let value = m.value(i)?;
    if value.len() == 1 {
        return Ok(m.reshape(m.x(i)?, &[]));
    }
    if value.shape().rank() != 1 || m.int("block_size", 0) != 0 {
        return Err(m.uncovered("in blocks"));
    }
    let mut shape = vec![1; dims.len()];
    shape[axis(m.int("axis", 1), dims.len())] = value.len();
    Ok(m.reshape(m.x(i)?, &shape))
}

fn dequantize(m: &Map) -> One<'_> {
    let dims = m.dims(0)?;
    let scale = along(m, 1, &dims)?;
    let mut x = cast(m.x(0)?, DType::I32);
    if m.has(2) {
        x = x - cast(along(m, 2, &dims)?, DType::I32);
    }
    Ok(cast(x, scale.dtype()) * scale)
}

/// `x` over the scale, input `scale`, rounded to even, with the zero point behind it, and saturated to its type.
fn quantize<'g>(m: &'g Map, x: Value<'g>, scale: usize) -> One<'g> {
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
    let mut y = cast(cast(x, s.dtype()) / s, DType::F32).op("Round");
    if m.has(scale + 1) {
        y = y + cast(along(m, scale + 1, &dims)?, DType::F32);
    }
    Ok(cast(m.op("ClipByValue", &[y, y.number(low), y.number(high)]), to))
}

fn qlinear_matmul(m: &Map) -> One<'_> {
    let product = matmul(m, centred(m, 0, 2, true)?, centred(m, 3, 5, false)?)?;
    let scale = cast(m.x(1)?, DType::F32) * cast(m.x(4)?, DType::F32);
    quantize(m, cast(product, DType::F32) * scale, 6)
}

/// uint8 over the range of x, which is made to contain 0; with scale and zero point.
fn dynamic_quantize(m: &Map) -> Mapped<'_> {
    let x = m.x(0)?;
    let axes: Vec<i64> = (0..m.dims(0)?.len() as i64).collect();
    let (zero, top) = (x.number(0.0), x.number(255.0));
    let low = m.reduce("Min", x, &axes, false).minimum(zero);
    let high = m.reduce("Max", x, &axes, false).maximum(zero);
    let scale = (high - low) / top;
    let point = m.op("ClipByValue", &[-low / scale, zero, top]).op("Round");
    let y = m.op("ClipByValue", &[(x / scale).op("Round") + point, zero, top]);
    Ok(vec![cast(y, DType::U8), scale, cast(point, DType::U8)])
}
