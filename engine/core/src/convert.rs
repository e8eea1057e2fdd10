//! Numbers of any element type from and to a few wide types: the conversions of `Cast`, of narrow types' kernels, and
//! of whoever only wants a number.
//!
//! A tensor of integers converts exactly to i64 (u64 for uint64), one of floats to f64, a complex one to a pair of f64.
//! From there every element type is one rounding away; 16-bit floats round through f32, as TensorFlow's do. Floats out
//! of an integer's range saturate and NaN is 0, where C++ leaves it undefined.

use crate::buffer::Allocator;
use crate::dtype::{Complex32, Complex64, DType, Element, QInt8, QInt16, QInt32, QUInt8, QUInt16, bf16, f16};
use crate::tensor::{Tensor, TensorError};

/// A number that every element type can be made of: `f64`, `i64`, `u64`, `Complex64`.
pub trait Wide: Element {
    /// As one of the number types.
    fn to<T: Number>(self) -> T;
}

impl Wide for f64 {
    fn to<T: Number>(self) -> T {
        T::from_f64(self)
    }
}
impl Wide for i64 {
    fn to<T: Number>(self) -> T {
        T::from_i64(self)
    }
}
impl Wide for u64 {
    fn to<T: Number>(self) -> T {
        T::from_u64(self)
    }
}
impl Wide for Complex64 {
    fn to<T: Number>(self) -> T {
        T::from_complex(self)
    }
}

/// An element type that is a number (or a truth value, then 0 or 1).
pub trait Number: Element {
    /// The type that it converts to without loss.
    type Wide: Wide;
    /// Without loss.
    fn widen(self) -> Self::Wide;
    /// Rounded or saturated.
    fn from_f64(v: f64) -> Self;
    /// Wrapped or rounded.
    fn from_i64(v: i64) -> Self;
    /// Wrapped or rounded.
    fn from_u64(v: u64) -> Self;
    /// The real part, where the type is real.
    fn from_complex(v: Complex64) -> Self {
        Self::from_f64(v.re)
    }
}

macro_rules! primitives {
    ($($t:ty => $wide:ty),* $(,)?) => { $(
        impl Number for $t {
            type Wide = $wide;
            #[inline]
            fn widen(self) -> $wide {
                self as $wide
            }
            #[inline]
            fn from_f64(v: f64) -> $t {
                v as $t
            }
            #[inline]
            fn from_i64(v: i64) -> $t {
                v as $t
            }
            #[inline]
            fn from_u64(v: u64) -> $t {
                v as $t
            }
        }
    )* };
}
primitives!(f32 => f64, f64 => f64, i8 => i64, i16 => i64, i32 => i64, i64 => i64, u8 => i64, u16 => i64, u32 => i64,
    u64 => u64);

macro_rules! halves {
    ($($t:ty),*) => { $(
        impl Number for $t {
            type Wide = f64;
            #[inline]
            fn widen(self) -> f64 {
                f64::from(self.to_f32())
            }
            #[inline]
            fn from_f64(v: f64) -> $t {
                <$t>::from_f32(v as f32)
            }
            #[inline]
            fn from_i64(v: i64) -> $t {
                <$t>::from_f32(v as f32)
            }
            #[inline]
            fn from_u64(v: u64) -> $t {
                <$t>::from_f32(v as f32)
            }
        }
    )* };
}
halves!(f16, bf16);

macro_rules! quantized {
    ($($t:ident($of:ty)),*) => { $(
        impl Number for $t {
            type Wide = i64;
            #[inline]
            fn widen(self) -> i64 {
                i64::from(self.0)
            }
            #[inline]
            fn from_f64(v: f64) -> $t {
                $t(v as $of)
            }
            #[inline]
            fn from_i64(v: i64) -> $t {
                $t(v as $of)
            }
            #[inline]
            fn from_u64(v: u64) -> $t {
                $t(v as $of)
            }
        }
    )* };
}
quantized!(QInt8(i8), QUInt8(u8), QInt16(i16), QUInt16(u16), QInt32(i32));

impl Number for bool {
    type Wide = i64;
    #[inline]
    fn widen(self) -> i64 {
        i64::from(self)
    }
    #[inline]
    fn from_f64(v: f64) -> bool {
        v != 0.0
    }
    #[inline]
    fn from_i64(v: i64) -> bool {
        v != 0
    }
    #[inline]
    fn from_u64(v: u64) -> bool {
        v != 0
    }
    #[inline]
    fn from_complex(v: Complex64) -> bool {
        v != Complex64::new(0.0, 0.0)
    }
}

