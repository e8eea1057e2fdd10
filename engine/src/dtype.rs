//! Element types, numbered as TensorFlow's `DataType`, and the Rust types that stand for them.

use std::fmt;

/// The element type of a tensor. The discriminants are those of TensorFlow's `DataType`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DType {
    /// 32-bit IEEE float, `DT_FLOAT`.
    F32 = 1,
    /// 64-bit IEEE float, `DT_DOUBLE`.
    F64 = 2,
    /// 32-bit signed integer, `DT_INT32`.
    I32 = 3,
    /// 8-bit unsigned integer, `DT_UINT8`.
    U8 = 4,
    /// A sequence of bytes, `DT_STRING`.
    String = 7,
    /// 64-bit signed integer, `DT_INT64`.
    I64 = 9,
    /// A truth value, one byte, `DT_BOOL`.
    Bool = 10,
    /// A handle to state held by a resource manager, `DT_RESOURCE`.
    Resource = 20,
}

impl DType {
    /// All types, in the order of their numbers.
    pub const ALL: [DType; 8] =
        [DType::F32, DType::F64, DType::I32, DType::U8, DType::String, DType::I64, DType::Bool, DType::Resource];

    /// The type with TensorFlow's number `n`; `None` where this engine has no such type.
    pub fn from_number(n: i32) -> Option<DType> {
        DType::ALL.into_iter().find(|d| *d as i32 == n)
    }

    /// The type with this name, as [`DType::name`] gives it (TensorFlow's).
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// TensorFlow's name: `float`, `double`, `int32`, ...
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "float",
            DType::F64 => "double",
            DType::I32 => "int32",
            DType::U8 => "uint8",
            DType::String => "string",
            DType::I64 => "int64",
            DType::Bool => "bool",
            DType::Resource => "resource",
        }
    }

    /// Bytes of one element in a buffer; 0 for strings and resources, which do not live in one.
    pub fn size(self) -> usize {
        match self {
            DType::U8 | DType::Bool => 1,
            DType::F32 | DType::I32 => 4,
            DType::F64 | DType::I64 => 8,
            DType::String | DType::Resource => 0,
        }
    }

    /// Whether the type is a floating-point number: the types that have gradients.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
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
/// `DTYPE.size()` must be `size_of::<Self>()`, the alignment at most 8, the type without padding or drop glue; every
/// bit pattern that a buffer of `DTYPE` can hold must be a value of the type (buffers are zeroed when fresh, and
/// zeroed again when a `bool` tensor takes them over), zero included.
pub unsafe trait Element: Copy + Send + Sync + PartialEq + fmt::Debug + 'static {
    /// The element type.
    const DTYPE: DType;
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => { $(
        // SAFETY: a primitive without padding whose size is the one in `DType::size`; zero is a value of it.
        unsafe impl Element for $t { const DTYPE: DType = DType::$d; }
    )* };
}
element!(f32 => F32, f64 => F64, i32 => I32, i64 => I64, u8 => U8, bool => Bool);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for d in DType::ALL {
            assert_eq!(DType::from_number(d as i32), Some(d));
            assert_eq!(DType::from_name(d.name()), Some(d));
        }
        assert_eq!(DType::from_number(0), None);
        assert_eq!(DType::from_number(-1), None);
    }
}
