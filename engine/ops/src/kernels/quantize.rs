//! Quantised numbers: integers that stand for floats by a range that travels alongside them.
//!
//! Every quantised type converts to i64 and back, so each kernel is written once. Formulas are TensorFlow's, in the
//! precision that it uses.

use super::support::{Built, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::DType;
use engine_core::geometry::Along;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// The integers of a quantised type.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    dtype: DType,
    bits: u32,
    pub low: i64,
    pub high: i64,
}

impl Levels {
    pub fn of(dtype: DType) -> Result<Levels, KernelError> {
        let (bits, signed) = match dtype {
            DType::QI8 => (8, true),
            DType::QU8 => (8, false),
            DType::QI16 => (16, true),
            DType::QU16 => (16, false),
            DType::QI32 => (32, true),
            other => return Err(KernelError::invalid(format!("{other} is not quantised"))),
        };
        let span = 1i64 << bits;
        let low = if signed { -span / 2 } else { 0 };
        Ok(Levels { dtype, bits, low, high: low + span - 1 })
    }

    fn is_signed(&self) -> bool {
        self.low < 0
    }

    /// How much one level stands for, where the range spans all of them.
    pub fn step(&self, min: f32, max: f32) -> f32 {
        ((f64::from(max) - f64::from(min)) / (self.high - self.low) as f64) as f32
    }

    /// The level of a float, which may lie outside.
    pub fn unclamped(&self, value: f32, min: f32, max: f32) -> i64 {
        if min == max {
            return 0;
        }
        let steps = 2f64.powi(self.bits as i32);
        let scale = steps / ((f64::from(max) - f64::from(min)) * (steps / (steps - 1.0)));
        let level = (f64::from(value) * scale).round() - (f64::from(min) * scale).round();
        level as i64 + self.low
    }

    /// The level of a float.
    pub fn of_float(&self, value: f32, min: f32, max: f32) -> i64 {
        self.unclamped(value, min, max).clamp(self.low, self.high)
    }

    /// The float that a level stands for.
    pub fn to_float(self, level: i64, min: f32, max: f32) -> f32 {
        if min == max {
            return min;
        }
        let steps = 2f64.powi(self.bits as i32);
        let scale = (f64::from(max) - f64::from(min)) * (steps / (steps - 1.0)) / steps;
        let least = f64::from((min / scale as f32).round() * scale as f32);
        (least + (level - self.low) as f64 * scale) as f32
    }

    /// As [`Levels::to_float`], all in f32: where TensorFlow does so for whole tensors at once.
    pub fn to_float_narrow(self, level: i64, min: f32, max: f32) -> f32 {
        if min == max {
            return min;
        }
        let scale = (f64::from(max - min) / (self.high - self.low) as f64) as f32;
        let least = (min / scale).round() * scale;
        level as f32 * scale + (least - self.low as f32 * scale)
    }

    /// As [`Levels::of_float`], all in f32.
    pub fn of_float_narrow(self, value: f32, min: f32, max: f32) -> i64 {
        if min == max {
            return self.low;
        }
        let scale = ((self.high - self.low) as f64 / f64::from(max - min)) as f32;
        let level = (value * scale).round() - ((min * scale).round() - self.low as f32);
        (level as i64).clamp(self.low, self.high)
    }
}

/// The levels in input `i`.
pub(super) fn levels(c: &KernelContext<'_>, i: usize) -> Result<Vec<i64>, KernelError> {
    Ok(convert(c.input(i)?, DType::I64, c.allocator)?.slice::<i64>()?.to_vec())
}

/// Levels as a tensor of a quantised type.
pub(super) fn of_levels(
    c: &KernelContext<'_>,
    dtype: DType,
    shape: Shape,
    all: Vec<i64>,
) -> Result<Tensor, KernelError> {
    Ok(convert(&Tensor::from_vec(shape, all)?, dtype, c.allocator)?)
}

/// The float in input `i`, a scalar or one element.
pub(super) fn float(c: &KernelContext<'_>, i: usize) -> Result<f32, KernelError> {
    c.item::<f32>(i)
}

/// How floats are spread over levels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    MinCombined,
    MinFirst,
    Scaled,
}

fn mode(node: &Node) -> Result<Mode, KernelError> {
    match node.text("mode")?.as_str() {
        "MIN_COMBINED" => Ok(Mode::MinCombined),
        "MIN_FIRST" => Ok(Mode::MinFirst),
        "SCALED" => Ok(Mode::Scaled),
        other => Err(KernelError::invalid(format!("mode {other} is not MIN_COMBINED, MIN_FIRST or SCALED"))),
    }
}