macro_rules! complex {
    ($($t:ident of $part:ty),*) => { $(
        impl Number for $t {
            type Wide = Complex64;
            #[inline]
            fn widen(self) -> Complex64 {
                Complex64::new(self.re.into(), self.im.into())
            }
            #[inline]
            fn from_f64(v: f64) -> $t {
                $t::new(v as $part, 0.0)
            }
            #[inline]
            fn from_i64(v: i64) -> $t {
                $t::new(v as $part, 0.0)
            }
            #[inline]
            fn from_u64(v: u64) -> $t {
                $t::new(v as $part, 0.0)
            }
            #[inline]
            fn from_complex(v: Complex64) -> $t {
                $t::new(v.re as $part, v.im as $part)
            }
        }
    )* };
}
complex!(Complex32 of f32, Complex64 of f64);

/// Calls `$f::<T>($args)` with the [`Number`] type of a dtype; `$else` for types that are no numbers.
macro_rules! with_number {
    ($dtype:expr, $f:ident($($arg:expr),*), $other:ident => $else:expr) => {
        match $dtype {
            $crate::dtype::DType::F32 => $f::<f32>($($arg),*),
            $crate::dtype::DType::F64 => $f::<f64>($($arg),*),
            $crate::dtype::DType::F16 => $f::<$crate::dtype::f16>($($arg),*),
            $crate::dtype::DType::BF16 => $f::<$crate::dtype::bf16>($($arg),*),
            $crate::dtype::DType::I8 => $f::<i8>($($arg),*),
            $crate::dtype::DType::I16 => $f::<i16>($($arg),*),
            $crate::dtype::DType::I32 => $f::<i32>($($arg),*),
            $crate::dtype::DType::I64 => $f::<i64>($($arg),*),
            $crate::dtype::DType::U8 => $f::<u8>($($arg),*),
            $crate::dtype::DType::U16 => $f::<u16>($($arg),*),
            $crate::dtype::DType::U32 => $f::<u32>($($arg),*),
            $crate::dtype::DType::U64 => $f::<u64>($($arg),*),
            $crate::dtype::DType::Bool => $f::<bool>($($arg),*),
            $crate::dtype::DType::C64 => $f::<$crate::dtype::Complex32>($($arg),*),
            $crate::dtype::DType::C128 => $f::<$crate::dtype::Complex64>($($arg),*),
            $crate::dtype::DType::QI8 => $f::<$crate::dtype::QInt8>($($arg),*),
            $crate::dtype::DType::QU8 => $f::<$crate::dtype::QUInt8>($($arg),*),
            $crate::dtype::DType::QI16 => $f::<$crate::dtype::QInt16>($($arg),*),
            $crate::dtype::DType::QU16 => $f::<$crate::dtype::QUInt16>($($arg),*),
            $crate::dtype::DType::QI32 => $f::<$crate::dtype::QInt32>($($arg),*),
            $other => $else,
        }
    };
}
pub(crate) use with_number;

/// The wide type that numbers of `dtype` convert to without loss; `None` for what is no number.
pub fn wide_of(dtype: DType) -> Option<DType> {
    fn of<T: Number>() -> Option<DType> {
        Some(<T::Wide as Element>::DTYPE)
    }
    with_number!(dtype, of(), _other => None)
}

/// The numbers of `from` as `to`, in fresh memory.
///
/// # Errors
/// One of the types is no number, or there is no memory.
pub fn convert(from: &Tensor, to: DType, allocator: &Allocator) -> Result<Tensor, TensorError> {
    let not_a_number = |got: DType| TensorError::DType { expected: DType::F64, got };
    let wide = wide_of(from.dtype()).ok_or_else(|| not_a_number(from.dtype()))?;
    let mut out = Tensor::with_room(to, from.shape().clone(), allocator)?;
    if from.dtype() == wide {
        narrow(from, &mut out)?;
    } else if to == wide {
        widen(from, &mut out)?;
    } else {
        let mut between = Tensor::with_room(wide, from.shape().clone(), allocator)?;
        widen(from, &mut between)?;
        narrow(&between, &mut out)?;
    }
    Ok(out)
}

/// Elements of a number type to their wide type.
fn widen(from: &Tensor, to: &mut Tensor) -> Result<(), TensorError> {
    fn of<T: Number>(from: &Tensor, to: &mut Tensor) -> Result<(), TensorError> {
        let from = from.slice::<T>()?;
        let to = to.slice_mut::<T::Wide>()?.unwrap_or_default();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.widen());
        Ok(())
    }
    with_number!(from.dtype(), of(from, to), other => Err(TensorError::DType { expected: DType::F64, got: other }))
}

