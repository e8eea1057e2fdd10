//! The floating-point operations of PyTorch's ops, from the dimensions of their inputs.
//!
//! Counted are products of matrices, convolutions and attention, as PyTorch's own `FlopCounterMode` counts them: a
//! multiplication and an addition are two operations, masks are not subtracted. All other ops have none. The gradient
//! of a convolution in groups has the operations that it takes; `FlopCounterMode` counts the weight's gradient as if it
//! were in one group.

use super::args::OpArgs;

/// The operations of one execution of an op; `None` where the op is of no counted kind, or its inputs are not recorded.
pub(crate) fn flop(name: &str, args: &OpArgs<'_>) -> Option<f64> {
    let name = name.strip_prefix("aten::")?;
    let count: fn(&[Vec<i64>], &[String]) -> Option<f64> = match name {
        "mm" | "_scaled_mm" | "_int_mm" => |inputs, _| product(inputs.first()?, inputs.get(1)?),
        "addmm" => |inputs, _| product(inputs.get(1)?, inputs.get(2)?),
        "bmm" => |inputs, _| batched(inputs.first()?, inputs.get(1)?),
        "baddbmm" => |inputs, _| batched(inputs.get(1)?, inputs.get(2)?),
        "convolution" | "_convolution" => convolution,
        "convolution_backward" => convolution_gradient,
        _ if name.starts_with("_scaled_dot_product_") && name.ends_with("_backward") => {
            |inputs, _| attention_gradient(inputs)
        }
        _ if name.starts_with("_scaled_dot_product_") => |inputs, _| attention(inputs),
        _ => return None,
    };
    count(&args.shapes(), &args.values())
}

/// Whether the operations depend on inputs that are no tensors.
pub(crate) fn depends_on_values(name: &str) -> bool {
    name.contains("convolution")
}

/// [m, k] times [k, n].
fn product(a: &[i64], b: &[i64]) -> Option<f64> {
    let (&[m, k], &[_, n]) = (a, b) else { return None };
    Some(2.0 * all(&[m, k, n]))
}

/// [b, m, k] times [b, k, n].
fn batched(a: &[i64], b: &[i64]) -> Option<f64> {
    let (&[batch, m, k], &[_, _, n]) = (a, b) else { return None };
    Some(2.0 * all(&[batch, m, k, n]))
}

fn all(dims: &[i64]) -> f64 {
    dims.iter().map(|dim| *dim as f64).product()
}

/// Input, weight, bias, stride, padding, dilation, transposed, output padding, groups.
fn convolution(inputs: &[Vec<i64>], values: &[String]) -> Option<f64> {
    let (input, weight) = (inputs.first()?, inputs.get(1)?);
    let (size, filter) = (input.get(2..)?, weight.get(2..)?);
    // For each point of the output the filter is applied; transposed, for each point of the input.
    let points = if values.get(6)? == "True" {
        all(size)
    } else {
        let [stride, padding, dilation] =
            [3, 4, 5].map(|i| values.get(i).map(|text| numbers(text)).unwrap_or_default());
        let points = size.iter().zip(filter).enumerate().map(|(axis, (size, filter))| {
            let (stride, padding) = (along(&stride, axis, 1), along(&padding, axis, 0));
            let dilation = along(&dilation, axis, 1);
            ((size + 2 * padding - dilation * (filter - 1) - 1) / stride.max(1) + 1) as f64
        });
        if stride.is_empty() {
            return None;
        }
        points.product()
    };
    Some(2.0 * *input.first()? as f64 * points * all(weight))
}

/// The output's gradient, input, weight, bias, stride, padding, dilation, transposed, output padding, groups, and which
/// gradients are computed: the input's, the weight's, the bias'. The first two take as many operations as the
/// convolution.
fn convolution_gradient(inputs: &[Vec<i64>], values: &[String]) -> Option<f64> {
    let (gradient, input, weight) = (inputs.first()?, inputs.get(1)?, inputs.get(2)?);
    let points = if values.get(7)? == "True" { input.get(2..)? } else { gradient.get(2..)? };
    let n_computed = values.get(10)?.split(',').take(2).filter(|part| part.contains("True")).count();
    Some(2.0 * *input.first()? as f64 * all(points) * all(weight) * n_computed as f64)
}

