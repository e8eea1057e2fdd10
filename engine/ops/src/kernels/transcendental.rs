//! Element-wise kernels of f32 and f64 that the standard library or `libm` computes, one call per element: what is no
//! line of [`super::formula`].

use super::elementwise::{call_compare, call1, call2, called, map_to};
use super::formula::Real;
use super::support::{Built, cpu, kernel};
use super::{KERNEL_TABLES, KernelDef};
use engine_core::dtype::{DType, Element};

#[linkme::distributed_slice(KERNEL_TABLES)]
static UNARY: &[KernelDef] = called! { call1;
    "Exp" [f64] 4000 f64::exp;
    "Tan" [f32] 9000 f32::tan;
    "Tan" [f64] 12_000 f64::tan;
    "Asin" [f32] 6000 f32::asin;
    "Asin" [f64] 8000 f64::asin;
    "Acos" [f32] 6000 f32::acos;
    "Acos" [f64] 8000 f64::acos;
    "Atan" [f32] 6000 f32::atan;
    "Atan" [f64] 8000 f64::atan;
    "Sinh" [f32] 8000 f32::sinh;
    "Sinh" [f64] 10_000 f64::sinh;
    "Cosh" [f32] 8000 f32::cosh;
    "Cosh" [f64] 10_000 f64::cosh;
    "Tanh" [f64] 8000 f64::tanh;
    "Asinh" [f32] 10_000 f32::asinh;
    "Asinh" [f64] 10_000 libm::asinh;
    "Acosh" [f32] 10_000 f32::acosh;
    "Acosh" [f64] 10_000 libm::acosh;
    "Atanh" [f32] 10_000 f32::atanh;
    "Atanh" [f64] 10_000 libm::atanh;
    "Sigmoid" [f64] 6000 Real::vector_sigmoid;
    "Erfc" [f32] 8000 libm::erfcf;
    "Erfc" [f64] 10_000 libm::erfc;
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static BINARY: &[KernelDef] = called! { call2;
    "FloorMod" [f32] 4000 |x, y| { let r = x % y; if r != 0.0 && ((r < 0.0) != (y < 0.0)) { r + y } else { r } };
    "FloorMod" [f64] 4000 |x, y| { let r = x % y; if r != 0.0 && ((r < 0.0) != (y < 0.0)) { r + y } else { r } };
    "Mod" [f32] 4000 |x, y| x % y;
    "Mod" [f64] 4000 |x, y| x % y;
    "TruncateMod" [f32] 4000 |x, y| x % y;
    "TruncateMod" [f64] 4000 |x, y| x % y;
    "TruncateDiv" [f32] 1000 |x, y| (x / y).trunc();
    "TruncateDiv" [f64] 1000 |x, y| (x / y).trunc();
    "Atan2" [f32] 8000 f32::atan2;
    "Atan2" [f64] 8000 f64::atan2;
    "Xlog1py" [f32] 6000 |x, y| if x == 0.0 { 0.0 } else { x * y.ln_1p() };
    "Xlog1py" [f64] 6000 |x, y| if x == 0.0 { 0.0 } else { x * y.ln_1p() };
    "NextAfter" [f32] 2000 libm::nextafterf;
    "NextAfter" [f64] 2000 libm::nextafter;
};

/// A kernel that tests each element.
fn test<T: Element>(f: fn(T) -> bool) -> Built {
    kernel(move |c| {
        let y = map_to::<T, bool>(c, c.input(0)?, 500, f)?;
        c.set(0, y);
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static TESTS: &[KernelDef] = &[
    cpu("IsNan", ("T", &[DType::F32]), |_| test(f32::is_nan)),
    cpu("IsNan", ("T", &[DType::F64]), |_| test(f64::is_nan)),
    cpu("IsInf", ("T", &[DType::F32]), |_| test(f32::is_infinite)),
    cpu("IsInf", ("T", &[DType::F64]), |_| test(f64::is_infinite)),
    cpu("IsFinite", ("T", &[DType::F32]), |_| test(f32::is_finite)),
    cpu("IsFinite", ("T", &[DType::F64]), |_| test(f64::is_finite)),
    cpu("ApproximateEqual", ("T", &[DType::F32]), |n| {
        let tolerance = *n.float("tolerance")?;
        kernel(move |c| super::elementwise::compare::<f32>(c, 500, move |x, y| (x - y).abs() < tolerance))
    }),
    cpu("ApproximateEqual", ("T", &[DType::F64]), |n| {
        let tolerance = f64::from(*n.float("tolerance")?);
        kernel(move |c| super::elementwise::compare::<f64>(c, 500, move |x, y| (x - y).abs() < tolerance))
    }),
    cpu("ApproximateEqual", ("T", &[DType::I64]), |n| {
        let tolerance = f64::from(*n.float("tolerance")?);
        kernel(move |c| super::elementwise::compare::<i64>(c, 500, move |x, y| (x.abs_diff(y) as f64) < tolerance))
    }),
];

#[linkme::distributed_slice(KERNEL_TABLES)]
static BYTES: &[KernelDef] = called! { call_compare;
    "Less" [u64] 500 |x, y| x < y;
    "LessEqual" [u64] 500 |x, y| x <= y;
    "Greater" [u64] 500 |x, y| x > y;
    "GreaterEqual" [u64] 500 |x, y| x >= y;
};
