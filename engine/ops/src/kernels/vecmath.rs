//! `exp`, `tanh` and the logistic function over slices of f32, written so that the compiler vectorises them, and
//! compiled for the vector units that the machine turns out to have.
//!
//! exp(x) = 2^n * e^r with n = round(x / ln 2) and |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 7. Largest
//! relative error against f64: 2e-7. Subnormal results are flushed to zero.

use super::wide::update;

/// The largest x with a finite exp(x), and the smallest with a normal one.
const MAX_X: f32 = 88.722_83;
const MIN_X: f32 = -87.336_54;

#[inline(always)]
pub(super) fn exp1(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to an integer, which then lies in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HI: f32 = 0.693_359_4;
    const LN2_LO: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(MIN_X, MAX_X);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HI - n * LN2_LO;
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * r + c;
    }
    // 2^n in two factors, since n can be 128.
    let n = (shifted.to_bits() as i32) - (ROUND.to_bits() as i32);
    let half = n >> 1;
    let pow2 = |e: i32| f32::from_bits(((e + 127) as u32) << 23);
    let y = p * pow2(half) * pow2(n - half);
    let y = if x > MAX_X { f32::INFINITY } else { y };
    let y = if x < MIN_X { 0.0 } else { y };
    if x.is_nan() { x } else { y }
}

#[inline(always)]
pub(super) fn sigmoid1(x: f32) -> f32 {
    1.0 / (1.0 + exp1(-x))
}

/// The least x whose tanh TensorFlow's kernels give as 1, 2.7e-7 above the true value. From there on its gradient is 0 there, and so here.
const TANH_IS_ONE: f32 = 7.907_389_6;

#[inline(always)]
pub(super) fn tanh1(x: f32) -> f32 {
    // Near zero 1 - 2 / (e^2x + 1) would lose digits: there the odd Taylor polynomial of degree 9.
    let s = x * x;
    let small = x * (1.0 + s * (-1.0 / 3.0 + s * (2.0 / 15.0 + s * (-17.0 / 315.0 + s * (62.0 / 2835.0)))));
    let large = 1.0 - 2.0 / (exp1(2.0 * x) + 1.0);
    let large = if x.abs() >= TANH_IS_ONE { 1.0f32.copysign(x) } else { large };
    if x.abs() < 0.3 { small } else { large }
}

/// e^x of every value.
pub fn exp(values: &mut [f32]) {
    update(values, exp1);
}

/// tanh of every value.
pub fn tanh(values: &mut [f32]) {
    update(values, tanh1);
}

/// 1 / (1 + e^-x) of every value.
pub fn sigmoid(values: &mut [f32]) {
    update(values, sigmoid1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(f: fn(&mut [f32]), oracle: fn(f64) -> f64, tolerance: f64) {
        let xs: Vec<f32> = (-200_000..200_000).map(|i| i as f32 * 0.000_43).collect();
        let mut ys = xs.clone();
        f(&mut ys);
        for (x, y) in xs.iter().zip(&ys) {
            let want = oracle(f64::from(*x));
            let error = (f64::from(*y) - want).abs() / want.abs().max(1e-37);
            assert!(error <= tolerance || x == &0.0 && *y as f64 == want, "x {x}: {y}, expected {want}, error {error}");
        }
    }

    /// As TensorFlow 2.21: `tf.tanh(7.9073896) == 1`, and less than 1 for the number before it.
    #[test]
    fn tanh_saturates_where_tensorflows_does() {
        let below = f32::from_bits(TANH_IS_ONE.to_bits() - 1);
        let mut ys = [TANH_IS_ONE, -TANH_IS_ONE, f32::INFINITY, below, -below, f32::NAN];
        tanh(&mut ys);
        assert_eq!(ys[..3], [1.0, -1.0, 1.0]);
        assert!(ys[3] < 1.0 && ys[4] > -1.0 && ys[5].is_nan(), "{ys:?}");
    }

    #[test]
    fn close_to_f64() {
        check(exp, f64::exp, 2.5e-7);
        check(tanh, f64::tanh, 5e-7);
        check(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 5e-7);
    }

    #[test]
    fn the_ends_are_right() {
        let mut v = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 89.0, -104.0, 88.72, 0.0];
        exp(&mut v);
        assert_eq!((v[0], v[1], v[3], v[4], v[6]), (f32::INFINITY, 0.0, f32::INFINITY, 0.0, 1.0));
        assert!(v[2].is_nan() && v[5].is_finite());
        let mut v = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 50.0];
        tanh(&mut v);
        assert_eq!((v[0], v[1], v[3]), (1.0, -1.0, 1.0));
        assert!(v[2].is_nan());
    }
}
