//! Element-wise kernels of complex numbers. complex64 computes as complex128 ([`super::narrow`]).

use super::elementwise::{call_compare, call1, call2, called, map_to, zip_to};
use super::support::{Built, cpu, kernel};
use super::{KERNEL_TABLES, KernelDef};
use engine_core::dtype::{Complex32, Complex64, DType, Element};

const ZERO: Complex64 = Complex64::new(0.0, 0.0);
const ONE: Complex64 = Complex64::new(1.0, 0.0);

#[linkme::distributed_slice(KERNEL_TABLES)]
static UNARY: &[KernelDef] = called! { call1;
    "Neg" [Complex64] 500 |x| -x;
    "Sign" [Complex64] 3000 |x| if x == ZERO { ZERO } else { x / x.norm() };
    "Square" [Complex64] 500 |x| x * x;
    "Reciprocal" [Complex64] 2000 |x| ONE / x;
    "Inv" [Complex64] 2000 |x| ONE / x;
    "Exp" [Complex64] 20_000 num_complex::Complex::exp;
    "Expm1" [Complex64] 20_000 exp_m1;
    "Log" [Complex64] 20_000 num_complex::Complex::ln;
    "Log1p" [Complex64] 20_000 ln_1p;
    "Sqrt" [Complex64] 20_000 num_complex::Complex::sqrt;
    "Rsqrt" [Complex64] 20_000 |x| ONE / x.sqrt();
    "Sin" [Complex64] 20_000 num_complex::Complex::sin;
    "Cos" [Complex64] 20_000 num_complex::Complex::cos;
    "Tan" [Complex64] 20_000 num_complex::Complex::tan;
    "Asin" [Complex64] 20_000 num_complex::Complex::asin;
    "Acos" [Complex64] 20_000 num_complex::Complex::acos;
    "Atan" [Complex64] 20_000 num_complex::Complex::atan;
    "Sinh" [Complex64] 20_000 num_complex::Complex::sinh;
    "Cosh" [Complex64] 20_000 num_complex::Complex::cosh;
    "Tanh" [Complex64] 20_000 num_complex::Complex::tanh;
    "Asinh" [Complex64] 20_000 num_complex::Complex::asinh;
    "Acosh" [Complex64] 20_000 num_complex::Complex::acosh;
    "Atanh" [Complex64] 20_000 num_complex::Complex::atanh;
    "Sigmoid" [Complex64] 20_000 |x| ONE / (ONE + (-x).exp());
    "Round" [Complex64] 1000 |x| Complex64::new(x.re.round_ties_even(), x.im.round_ties_even());
    "Conj" [Complex64] 500 |x| x.conj();
};

/// e^x - 1 with the digits of both where x is small: e^a cos b - 1 = (e^a - 1) cos b - 2 sin^2(b / 2).
fn exp_m1(x: Complex64) -> Complex64 {
    let half = (x.im / 2.0).sin();
    Complex64::new(x.re.exp_m1() * x.im.cos() - 2.0 * half * half, x.re.exp() * x.im.sin())
}

/// ln(1 + x) where x may be small: |1 + x|^2 = 1 + a (2 + a) + b^2.
fn ln_1p(x: Complex64) -> Complex64 {
    Complex64::new(0.5 * (x.re * (2.0 + x.re) + x.im * x.im).ln_1p(), x.im.atan2(1.0 + x.re))
}

fn pow(x: Complex64, y: Complex64) -> Complex64 {
    match (x == ZERO, y == ZERO) {
        (_, true) => ONE,
        (true, false) => ZERO,
        _ => x.powc(y),
    }
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static BINARY: &[KernelDef] = called! { call2;
    "Add" [Complex64] 500 |x, y| x + y;
    "AddV2" [Complex64] 500 |x, y| x + y;
    "Sub" [Complex64] 500 |x, y| x - y;
    "Mul" [Complex64] 800 |x, y| x * y;
    "MulNoNan" [Complex64] 800 |x, y| if y == ZERO { ZERO } else { x * y };
    "Div" [Complex64] 2000 |x, y| x / y;
    "RealDiv" [Complex64] 2000 |x, y| x / y;
    "DivNoNan" [Complex64] 2000 |x, y| if y == ZERO { ZERO } else { x / y };
    "Pow" [Complex64] 50_000 pow;
    "SquaredDifference" [Complex64] 1000 |x, y| (x - y) * (x - y).conj();
    "Xdivy" [Complex64] 2000 |x, y| if x == ZERO { ZERO } else { x / y };
    "Xlogy" [Complex64] 20_000 |x, y| if x == ZERO { ZERO } else { x * y.ln() };
    "Xlog1py" [Complex64] 20_000 |x, y| if x == ZERO { ZERO } else { x * ln_1p(y) };
    "TanhGrad" [Complex64] 1000 |y, dy| dy * (ONE - y * y);
    "SigmoidGrad" [Complex64] 1000 |y, dy| dy * y * (ONE - y);
    "SqrtGrad" [Complex64] 2000 |y, dy| if dy == ZERO { ZERO } else { dy * 0.5 / y.conj() };
    "RsqrtGrad" [Complex64] 2000 |y, dy| if dy == ZERO { ZERO } else { dy * -0.5 * (y * y * y).conj() };
    "InvGrad" [Complex64] 1000 |y, dy| if dy == ZERO { ZERO } else { -dy * (y * y).conj() };
    "ReciprocalGrad" [Complex64] 1000 |y, dy| if dy == ZERO { ZERO } else { -dy * (y * y).conj() };
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static COMPARISONS: &[KernelDef] = called! { call_compare;
    "Equal" [Complex64] 500 |x, y| x == y;
    "NotEqual" [Complex64] 500 |x, y| x != y;
};

/// A real function of complex numbers.
fn part<T: Element, U: Element>(f: fn(T) -> U) -> Built {
    kernel(move |c| {
        let y = map_to::<T, U>(c, c.input(0)?, 2000, f)?;
        c.set(0, y);
        Ok(())
    })
}

/// Complex numbers of two real ones, broadcast.
fn join<T: Element, U: Element>(f: fn(T, T) -> U) -> Built {
    kernel(move |c| {
        let z = zip_to::<T, U>(c, c.input(0)?, c.input(1)?, 500, f)?;
        c.set(0, z);
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static PARTS: &[KernelDef] = &[
    cpu("Real", ("T", &[DType::C64]), |_| part(|x: Complex32| x.re)),
    cpu("Real", ("T", &[DType::C128]), |_| part(|x: Complex64| x.re)),
    cpu("Imag", ("T", &[DType::C64]), |_| part(|x: Complex32| x.im)),
    cpu("Imag", ("T", &[DType::C128]), |_| part(|x: Complex64| x.im)),
    cpu("Angle", ("T", &[DType::C64]), |_| part(|x: Complex32| x.arg())),
    cpu("Angle", ("T", &[DType::C128]), |_| part(|x: Complex64| x.arg())),
    cpu("ComplexAbs", ("T", &[DType::C64]), |_| part(|x: Complex32| x.norm())),
    cpu("ComplexAbs", ("T", &[DType::C128]), |_| part(|x: Complex64| x.norm())),
    cpu("Complex", ("T", &[DType::F32]), |_| join(Complex32::new)),
    cpu("Complex", ("T", &[DType::F64]), |_| join(Complex64::new)),
];
