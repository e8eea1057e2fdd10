//! Element types, numbered as TensorFlow's `DataType`, and the Rust types that stand for them.

use std::fmt;
use std::num::Wrapping;

pub use half::{bf16, f16};
pub use num_complex::{Complex32, Complex64};

/// One line per type: variant, TensorFlow's number and name, bytes of an element in a buffer.
macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $size:literal;)+) => {
        /// The element type of a tensor. The discriminants are those of TensorFlow's `DataType`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DType {
            $($(#[$doc])* $variant = $number,)+
        }

        impl DType {
            /// All types, in the order of their numbers.
            pub const ALL: &[DType] = &[$(DType::$variant),+];

            /// TensorFlow's name: `float`, `double`, `int32`, ...
            pub fn name(self) -> &'static str {
                match self {
                    $(DType::$variant => $name,)+
                }
            }

            /// Bytes of one element in a buffer; 0 for strings, resources and variants, which do not live in one.
            #[inline]
            pub fn size(self) -> usize {
                match self {
                    $(DType::$variant => $size,)+
                }
            }
        }
    };
}

dtypes! {
    /// 32-bit IEEE float, `DT_FLOAT`.
    F32 = 1, "float", 4;
    /// 64-bit IEEE float, `DT_DOUBLE`.
    F64 = 2, "double", 8;
    /// 32-bit signed integer, `DT_INT32`.
    I32 = 3, "int32", 4;
    /// 8-bit unsigned integer, `DT_UINT8`.
    U8 = 4, "uint8", 1;
    /// 16-bit signed integer, `DT_INT16`.
    I16 = 5, "int16", 2;
    /// 8-bit signed integer, `DT_INT8`.
    I8 = 6, "int8", 1;
    /// A sequence of bytes, `DT_STRING`.
    String = 7, "string", 0;
    /// Two 32-bit floats, real and imaginary part, `DT_COMPLEX64`.
    C64 = 8, "complex64", 8;
    /// 64-bit signed integer, `DT_INT64`.
    I64 = 9, "int64", 8;
    /// A truth value, one byte, `DT_BOOL`.
    Bool = 10, "bool", 1;
    /// Quantised, signed, 8 bits, `DT_QINT8`.
    QI8 = 11, "qint8", 1;
    /// Quantised, unsigned, 8 bits, `DT_QUINT8`.
    QU8 = 12, "quint8", 1;
    /// Quantised, signed, 32 bits, `DT_QINT32`.
    QI32 = 13, "qint32", 4;
    /// 16-bit float with f32's exponent, `DT_BFLOAT16`.
    BF16 = 14, "bfloat16", 2;
    /// Quantised, signed, 16 bits, `DT_QINT16`.
    QI16 = 15, "qint16", 2;
    /// Quantised, unsigned, 16 bits, `DT_QUINT16`.
    QU16 = 16, "quint16", 2;
    /// 16-bit unsigned integer, `DT_UINT16`.
    U16 = 17, "uint16", 2;
    /// Two 64-bit floats, real and imaginary part, `DT_COMPLEX128`.
    C128 = 18, "complex128", 16;
    /// 16-bit IEEE float, `DT_HALF`.
    F16 = 19, "half", 2;
    /// A handle to state held by a resource manager, `DT_RESOURCE`.
    Resource = 20, "resource", 0;
    /// A value of a type that only some ops know (lists of tensors), `DT_VARIANT`.
    Variant = 21, "variant", 0;
    /// 32-bit unsigned integer, `DT_UINT32`.
    U32 = 22, "uint32", 4;
    /// 64-bit unsigned integer, `DT_UINT64`.
    U64 = 23, "uint64", 8;
}

impl DType {
    /// What TensorFlow adds to a type's number for a reference to it, the type of its first variables.
    const REFERENCE: i32 = 100;
    /// Floating-point numbers.
    pub const FLOATS: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64];
    /// Integers, signed and not.
    pub const INTEGERS: &[DType] =
        &[DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];
    /// Complex numbers.
    pub const COMPLEX: &[DType] = &[DType::C64, DType::C128];
    /// Integers that stand for floats by a scale that travels alongside them.
    pub const QUANTIZED: &[DType] = &[DType::QI8, DType::QU8, DType::QI16, DType::QU16, DType::QI32];

    /// The type with TensorFlow's number `n`; `None` where this engine has no such type.
    pub fn from_number(n: i32) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| *d as i32 == n)
    }

    /// As [`DType::from_number`], a reference to a type (`DT_FLOAT_REF`, 101) being the type itself.
    pub fn from_number_or_reference(n: i32) -> Option<DType> {
        DType::from_number(n).or_else(|| DType::from_number(n.checked_sub(DType::REFERENCE)?))
    }

    /// The type with this name, as [`DType::name`] gives it (TensorFlow's).
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| d.name() == name)
    }

    /// Whether the type is a real floating-point number.
    pub fn is_float(self) -> bool {
        DType::FLOATS.contains(&self)
    }

    /// Whether the type is complex.
    pub fn is_complex(self) -> bool {
        DType::COMPLEX.contains(&self)
    }

    /// Whether the type is an integer, signed or not (quantised ones are not).
    pub fn is_integer(self) -> bool {
        DType::INTEGERS.contains(&self)
    }

    /// Whether the type is quantised.
    pub fn is_quantized(self) -> bool {
        DType::QUANTIZED.contains(&self)
    }

    /// Whether values of the type have gradients: floats and complex numbers.
    pub fn has_gradient(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// The type of a complex number's parts; every other type is its own.
    pub fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that a tensor's buffer can hold.
///
/// # Safety
/// `DTYPE.size()` must be `size_of::<Self>()`, which is at most 16, the alignment at most 8, the type without padding
/// or drop glue; every bit pattern that a buffer of `DTYPE` can hold must be a value of the type (buffers are zeroed
/// when fresh, and zeroed again when a `bool` tensor takes them over; those of all other types can hold any bits),
/// zero included.
pub unsafe trait Element: Copy + Send + Sync + PartialEq + fmt::Debug + 'static {
    /// The element type.
    const DTYPE: DType;
}

