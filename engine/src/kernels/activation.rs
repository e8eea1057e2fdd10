//! Kernels of the rectifiers' family, and their gradients.

use super::elementwise::{map1, map2};
use super::support::{cpu, kernel};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelDef};
use crate::dtype::{DType, Element};

/// Of the self-normalising rectifier: what outputs are multiplied by, and the limit at minus infinity.
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_LIMIT: f64 = 1.758_099_340_847_376_9;

macro_rules! lines {
    ($map:ident; $($op:literal [$($t:ty),+] $ps:literal $f:expr;)+) => {
        &[ $( $( cpu($op, ("T", &[<$t as Element>::DTYPE]), |_| kernel(|c| $map::<$t>(c, $ps, $f))), )+ )+ ]
    };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static FORWARD: &[KernelDef] = lines! { map1;
    "Relu6" [f32, f64] 300 |x| x.clamp(0.0, 6.0);
    "Relu6" [i32, i64] 300 |x| x.clamp(0, 6);
    "Elu" [f32, f64] 4000 |x| if x < 0.0 { x.exp_m1() } else { x };
    "Selu" [f32] 4000 |x| if x < 0.0 { SELU_LIMIT as f32 * x.exp_m1() } else { SELU_SCALE as f32 * x };
    "Selu" [f64] 4000 |x| if x < 0.0 { SELU_LIMIT * x.exp_m1() } else { SELU_SCALE * x };
    "Softplus" [f32, f64] 8000 |x| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() };
    "Softsign" [f32, f64] 500 |x| x / (x.abs() + 1.0);
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static BACK: &[KernelDef] = lines! { map2;
    "Relu6Grad" [f32, f64] 300 |dy, x| if x > 0.0 && x < 6.0 { dy } else { 0.0 };
    "Relu6Grad" [i32, i64] 300 |dy, x| if x > 0 && x < 6 { dy } else { 0 };
    "EluGrad" [f32, f64] 300 |dy, y| if y < 0.0 { dy * (y + 1.0) } else { dy };
    "SeluGrad" [f32] 300 |dy, y| if y < 0.0 { dy * (y + SELU_LIMIT as f32) } else { dy * SELU_SCALE as f32 };
    "SeluGrad" [f64] 300 |dy, y| if y < 0.0 { dy * (y + SELU_LIMIT) } else { dy * SELU_SCALE };
    "SoftplusGrad" [f32, f64] 4000 |dy, x| dy / ((-x).exp() + 1.0);
    "SoftsignGrad" [f32, f64] 500 |dy, x| dy / ((1.0 + x.abs()) * (1.0 + x.abs()));
};

macro_rules! leaky {
    ($($t:ty),+) => { &[ $(
        cpu("LeakyRelu", ("T", &[<$t as Element>::DTYPE]), |n| {
            let alpha = <$t>::from(*n.float("alpha")?);
            kernel(move |c| map1::<$t>(c, 300, |x| if x > 0.0 { x } else { alpha * x }))
        }),
        cpu("LeakyReluGrad", ("T", &[<$t as Element>::DTYPE]), |n| {
            let alpha = <$t>::from(*n.float("alpha")?);
            kernel(move |c| map2::<$t>(c, 300, |dy, x| if x > 0.0 { dy } else { alpha * dy }))
        }),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static LEAKY: &[KernelDef] = leaky!(f32, f64);

#[linkme::distributed_slice(KERNEL_TABLES)]
static NARROW: &[KernelDef] = &[
    widened("Relu6", ("T", DType::NARROW_REAL)),
    widened("Relu6Grad", ("T", DType::NARROW_REAL)),
    widened("LeakyRelu", ("T", DType::NARROW_FLOATS)),
    widened("LeakyReluGrad", ("T", DType::NARROW_FLOATS)),
    widened("Elu", ("T", DType::NARROW_FLOATS)),
    widened("EluGrad", ("T", DType::NARROW_FLOATS)),
    widened("Selu", ("T", DType::NARROW_FLOATS)),
    widened("SeluGrad", ("T", DType::NARROW_FLOATS)),
    widened("Softplus", ("T", DType::NARROW_FLOATS)),
    widened("SoftplusGrad", ("T", DType::NARROW_FLOATS)),
    widened("Softsign", ("T", DType::NARROW_FLOATS)),
    widened("SoftsignGrad", ("T", DType::NARROW_FLOATS)),
];
