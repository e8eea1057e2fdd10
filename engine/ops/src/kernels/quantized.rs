//! Arithmetic on quantised numbers: products, sums, bias, rectifiers, and what brings 32 bits back to 8.

use super::broadcast::Broadcast;
use super::quantize::{Levels, float, levels, of_levels};
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::geometry::Partition;
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Sets outputs 1 and 2.
pub(super) fn set_range(c: &mut KernelContext<'_>, min: f32, max: f32) {
    c.set(1, Tensor::scalar(min));
    c.set(2, Tensor::scalar(max));
}

/// The range of products of two ranges in 32 bits.
pub(super) fn product_range(a: (Levels, f32, f32), b: (Levels, f32, f32)) -> (f32, f32) {
    let step = a.0.step(a.1, a.2) * b.0.step(b.1, b.2);
    (step * i32::MIN as f32, step * i32::MAX as f32)
}

fn matmul(node: &Node) -> Built {
    let (ta, tb) = (*node.flag("transpose_a")?, *node.flag("transpose_b")?);
    let (of_a, of_b) = (Levels::of(*node.dtype("T1")?)?, Levels::of(*node.dtype("T2")?)?);
    if *node.dtype("Toutput")? != DType::QI32 {
        return Err(KernelError::invalid("Toutput must be qint32"));
    }
    kernel(move |c| {
        let (a, b) = (c.input(0)?, c.input(1)?);
        let (&[ra, ca], &[rb, cb]) = (a.dims(), b.dims()) else {
            return Err(KernelError::invalid(format!("a and b must be matrices, got {} and {}", a.shape(), b.shape())));
        };
        let ((m, k), (k2, n)) = (if ta { (ca, ra) } else { (ra, ca) }, if tb { (cb, rb) } else { (rb, cb) });
        if k != k2 {
            return Err(KernelError::invalid(format!("inner dimensions differ: {k} and {k2}")));
        }
        let ranges = [float(c, 2)?, float(c, 3)?, float(c, 4)?, float(c, 5)?];
        let zero_a = of_a.unclamped(0.0, ranges[0], ranges[1]);
        let zero_b = of_b.unclamped(0.0, ranges[2], ranges[3]);
        let (x, y) = (levels(c, 0)?, levels(c, 1)?);
        let mut out = memory::filled(0i64, m.saturating_mul(n))?;
        for i in 0..m {
            for k in 0..k {
                let factor = x[if ta { k * ca + i } else { i * ca + k }] - zero_a;
                for (j, o) in out[i * n..(i + 1) * n].iter_mut().enumerate() {
                    *o += factor * (y[if tb { j * cb + k } else { k * cb + j }] - zero_b);
                }
            }
        }
        let product = of_levels(c, DType::QI32, Shape::new(&[m, n]), out)?;
        c.set(0, product);
        let (min, max) = product_range((of_a, ranges[0], ranges[1]), (of_b, ranges[2], ranges[3]));
        set_range(c, min, max);
        Ok(())
    })
}

/// The sum in a range so wide that many more can be added.
fn bias_add(node: &Node) -> Built {
    let (of_x, of_b) = (Levels::of(*node.dtype("T1")?)?, Levels::of(*node.dtype("T2")?)?);
    let to = *node.dtype("out_type")?;
    let of_out = Levels::of(to)?;
    kernel(move |c| {
        let (shape, n) = (c.input(0)?.shape().clone(), c.input(1)?.len());
        if shape.dims().last() != Some(&n) || c.input(1)?.shape().rank() != 1 {
            return Err(KernelError::invalid(format!("a bias of {n} for shape {shape}")));
        }
        let [x0, x1, b0, b1] = [float(c, 2)?, float(c, 3)?, float(c, 4)?, float(c, 5)?];
        let max = [x1, -x0, b1, -b0].into_iter().fold(f32::MIN, f32::max) * (1 << 17) as f32;
        let (x, b) = (levels(c, 0)?, levels(c, 1)?);
        let again =
            |of: Levels, level: i64, min: f32, top: f32| of_out.of_float(of.to_float(level, min, top), -max, max);
        let bias: Vec<i64> = b.iter().map(|v| again(of_b, *v, b0, b1)).collect();
        let sum = x.iter().enumerate().map(|(i, v)| again(of_x, *v, x0, x1) + bias[i % n]).collect();
        let out = of_levels(c, to, shape, sum)?;
        c.set(0, out);
        set_range(c, -max, max);
        Ok(())
    })
}

/// Levels of two inputs, broadcast against each other.
fn pairs(c: &KernelContext<'_>) -> Result<(Shape, Vec<[i64; 2]>), KernelError> {
    let along = Broadcast::new(c.input(0)?.shape(), c.input(1)?.shape())?;
    let (x, y) = (levels(c, 0)?, levels(c, 1)?);
    let pairs = along.positions()?.into_iter().map(|[i, j]| [x[i], y[j]]).collect();
    Ok((along.shape, pairs))
}