fn is_half_to_even(node: &Node) -> Result<bool, KernelError> {
    Ok(node.text("round_mode")? == "HALF_TO_EVEN")
}

/// Slices of a shape along an axis (`None`: one slice), as (slices, elements of each run, runs).
struct Channels {
    n: usize,
    inner: usize,
}

impl Channels {
    fn of(shape: &Shape, at: i64) -> Result<Channels, KernelError> {
        if at == -1 {
            return Ok(Channels { n: 1, inner: shape.n_elements().max(1) });
        }
        let Along { n, inner, .. } = Along::new(shape, at)?;
        Ok(Channels { n, inner: inner.max(1) })
    }

    fn of_element(&self, i: usize) -> usize {
        i / self.inner % self.n.max(1)
    }

    /// One float per channel from input `i`.
    fn ranges(&self, c: &KernelContext<'_>, i: usize) -> Result<Vec<f32>, KernelError> {
        let values = c.slice::<f32>(i)?;
        if values.len() != self.n {
            return Err(KernelError::invalid(format!("input {i} has {} ranges for {} slices", values.len(), self.n)));
        }
        Ok(values.to_vec())
    }
}

/// The scale that brings a range into levels with 0 staying 0, and the range that then fits.
fn scaled(levels: Levels, narrow: bool, min: f32, max: f32) -> (f32, f32, f32) {
    let (low, high) = ((levels.low + i64::from(narrow)) as f32, levels.high as f32);
    let side = |level: f32, bound: f32| if level * bound > 0.0 { level / bound } else { f32::MAX };
    let scale = side(low, min).min(side(high, max));
    (scale, low / scale, high / scale)
}

fn quantize(node: &Node) -> Built {
    let levels = Levels::of(*node.dtype("T")?)?;
    let (mode, to_even, narrow) = (mode(node)?, is_half_to_even(node)?, *node.flag("narrow_range")?);
    let (at, least) = (*node.int("axis")?, *node.float("ensure_minimum_range")?);
    if to_even && mode != Mode::Scaled {
        return Err(KernelError::invalid("round mode HALF_TO_EVEN is only for mode SCALED"));
    }
    let round = move |v: f32| if to_even { v.round_ties_even() } else { v.round() };
    kernel(move |c| {
        let (values, shape) = (c.slice::<f32>(0)?, c.input(0)?.shape().clone());
        let channels = Channels::of(&shape, at)?;
        let (mins, maxs) = (channels.ranges(c, 1)?, channels.ranges(c, 2)?);
        let mut ranges = Vec::with_capacity(mins.len());
        for (min, max) in mins.iter().zip(&maxs) {
            if !(min.is_finite() && max.is_finite()) || min > max {
                return Err(KernelError::invalid(format!("range {min} to {max} is none")));
            }
            let low = min.min(0.0);
            let epsilon = 1f32.max(min.abs().max(max.abs())) * least;
            ranges.push((low, max.max(low + epsilon).max(0.0)));
        }
        let scales: Vec<(f32, f32, f32)> = match mode {
            Mode::Scaled => ranges.iter().map(|(min, max)| scaled(levels, narrow, *min, *max)).collect(),
            _ => {
                let span = (levels.high - levels.low) as f64;
                ranges.iter().map(|(min, max)| ((span / f64::from(max - min)) as f32, *min, *max)).collect()
            }
        };
        let half = if levels.is_signed() { ((levels.high - levels.low + 1) as f64 / 2.0) as f32 } else { 0.0 };
        let level = |(i, v): (usize, &f32)| {
            let (scale, min, max) = scales[channels.of_element(i)];
            let inside = v.min(max).max(min);
            let level = match mode {
                Mode::MinCombined if levels.is_signed() => ((inside - min) * scale - half).round(),
                Mode::MinCombined => ((inside - min) * scale + 0.5).floor(),
                Mode::Scaled => round(inside * scale),
                Mode::MinFirst => return first(levels, *v, min, max),
            };
            (level as i64).clamp(levels.low, levels.high)
        };
        let all = values.iter().enumerate().map(level).collect();
        let out = of_levels(c, levels.dtype, shape, all)?;
        c.set(0, out);
        let bound = |f: fn(&(f32, f32, f32)) -> f32| scales.iter().map(f).collect::<Vec<f32>>();
        for (i, values) in [bound(|s| s.1), bound(|s| s.2)].into_iter().enumerate() {
            c.set(i + 1, if at == -1 { Tensor::scalar(values[0]) } else { Tensor::vector(&values) });
        }
        Ok(())
    })
}