/// The numbers in `[1, 1]`.
fn numbers(text: &str) -> Vec<i64> {
    text.trim_matches(['[', ']']).split(',').filter_map(|part| part.trim().parse().ok()).collect()
}

/// A parameter of an axis: one for each, or one for all.
fn along(values: &[i64], axis: usize, default: i64) -> i64 {
    values.get(axis).or(values.first()).copied().unwrap_or(default)
}

/// Queries [b, h, q, d], keys [b, h, k, d], values [b, h, k, v]: batch, heads, positions, and the products' inner sizes.
fn attention_sizes(inputs: &[Vec<i64>]) -> Option<(f64, [f64; 4])> {
    let [query, key, value, ..] = inputs else { return None };
    let (&[b, h, q, d], &[_, _, k, _], &[_, _, _, v]) = (&query[..], &key[..], &value[..]) else { return None };
    Some((all(&[b, h]), [q, k, d, v].map(|size| size as f64)))
}

fn attention(inputs: &[Vec<i64>]) -> Option<f64> {
    let (batch, [q, k, d, v]) = attention_sizes(inputs)?;
    Some(2.0 * batch * q * k * (d + v))
}

/// The scores are computed again; then the gradients of values, scores, queries and keys.
fn attention_gradient(inputs: &[Vec<i64>]) -> Option<f64> {
    let (batch, [q, k, d, v]) = attention_sizes(inputs.get(1..)?)?;
    Some(2.0 * batch * q * k * (3.0 * d + 2.0 * v))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, dims: &str, values: &str) -> Option<f64> {
        let text = format!(r#"{{"Input Dims": {dims}, "Concrete Inputs": {values}}}"#);
        flop(name, &OpArgs::parse(&text).unwrap())
    }

    #[test]
    fn ops_by_hand() {
        assert_eq!(of("aten::mm", "[[2, 3], [3, 5]]", "[]"), Some(60.0));
        assert_eq!(of("aten::addmm", "[[5], [2, 3], [3, 5], [], []]", "[]"), Some(60.0));
        assert_eq!(of("aten::baddbmm", "[[7, 2, 5], [7, 2, 3], [7, 3, 5]]", "[]"), Some(420.0));
        // One image of 4 x 4, 3 channels to 8, filter 3 x 3, stride 2, padding 1: four points.
        let values = r#"["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]"#;
        let forward = of("aten::convolution", "[[1, 3, 4, 4], [8, 3, 3, 3], [8], [], [], [], [], [], []]", values);
        assert_eq!(forward, Some(2.0 * 4.0 * 216.0));
        let values = r#"["", "", "", "[8]", "[2]", "[1]", "[1]", "False", "[0]", "1", "[False, True, True]"]"#;
        let backward = of("aten::convolution_backward", "[[1, 8, 2, 2], [1, 3, 4, 4], [8, 3, 3, 3]]", values);
        assert_eq!(backward, forward);
        let shapes = "[[1, 2, 10, 16], [1, 2, 20, 16], [1, 2, 20, 32]]";
        assert_eq!(of("aten::_scaled_dot_product_flash_attention", shapes, "[]"), Some(2.0 * 2.0 * 200.0 * 48.0));
    }

    #[test]
    fn what_is_not_counted_has_none() {
        assert_eq!(of("aten::add", "[[2, 3], [2, 3]]", "[]"), None);
        assert_eq!(of("aten::mm", "[[2, 3]]", "[]"), None);
        assert_eq!(of("aten::mm", "[[2, 3], []]", "[]"), None);
        assert_eq!(of("aten::convolution", "[[1, 3, 4, 4], [8, 3, 3, 3]]", "[]"), None);
        assert_eq!(of("MmBackward0", "[[2, 3], [3, 5]]", "[]"), None);
    }
}