/// The sum, like the one with a bias in a range so wide that many more can be added. As TensorFlow's: the levels of an
/// operand are as far apart there as the first two are; a scalar has its level to itself.
fn add(node: &Node) -> Built {
    let (of_x, of_y, to) = (Levels::of(*node.dtype("T1")?)?, Levels::of(*node.dtype("T2")?)?, *node.dtype("Toutput")?);
    let of_out = Levels::of(to)?;
    kernel(move |c| {
        let [x0, x1, y0, y1] = [float(c, 2)?, float(c, 3)?, float(c, 4)?, float(c, 5)?];
        let max = [x1, -x0, y1, -y0].into_iter().fold(f32::MIN, f32::max) * (1 << 14) as f32;
        let operand = |i: usize, of: Levels, min: f32, top: f32| -> Result<_, KernelError> {
            let again = move |level: i64| of_out.unclamped(of.to_float(level, min, top), -max, max);
            let (first, step) = (again(0), again(1) - again(0));
            let is_scalar = c.input(i)?.len() == 1;
            Ok(move |level: i64| if is_scalar { again(level) } else { first + level * step })
        };
        let (x_again, y_again) = (operand(0, of_x, x0, x1)?, operand(1, of_y, y0, y1)?);
        let (shape, pairs) = pairs(c)?;
        let sum = pairs.iter().map(|[x, y]| (x_again(*x) + y_again(*y)).clamp(of_out.low, of_out.high)).collect();
        let out = of_levels(c, to, shape, sum)?;
        c.set(0, out);
        set_range(c, -max, max);
        Ok(())
    })
}

fn mul(node: &Node) -> Built {
    let (of_x, of_y, to) = (Levels::of(*node.dtype("T1")?)?, Levels::of(*node.dtype("T2")?)?, *node.dtype("Toutput")?);
    if to != DType::QI32 {
        return Err(KernelError::invalid("Toutput must be qint32"));
    }
    kernel(move |c| {
        let [x0, x1, y0, y1] = [float(c, 2)?, float(c, 3)?, float(c, 4)?, float(c, 5)?];
        let (zero_x, zero_y) = (of_x.unclamped(0.0, x0, x1), of_y.unclamped(0.0, y0, y1));
        let (shape, pairs) = pairs(c)?;
        let product = pairs.iter().map(|[x, y]| (x - zero_x) * (y - zero_y)).collect();
        let out = of_levels(c, to, shape, product)?;
        c.set(0, out);
        let (min, max) = product_range((of_x, x0, x1), (of_y, y0, y1));
        set_range(c, min, max);
        Ok(())
    })
}

/// Values of several ranges one behind the other, in one that holds them all (of signed levels: with 0 in its middle).
fn concat(node: &Node) -> Built {
    let (dtype, n) = (*node.dtype("T")?, usize::try_from(*node.int("N")?).unwrap_or(0));
    let of = Levels::of(dtype)?;
    kernel(move |c| {
        let shapes = (1..=n).map(|i| Ok(c.input(i)?.shape())).collect::<Result<Vec<_>, KernelError>>()?;
        let Partition { shape, outer, rows, .. } = Partition::concat(&shapes, i64::from(c.item::<i32>(0)?))?;
        let range = |i: usize| Ok::<_, KernelError>((float(c, 1 + n + i)?, float(c, 1 + 2 * n + i)?));
        let ranges = (0..n).map(range).collect::<Result<Vec<_>, _>>()?;
        let least = ranges.iter().fold(f32::INFINITY, |least, r| least.min(r.0));
        let most = ranges.iter().fold(f32::NEG_INFINITY, |most, r| most.max(r.1));
        let largest = least.abs().max(most.abs());
        let (low, high) = if of.low < 0 { (-largest, largest) } else { (least.min(0.0), most) };
        let mut parts = Vec::new();
        for (i, (min, max)) in ranges.iter().enumerate() {
            let own = (*min, *max) == (low, high);
            let again = |v: i64| if own { v } else { of.of_float_narrow(of.to_float_narrow(v, *min, *max), low, high) };
            parts.push((rows[i], levels(c, 1 + i)?.into_iter().map(again).collect::<Vec<i64>>()));
        }
        let row = |o: usize| parts.iter().flat_map(move |(row, part)| part[o * row..(o + 1) * row].iter().copied());
        let all = (0..outer).flat_map(row).collect();
        let out = of_levels(c, dtype, shape, all)?;
        c.set(0, out);
        set_range(c, low, high);
        Ok(())
    })
}