/// A level in mode MIN_FIRST, in the precision in which TensorFlow's vectorised kernel computes it.
fn first(levels: Levels, value: f32, min: f32, max: f32) -> i64 {
    let steps = 2f64.powi(levels.bits as i32);
    let range = f64::from(max - min) * (steps / (steps - 1.0));
    let scale = (steps / range) as f32;
    let least = (f64::from(min) * (steps / range)).round() as f32;
    let level = (value * scale).round() - (least - levels.low as f32);
    (level.max(levels.low as f32).min(levels.high as f32) as i64).clamp(levels.low, levels.high)
}

fn dequantize(node: &Node) -> Built {
    let (levels_of, mode) = (Levels::of(*node.dtype("T")?)?, mode(node)?);
    let (narrow, at, to) = (*node.flag("narrow_range")?, *node.int("axis")?, *node.dtype("dtype")?);
    kernel(move |c| {
        let (all, shape) = (levels(c, 0)?, c.input(0)?.shape().clone());
        let channels = Channels::of(&shape, at)?;
        let (mins, maxs) = (channels.ranges(c, 1)?, channels.ranges(c, 2)?);
        let half = if levels_of.is_signed() { ((levels_of.high - levels_of.low + 1) as f64 / 2.0) as f32 } else { 0.0 };
        let value = |(i, v): (usize, &i64)| {
            let (min, max) = (mins[channels.of_element(i)], maxs[channels.of_element(i)]);
            match mode {
                Mode::MinCombined => (*v as f32 + half) * levels_of.step(min, max) + min,
                Mode::MinFirst => levels_of.to_float(*v, min, max),
                Mode::Scaled => {
                    let (low, high) = ((levels_of.low + i64::from(narrow)) as f32, levels_of.high as f32);
                    let scale = if levels_of.low == 0 { max / high } else { (min / low).max(max / high) };
                    *v as f32 * scale
                }
            }
        };
        let values: Vec<f32> = all.iter().enumerate().map(value).collect();
        let out = convert(&Tensor::from_vec(shape, values)?, to, c.allocator)?;
        c.set(0, out);
        Ok(())
    })
}

/// The bounds of a simulated quantisation: number of bits, signed, narrow.
#[derive(Clone, Copy)]
struct Simulated {
    low: f64,
    high: f64,
}

impl Simulated {
    fn new(bits: i64, signed: bool, narrow: bool) -> Result<Simulated, KernelError> {
        if !(1..=62).contains(&bits) || (signed && bits < 2) {
            return Err(KernelError::invalid(format!("num_bits {bits} is not supported")));
        }
        let half = (1i64 << (bits - 1)) as f64;
        let less = f64::from(u8::from(narrow));
        Ok(match signed {
            true => Simulated { low: -half + less, high: half - 1.0 },
            false => Simulated { low: 0.0, high: 2.0 * half - 1.0 },
        })
    }

    /// Scale, its inverse, and the range that the levels then span. The side that determines the scale stays as it is.
    fn range(self, min: f64, max: f64, limit: f64) -> (f64, f64, f64, f64) {
        let side = |level: f64, bound: f64| if level * bound > 0.0 { level / bound } else { limit };
        let (of_min, of_max) = (side(self.low, min), side(self.high, max));
        if of_min < of_max {
            let inverse = min / self.low;
            (of_min, inverse, min, self.high * inverse)
        } else {
            let inverse = max / self.high;
            (of_max, inverse, self.low * inverse, max)
        }
    }
}