/// Elements of a wide type to any number type.
fn narrow(from: &Tensor, to: &mut Tensor) -> Result<(), TensorError> {
    fn from_wide<W: Wide>(from: &Tensor, to: &mut Tensor) -> Result<(), TensorError> {
        fn of<W: Wide, T: Number>(from: &Tensor, to: &mut Tensor) -> Result<(), TensorError> {
            let from = from.slice::<W>()?;
            let to = to.slice_mut::<T>()?.unwrap_or_default();
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.to::<T>());
            Ok(())
        }
        macro_rules! of_w {
            ($t:ty) => {
                of::<W, $t>(from, to)
            };
        }
        match to.dtype() {
            DType::F32 => of_w!(f32),
            DType::F64 => of_w!(f64),
            DType::F16 => of_w!(f16),
            DType::BF16 => of_w!(bf16),
            DType::I8 => of_w!(i8),
            DType::I16 => of_w!(i16),
            DType::I32 => of_w!(i32),
            DType::I64 => of_w!(i64),
            DType::U8 => of_w!(u8),
            DType::U16 => of_w!(u16),
            DType::U32 => of_w!(u32),
            DType::U64 => of_w!(u64),
            DType::Bool => of_w!(bool),
            DType::C64 => of_w!(Complex32),
            DType::C128 => of_w!(Complex64),
            DType::QI8 => of_w!(QInt8),
            DType::QU8 => of_w!(QUInt8),
            DType::QI16 => of_w!(QInt16),
            DType::QU16 => of_w!(QUInt16),
            DType::QI32 => of_w!(QInt32),
            other => Err(TensorError::DType { expected: DType::F64, got: other }),
        }
    }
    match from.dtype() {
        DType::F64 => from_wide::<f64>(from, to),
        DType::I64 => from_wide::<i64>(from, to),
        DType::U64 => from_wide::<u64>(from, to),
        DType::C128 => from_wide::<Complex64>(from, to),
        other => Err(TensorError::DType { expected: DType::F64, got: other }),
    }
}

impl Tensor {
    /// A scalar of a number type, rounded, wrapped or saturated from `value`.
    ///
    /// # Errors
    /// `dtype` is no number type.
    pub fn number(dtype: DType, value: f64) -> Result<Tensor, TensorError> {
        fn of<T: Number>(value: f64) -> Result<Tensor, TensorError> {
            Ok(Tensor::scalar(T::from_f64(value)))
        }
        with_number!(dtype, of(value), other => Err(TensorError::DType { expected: DType::F64, got: other }))
    }

    /// The numbers (of complex ones the real parts) as f64.
    ///
    /// # Errors
    /// They are no numbers.
    pub fn to_f64(&self) -> Result<Vec<f64>, TensorError> {
        fn of<T: Number>(t: &Tensor) -> Result<Vec<f64>, TensorError> {
            Ok(t.slice::<T>()?.iter().map(|v| v.widen().to::<f64>()).collect())
        }
        with_number!(self.dtype(), of(self), other => Err(TensorError::DType { expected: DType::F64, got: other }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(from: &Tensor, to: DType) -> Tensor {
        convert(from, to, Allocator::host()).unwrap()
    }

    #[test]
    fn every_number_type_holds_small_integers() {
        let small = Tensor::vector(&[0i64, 1, 7, 100]);
        for from in DType::ALL.iter().copied().filter(|d| wide_of(*d).is_some()) {
            for to in DType::ALL.iter().copied().filter(|d| wide_of(*d).is_some()) {
                let there = cast(&cast(&small, from), to);
                let want: &[f64] = if from == DType::Bool || to == DType::Bool {
                    &[0.0, 1.0, 1.0, 1.0]
                } else {
                    &[0.0, 1.0, 7.0, 100.0]
                };
                assert_eq!((there.dtype(), there.to_f64().unwrap().as_slice()), (to, want), "{from} to {to}");
            }
        }
        assert!(convert(&Tensor::string("1"), DType::F32, Allocator::host()).is_err());
        assert!(convert(&small, DType::String, Allocator::host()).is_err());
    }

    #[test]
    fn large_numbers_wrap_saturate_or_round() {
        let big = Tensor::vector(&[u64::MAX, 1 << 63, 300]);
        assert_eq!(cast(&big, DType::F64).slice::<f64>().unwrap(), [2f64.powi(64), 2f64.powi(63), 300.0]);
        assert_eq!(cast(&big, DType::U8).slice::<u8>().unwrap(), [255, 0, 44]);
        let floats = Tensor::vector(&[1e30f32, -1e30, f32::NAN, -1.7]);
        assert_eq!(cast(&floats, DType::I32).slice::<i32>().unwrap(), [i32::MAX, i32::MIN, 0, -1]);
        assert_eq!(cast(&floats, DType::F16).slice::<f16>().unwrap()[..2], [f16::INFINITY, f16::NEG_INFINITY]);
        let complex = Tensor::vector(&[Complex32::new(2.5, -1.0), Complex32::new(0.0, 1.0)]);
        assert_eq!(cast(&complex, DType::F32).slice::<f32>().unwrap(), [2.5, 0.0]);
        assert_eq!(cast(&complex, DType::Bool).slice::<bool>().unwrap(), [true, true]);
    }
}