/// Between 0 and `top` (an input's value, or none).
fn relu(node: &Node, top: fn(&KernelContext<'_>) -> Result<Option<f32>, KernelError>, first: usize) -> Built {
    let of = Levels::of(*node.dtype("Tinput")?)?;
    let to = *node.dtype("out_type")?;
    kernel(move |c| {
        let (min, max) = (float(c, first)?, float(c, first + 1)?);
        let low = of.of_float(0.0, min, max);
        let high = top(c)?.map_or(of.high, |top| of.of_float(top, min, max));
        let all = levels(c, 0)?.into_iter().map(|v| v.max(low).min(high)).collect();
        let out = of_levels(c, to, c.input(0)?.shape().clone(), all)?;
        c.set(0, out);
        set_range(c, min, max);
        Ok(())
    })
}

/// Levels of one range in another. 32 to 8 unsigned bits goes in fixed point, as TensorFlow's.
fn requantized(
    of: Levels,
    from: DType,
    all: &[i64],
    (min, max): (f32, f32),
    to: DType,
    (low, high): (f32, f32),
) -> Result<Vec<i64>, KernelError> {
    let of_out = Levels::of(to)?;
    if (from, to) != (DType::QI32, DType::QU8) {
        return Ok(all.iter().map(|v| of_out.of_float(of.to_float(*v, min, max), low, high)).collect());
    }
    const SHIFT: u32 = 16;
    let one = f64::from(1u32 << SHIFT);
    let (range_in, range_out) = (f64::from(max - min), f64::from(high - low));
    if range_out == 0.0 {
        return Ok(vec![0; all.len()]);
    }
    let scale = (255.0 * one * range_in / range_out) as i64;
    let middle = f64::from(min + max) / 2.0;
    let offset = (f64::from((middle * f64::from((255.0 / range_out) as f32)) as f32) * one) as i64;
    let out_offset = (one * (f64::from(low) * 255.0) / range_out) as i64;
    let level = |v: &i64| {
        let fixed = ((i128::from(*v) * i128::from(scale)) >> 32) as i64 + offset;
        ((fixed - out_offset + (1 << (SHIFT - 1))) >> SHIFT).clamp(0, 255)
    };
    Ok(all.iter().map(level).collect())
}

fn requantize(node: &Node) -> Built {
    let (from, to) = (*node.dtype("Tinput")?, *node.dtype("out_type")?);
    let of = Levels::of(from)?;
    kernel(move |c| {
        let [min, max, low, high] = [float(c, 1)?, float(c, 2)?, float(c, 3)?, float(c, 4)?];
        if low > 0.0 || high < low {
            return Err(KernelError::invalid(format!("requested range {low} to {high} must contain 0")));
        }
        let all = requantized(of, from, &levels(c, 0)?, (min, max), to, (low, high))?;
        let out = of_levels(c, to, c.input(0)?.shape().clone(), all)?;
        c.set(0, out);
        set_range(c, low, high);
        Ok(())
    })
}

/// The range that the levels use, 0 included.
fn used_range(c: &KernelContext<'_>, of: Levels) -> Result<(f32, f32), KernelError> {
    let (all, min, max) = (levels(c, 0)?, float(c, 1)?, float(c, 2)?);
    let low = all.iter().copied().min().unwrap_or(of.high);
    let high = all.iter().copied().max().unwrap_or(of.low);
    Ok((of.to_float(low, min, max).min(0.0), of.to_float(high, min, max)))
}

fn requantization_range(node: &Node) -> Built {
    let of = Levels::of(*node.dtype("Tinput")?)?;
    kernel(move |c| {
        let (low, high) = used_range(c, of)?;
        c.set(0, Tensor::scalar(low));
        c.set(1, Tensor::scalar(high));
        Ok(())
    })
}

fn shrink(node: &Node) -> Built {
    let (from, to) = (*node.dtype("Tinput")?, *node.dtype("out_type")?);
    let of = Levels::of(from)?;
    kernel(move |c| {
        let (low, high) = used_range(c, of)?;
        let all = requantized(of, from, &levels(c, 0)?, (float(c, 1)?, float(c, 2)?), to, (low, high))?;
        let out = of_levels(c, to, c.input(0)?.shape().clone(), all)?;
        c.set(0, out);
        set_range(c, low, high);
        Ok(())
    })
}

fn reshape(c: &mut KernelContext<'_>) -> Computed {
    let wanted = c.ints(1)?;
    let x = c.take(0)?;
    let known: i64 = wanted.iter().filter(|d| **d != -1).product();
    let dim = |d: &i64| usize::try_from(if *d == -1 { x.len() as i64 / known.max(1) } else { *d });
    let dims: Result<Vec<usize>, _> = wanted.iter().map(dim).collect();
    let dims = dims.map_err(|_| KernelError::invalid(format!("{wanted:?} is not a shape")))?;
    let (min, max) = (c.take(2)?, c.take(3)?);
    c.set(0, x.into_shape(Shape::new(&dims))?);
    c.set(1, min);
    c.set(2, max);
    Ok(())
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static QUANTIZED: &[KernelDef] = &[
    cpu_any("QuantizedMatMul", matmul),
    cpu_any("QuantizedBiasAdd", bias_add),
    cpu_any("QuantizedAdd", add),
    cpu_any("QuantizedMul", mul),
    cpu_any("QuantizedConcat", concat),
    cpu_any("QuantizedRelu", |n| relu(n, |_| Ok(None), 1)),
    cpu_any("QuantizedRelu6", |n| relu(n, |_| Ok(Some(6.0)), 1)),
    cpu_any("QuantizedReluX", |n| relu(n, |c| float(c, 1).map(Some), 2)),
    cpu_any("Requantize", requantize),
    cpu_any("RequantizationRange", requantization_range),
    cpu_any("QuantizeDownAndShrinkRange", shrink),
    cpu_any("QuantizedReshape", |_| kernel(reshape)),
];