/// Rounds to the levels and back. `bits`: which input has the number of bits, where it is no attribute.
fn there_and_back(node: &Node, bits: Option<usize>) -> Built {
    let (signed, given) = (*node.flag("signed_input")?, *node.flag("range_given")?);
    let (narrow, at, dtype) = (*node.flag("narrow_range")?, *node.int("axis")?, *node.dtype("T")?);
    let half_up = bits.is_none() && node.text("round_mode")? == "HALF_UP";
    let fixed = if bits.is_none() { *node.int("num_bits")? } else { 0 };
    let single = dtype != DType::F64;
    let limit = if single { f64::from(f32::MAX) } else { f64::MAX };
    // Each step rounds to f32 where the type is not f64.
    let fit = move |v: f64| if single { f64::from(v as f32) } else { v };
    kernel(move |c| {
        let n_bits = bits.map_or(Ok(fixed), |i| c.item::<i32>(i).map(i64::from))?;
        let simulated = Simulated::new(n_bits, signed, narrow)?;
        let (values, shape) = (c.input(0)?.to_f64()?, c.input(0)?.shape().clone());
        let channels = Channels::of(&shape, at)?;
        let bounds = if given {
            let (mins, maxs) = (c.input(1)?.to_f64()?, c.input(2)?.to_f64()?);
            if mins.len() != channels.n || maxs.len() != channels.n || mins.iter().zip(&maxs).any(|(a, b)| a > b) {
                return Err(KernelError::invalid("the range does not fit the input, or its minimum is the larger one"));
            }
            mins.into_iter().zip(maxs).collect()
        } else {
            let mut bounds = vec![(f64::INFINITY, f64::NEG_INFINITY); channels.n];
            for (i, v) in values.iter().enumerate() {
                let (min, max) = &mut bounds[channels.of_element(i)];
                (*min, *max) = (min.min(*v), max.max(*v));
            }
            bounds
        };
        let ranges: Vec<_> = bounds.iter().map(|(min, max)| simulated.range(*min, *max, limit)).collect();
        let one = |(i, v): (usize, &f64)| {
            let (scale, inverse, min, max) = ranges[channels.of_element(i)];
            let v = if given { v.min(fit(max)).max(fit(min)) } else { *v };
            let x = fit(v * fit(scale));
            let level = if half_up { (x + 0.5).floor() } else { x.round_ties_even() };
            level * fit(inverse)
        };
        let out: Vec<f64> = values.iter().enumerate().map(one).collect();
        let out = convert(&Tensor::from_vec(shape, out)?, dtype, c.allocator)?;
        c.set(0, out);
        Ok(())
    })
}

/// The gradient passes where the input lies within the range; the range has none.
fn there_and_back_grad(node: &Node) -> Built {
    let at = *node.int("axis")?;
    kernel(move |c| {
        let (grads, values) = (c.input(0)?.to_f64()?, c.input(1)?.to_f64()?);
        let (dtype, shape) = (c.input(0)?.dtype(), c.input(0)?.shape().clone());
        let channels = Channels::of(&shape, at)?;
        let (mins, maxs) = (c.input(2)?.to_f64()?, c.input(3)?.to_f64()?);
        if mins.len() != channels.n || maxs.len() != channels.n || grads.len() != values.len() {
            return Err(KernelError::invalid("gradient, input and range do not fit each other"));
        }
        let pass = |(i, (g, v)): (usize, (&f64, &f64))| {
            let channel = channels.of_element(i);
            if (mins[channel]..=maxs[channel]).contains(v) { *g } else { 0.0 }
        };
        let out: Vec<f64> = grads.iter().zip(&values).enumerate().map(pass).collect();
        let range_shape = c.input(2)?.shape().clone();
        let out = convert(&Tensor::from_vec(shape, out)?, dtype, c.allocator)?;
        c.set(0, out);
        for i in 1..3 {
            let zeros = Tensor::zeros(dtype, range_shape.clone(), c.allocator)?;
            c.set(i, zeros);
        }
        Ok(())
    })
}

/// Of a range that contains 0 exactly: the range moved so, and its step.
#[derive(Clone, Copy)]
struct Nudged {
    min: f32,
    max: f32,
    step: f32,
    is_nothing: bool,
}

impl Nudged {
    fn of(min: f32, max: f32, bits: i64, narrow: bool) -> Result<Nudged, KernelError> {
        if !(2..=16).contains(&bits) {
            return Err(KernelError::invalid(format!("num_bits {bits} is outside of [2, 16]")));
        }
        let (low, high) = (f32::from(u8::from(narrow)), ((1i64 << bits) - 1) as f32);
        let step = (max - min) / (high - low);
        let zero = (low - min / step).clamp(low, high).round();
        Ok(Nudged { min: (low - zero) * step, max: (high - zero) * step, step, is_nothing: min == 0.0 && max == 0.0 })
    }

    fn fake(self, v: f32) -> f32 {
        if self.is_nothing {
            return 0.0;
        }
        let inverse = 1.0 / self.step;
        let zero = (-self.min * inverse + 0.5).floor();
        let shifted = v.min(self.max).max(self.min) - self.min;
        (shifted * inverse - zero + 0.5).floor() * self.step
    }
}

/// Where the range of a fake quantisation comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RangeFrom {
    Attrs,
    /// Two inputs from this one on, scalars.
    Inputs,
    /// Two inputs, one value for each element of the last dimension.
    LastDimension,
}