/// Quantised integers: the plain ones, of another type so that they are not taken for numbers.
macro_rules! quantized {
    ($($(#[$doc:meta])* $name:ident($t:ty);)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub $t);
    )+ };
}
quantized! {
    /// An element of `DT_QINT8`.
    QInt8(i8);
    /// An element of `DT_QUINT8`.
    QUInt8(u8);
    /// An element of `DT_QINT16`.
    QInt16(i16);
    /// An element of `DT_QUINT16`.
    QUInt16(u16);
    /// An element of `DT_QINT32`.
    QInt32(i32);
}

macro_rules! element {
    ($($t:ty => $d:ident),* $(,)?) => { $(
        // SAFETY: a primitive, or a transparent or C struct of primitives of one type, so without padding; its size is
        // the one in `DType::size`; any bits are a value of it (of `bool`: 0 and 1).
        unsafe impl Element for $t { const DTYPE: DType = DType::$d; }
        const _: () = assert!(size_of::<$t>() <= 16 && align_of::<$t>() <= 8);
    )* };
}
element!(
    f32 => F32, f64 => F64, f16 => F16, bf16 => BF16, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    Wrapping<i32> => I32, Wrapping<i64> => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64, bool => Bool, Complex32 => C64, Complex64 => C128,
    QInt8 => QI8, QUInt8 => QU8, QInt16 => QI16, QUInt16 => QU16, QInt32 => QI32,
);

impl DType {
    /// The number types whose kernels are those of [`DType::computes_as`].
    pub const NARROW: &'static [DType] =
        &[DType::F16, DType::BF16, DType::I8, DType::I16, DType::U8, DType::U16, DType::U32, DType::C64];
    /// Those of them that are real.
    pub const NARROW_REAL: &'static [DType] =
        &[DType::F16, DType::BF16, DType::I8, DType::I16, DType::U8, DType::U16, DType::U32];
    /// Those of them that are floats.
    pub const NARROW_FLOATS: &'static [DType] = &[DType::F16, DType::BF16];

    /// The type that kernels compute narrow numbers in; `None` for the types that have kernels of their own.
    pub fn computes_as(self) -> Option<DType> {
        match self {
            DType::F16 | DType::BF16 => Some(DType::F32),
            DType::I8 | DType::I16 | DType::U8 | DType::U16 | DType::U32 => Some(DType::I64),
            DType::QI8 | DType::QU8 | DType::QI16 | DType::QU16 | DType::QI32 => Some(DType::I64),
            // Of the same bits where arithmetic wraps: ops to which order matters have kernels of uint64.
            DType::U64 => Some(DType::I64),
            DType::C64 => Some(DType::C128),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for d in DType::ALL.iter().copied() {
            assert_eq!(DType::from_number(d as i32), Some(d));
            assert_eq!(DType::from_number_or_reference(d as i32 + 100), Some(d));
            assert_eq!(DType::from_name(d.name()), Some(d));
            let published = formats::proto::DataType::try_from(d as i32).unwrap().as_str_name();
            let renamed = published.trim_start_matches("DT_").to_lowercase();
            assert_eq!(renamed, d.name(), "{published}");
        }
        assert_eq!(DType::from_number(0), None);
        assert_eq!(DType::from_number(-1), None);
        assert_eq!(DType::from_number(101), None);
        assert_eq!(DType::from_number_or_reference(i32::MIN), None);
    }

    #[test]
    fn sizes_are_those_of_the_rust_types() {
        fn check<T: Element>() {
            assert_eq!(T::DTYPE.size(), size_of::<T>(), "{}", T::DTYPE);
        }
        check::<f32>();
        check::<f64>();
        check::<f16>();
        check::<bf16>();
        check::<i8>();
        check::<i16>();
        check::<i32>();
        check::<i64>();
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<bool>();
        check::<Complex32>();
        check::<Complex64>();
        check::<QInt8>();
        check::<QUInt8>();
        check::<QInt16>();
        check::<QUInt16>();
        check::<QInt32>();
    }
}
