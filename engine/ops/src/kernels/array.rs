//! Kernels of array ops that make tensors, return shapes, or change shapes without moving elements.

use super::broadcast::Broadcast;
use super::layout::viewed;
use super::support::{Built, Computed, cheap, cpu, cpu_any, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::{DType, Element};
use engine_core::geometry::{View, axis, one, reshaped};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static ARRAY: &[KernelDef] = &[
    cpu_any("Const", |n| {
        let (value, dtype) = (n.tensor("value")?.clone(), *n.dtype("dtype")?);
        if value.dtype() != dtype {
            return Err(KernelError::invalid(format!("the value is {}, attribute dtype is {dtype}", value.dtype())));
        }
        cheap(move |c| {
            c.set(0, value.clone());
            Ok(())
        })
    }),
    cpu_any("Placeholder", |n| {
        let dtype = *n.dtype("dtype")?;
        let shape = n.shape("shape")?.clone();
        cheap(move |_| Err(KernelError::invalid(format!("feed the placeholder with a {dtype} of shape {shape}"))))
    }),
    cpu_any("Shape", |n| integers(n, |t| t.dims().to_vec(), false)),
    cpu_any("Size", |n| integers(n, |t| vec![t.len()], true)),
    cpu_any("Rank", |_| {
        cheap(|c| {
            let rank = c.input(0)?.shape().rank();
            c.set(0, Tensor::scalar(rank as i32));
            Ok(())
        })
    }),
    cpu_any("Reshape", |_| cheap(reshape)),
    cpu_any("ExpandDims", |_| cheap(expand_dims)),
    cpu_any("Squeeze", squeeze),
    cpu_any("Fill", |_| kernel(fill)),
    cpu_any("ZerosLike", |_| {
        kernel(|c| {
            let x = c.input(0)?;
            let zeros = match x.as_list() {
                Ok(list) => super::tensor_list::zeros_like(list, c.allocator)?,
                Err(_) => Tensor::zeros(x.dtype(), x.shape().clone(), c.allocator)?,
            };
            c.set(0, zeros);
            Ok(())
        })
    }),
    cpu_any("OnesLike", |_| kernel(ones_like)),
    cpu_any("BroadcastGradientArgs", |_| cheap(broadcast_gradient_args)),
    cpu("Range", ("Tidx", &[DType::F32, DType::F64, DType::I32, DType::I64]), |_| kernel(range)),
    widened("Range", ("Tidx", &[DType::F16, DType::BF16, DType::I8, DType::I16, DType::U16, DType::U32, DType::U64])),
    cpu_any("Cast", cast),
];

/// Integers about the input, of the type that attribute `out_type` asks for.
fn integers(node: &Node, of: fn(&Tensor) -> Vec<usize>, scalar: bool) -> Built {
    let long = *node.dtype("out_type")? == DType::I64;
    cheap(move |c| {
        let values = of(c.input(0)?);
        let out = match (long, i32::try_from(values.iter().copied().max().unwrap_or(0))) {
            (true, _) => Tensor::vector(&values.iter().map(|v| *v as i64).collect::<Vec<_>>()),
            (false, Ok(_)) => Tensor::vector(&values.iter().map(|v| *v as i32).collect::<Vec<_>>()),
            (false, Err(_)) => return Err(KernelError::invalid("the sizes do not fit int32: ask for out_type int64")),
        };
        c.set(0, if scalar { out.into_shape(Shape::scalar())? } else { out });
        Ok(())
    })
}

fn reshape(c: &mut KernelContext<'_>) -> Computed {
    let shape = reshaped(c.input(0)?.shape(), &c.ints(1)?)?;
    let out = c.take(0)?.into_shape(shape)?;
    c.set(0, out);
    Ok(())
}

fn expand_dims(c: &mut KernelContext<'_>) -> Computed {
    let at = one("the dimension", &c.ints(1)?)?;
    let x = c.take(0)?;
    let mut dims = x.dims().to_vec();
    dims.insert(axis(at, dims.len() + 1)?, 1);
    let out = x.into_shape(Shape::new(&dims))?;
    c.set(0, out);
    Ok(())
}

fn squeeze(node: &Node) -> Built {
    let axes = node.ints("squeeze_dims")?.clone();
    cheap(move |c| {
        let x = c.take(0)?;
        let rank = x.shape().rank();
        let chosen = axes.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
        if let Some(a) = chosen.iter().find(|a| x.dims()[**a] != 1) {
            return Err(KernelError::invalid(format!("cannot squeeze axis {a} of {}: it is not 1", x.shape())));
        }
        let gone = |i: usize, d: usize| if chosen.is_empty() { d == 1 } else { chosen.contains(&i) };
        let dims: Vec<usize> = x.dims().iter().enumerate().filter(|(i, d)| !gone(*i, **d)).map(|(_, d)| *d).collect();
        let out = x.into_shape(Shape::new(&dims))?;
        c.set(0, out);
        Ok(())
    })
}

fn fill(c: &mut KernelContext<'_>) -> Computed {
    let out = viewed(c, c.input(1)?, &super::measure::fill(c)?)?;
    c.set(0, out);
    Ok(())
}

fn ones_like(c: &mut KernelContext<'_>) -> Computed {
    let (x, dtype) = (c.input(0)?, c.input(0)?.dtype());
    let one = Tensor::number(dtype, 1.0);
    let one = one.map_err(|_| KernelError::invalid(format!("there is no one of type {dtype}")))?;
    let out = viewed(c, &one, &View::repeated(x.shape()))?;
    c.set(0, out);
    Ok(())
}

/// For each operand, the axes of the output along which it was repeated: those its gradient is summed over.
fn broadcast_gradient_args(c: &mut KernelContext<'_>) -> Computed {
    let shapes = [c.shape_input(0)?, c.shape_input(1)?];
    let long = c.input(0)?.dtype() == DType::I64;
    let full = Broadcast::new(&shapes[0], &shapes[1])?.shape;
    for (k, shape) in shapes.iter().enumerate() {
        let missing = full.rank() - shape.rank();
        let repeated = |i: &usize| *i < missing || (shape.dims()[i - missing] == 1 && full.dims()[*i] != 1);
        // As TensorFlow: an axis that is 1 in both operands is listed too, where the operand has it only implicitly.
        let axes: Vec<usize> = (0..full.rank()).filter(repeated).collect();
        let out = match long {
            true => Tensor::vector(&axes.iter().map(|a| *a as i64).collect::<Vec<_>>()),
            false => Tensor::vector(&axes.iter().map(|a| *a as i32).collect::<Vec<_>>()),
        };
        c.set(k, out);
    }
    Ok(())
}

fn range(c: &mut KernelContext<'_>) -> Computed {
    macro_rules! of {
        ($t:ty, $n:expr) => {{
            let (start, limit, delta) = (c.item::<$t>(0)?, c.item::<$t>(1)?, c.item::<$t>(2)?);
            if delta == (0 as $t) {
                return Err(KernelError::invalid("delta must not be 0"));
            }
            if (delta > (0 as $t) && start > limit) || (delta < (0 as $t) && start < limit) {
                let text = format!("limit {limit} is not reached from {start} in steps of {delta}");
                return Err(KernelError::invalid(text));
            }
            let n: f64 = $n(start, limit, delta);
            if n > (1u64 << 40) as f64 {
                return Err(KernelError::invalid(format!("a range of {n} elements is too long")));
            }
            c.filled::<$t>(Shape::new(&[n as usize]), |o| {
                o.iter_mut().enumerate().for_each(|(i, v)| *v = start + i as $t * delta);
                Ok(())
            })
        }};
    }
    let whole = |s: i64, l: i64, d: i64| {
        let (s, l, d) = (i128::from(s), i128::from(l), i128::from(d));
        (((l - s) * d.signum() + d.abs() - 1) / d.abs()) as f64
    };
    let out = match c.input(0)?.dtype() {
        DType::I32 => of!(i32, |s, l, d| whole(i64::from(s), i64::from(l), i64::from(d))),
        DType::I64 => of!(i64, whole),
        DType::F32 => of!(f32, |s: f32, l: f32, d: f32| f64::from(((l - s) / d).ceil().max(0.0))),
        _ => of!(f64, |s: f64, l: f64, d: f64| ((l - s) / d).ceil().max(0.0)),
    }?;
    c.set(0, out);
    Ok(())
}

/// Conversions between number types as Rust's `as` (which saturates where C++ leaves it undefined).
fn cast(node: &Node) -> Built {
    let (from, to) = (*node.dtype("SrcT")?, *node.dtype("DstT")?);
    if from == to {
        return cheap(|c| {
            let x = c.take(0)?;
            c.set(0, x);
            Ok(())
        });
    }
    macro_rules! to {
        ($c:expr, $s:ty) => {
            match to {
                DType::F32 => convert::<$s, f32>($c, |v| v as f32),
                DType::F64 => convert::<$s, f64>($c, |v| v as f64),
                DType::I32 => convert::<$s, i32>($c, |v| v as i32),
                DType::I64 => convert::<$s, i64>($c, |v| v as i64),
                _ => convert_any($c, to),
            }
        };
    }
    kernel(move |c| match from {
        DType::F32 => to!(c, f32),
        DType::F64 => to!(c, f64),
        DType::I32 => to!(c, i32),
        DType::I64 => to!(c, i64),
        DType::Bool if to == DType::F32 => convert::<bool, f32>(c, |v| f32::from(u8::from(v))),
        DType::U8 if to == DType::F32 => convert::<u8, f32>(c, f32::from),
        _ => convert_any(c, to),
    })
}

/// Between any two number types.
fn convert_any(c: &mut KernelContext<'_>, to: DType) -> Computed {
    let from = c.input(0)?.dtype();
    let out = engine_core::convert::convert(c.input(0)?, to, c.allocator);
    let out = out.map_err(|e| match e {
        engine_core::tensor::TensorError::DType { .. } => KernelError::invalid(format!("cannot cast {from} to {to}")),
        other => other.into(),
    })?;
    c.set(0, out);
    Ok(())
}

fn convert<T: Element, U: Element>(c: &mut KernelContext<'_>, f: fn(T) -> U) -> Computed {
    let out = super::elementwise::map_to::<T, U>(c, c.input(0)?, 400, f)?;
    c.set(0, out);
    Ok(())
}