/// The parameters of a fake quantisation: bits, narrow, and its range where attributes give it.
fn nudged(
    node: &Node,
    from: RangeFrom,
) -> Result<impl Fn(&KernelContext<'_>, usize) -> Result<Vec<Nudged>, KernelError> + use<>, KernelError> {
    let (bits, narrow) = (*node.int("num_bits")?, *node.flag("narrow_range")?);
    let fixed = match from {
        RangeFrom::Attrs => Some(Nudged::of(*node.float("min")?, *node.float("max")?, bits, narrow)?),
        _ => None,
    };
    Ok(move |c: &KernelContext<'_>, first: usize| {
        if let Some(fixed) = fixed {
            return Ok(vec![fixed]);
        }
        let (mins, maxs) = (c.slice::<f32>(first)?, c.slice::<f32>(first + 1)?);
        let wanted = if from == RangeFrom::Inputs { Some(1) } else { c.input(first - 1)?.dims().last().copied() };
        if Some(mins.len()) != wanted || mins.len() != maxs.len() {
            return Err(KernelError::invalid(format!("{} and {} ranges", mins.len(), maxs.len())));
        }
        mins.iter().zip(maxs).map(|(min, max)| Nudged::of(*min, *max, bits, narrow)).collect()
    })
}

fn fake_quant(node: &Node, from: RangeFrom) -> Built {
    let ranges = nudged(node, from)?;
    kernel(move |c| {
        let ranges = ranges(c, 1)?;
        let values = c.slice::<f32>(0)?;
        let out = c.filled::<f32>(c.input(0)?.shape().clone(), |out| {
            out.iter_mut().zip(values).enumerate().for_each(|(i, (o, v))| *o = ranges[i % ranges.len()].fake(*v));
            Ok(())
        })?;
        c.set(0, out);
        Ok(())
    })
}

/// Within the range the gradient passes to the input, below to the minimum, above to the maximum.
fn fake_quant_grad(node: &Node, from: RangeFrom) -> Built {
    let ranges = nudged(node, from)?;
    kernel(move |c| {
        let ranges = ranges(c, 2)?;
        let (grads, values) = (c.slice::<f32>(0)?, c.slice::<f32>(1)?);
        if grads.len() != values.len() {
            return Err(KernelError::invalid("gradients and inputs differ in shape"));
        }
        let (mut of_min, mut of_max) = (vec![0f32; ranges.len()], vec![0f32; ranges.len()]);
        let out = c.filled::<f32>(c.input(0)?.shape().clone(), |out| {
            for (i, o) in out.iter_mut().enumerate() {
                let (at, g, v) = (i % ranges.len(), grads[i], values[i]);
                let range = ranges[at];
                *o = 0.0;
                match () {
                    () if range.is_nothing || (range.min..=range.max).contains(&v) => *o = g,
                    () if v < range.min => of_min[at] += g,
                    () => of_max[at] += g,
                }
            }
            Ok(())
        })?;
        c.set(0, out);
        if c.outputs.len() > 1 {
            for (i, values) in [of_min, of_max].into_iter().enumerate() {
                let one = from == RangeFrom::Inputs;
                c.set(i + 1, if one { Tensor::scalar(values[0]) } else { Tensor::vector(&values) });
            }
        }
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static QUANTIZE: &[KernelDef] = &[
    cpu_any("QuantizeV2", quantize),
    cpu_any("Dequantize", dequantize),
    cpu_any("QuantizeAndDequantizeV2", |n| there_and_back(n, None)),
    cpu_any("QuantizeAndDequantizeV3", |n| there_and_back(n, Some(3))),
    cpu_any("QuantizeAndDequantizeV4", |n| there_and_back(n, None)),
    cpu_any("QuantizeAndDequantizeV4Grad", there_and_back_grad),
    cpu_any("FakeQuantWithMinMaxArgs", |n| fake_quant(n, RangeFrom::Attrs)),
    cpu_any("FakeQuantWithMinMaxVars", |n| fake_quant(n, RangeFrom::Inputs)),
    cpu_any("FakeQuantWithMinMaxVarsPerChannel", |n| fake_quant(n, RangeFrom::LastDimension)),
    cpu_any("FakeQuantWithMinMaxArgsGradient", |n| fake_quant_grad(n, RangeFrom::Attrs)),
    cpu_any("FakeQuantWithMinMaxVarsGradient", |n| fake_quant_grad(n, RangeFrom::Inputs)),
    cpu_any("FakeQuantWithMinMaxVarsPerChannelGradient", |n| fake_quant_grad(n, RangeFrom::LastDimension)),
];
