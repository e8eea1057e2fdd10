//! Attributes: what a node's kernel knows when it is made.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Attr {
    /// Integer.
    Int(i64),
    /// Float.
    Float(f32),
    /// Bool.
    Bool(bool),
    /// Bytes.
    Str(Vec<u8>),
    /// Element type.
    Type(DType),
    /// Shape, possibly partial.
    Shape(PartialShape),
    /// Tensor.
    Tensor(Tensor),
    /// List of integers.
    ListInt(Vec<i64>),
    /// List of floats.
    ListFloat(Vec<f32>),
    /// List of bytes.
    ListStr(Vec<Vec<u8>>),
    /// List of element types.
    ListType(Vec<DType>),
    /// List of shapes.
    ListShape(Vec<PartialShape>),
    /// A function of the graph's library.
    Func(FuncRef),
    /// List of functions.
    ListFunc(Vec<FuncRef>),
}

/// A function of the graph's library, by name, with the attributes that its body asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct FuncRef {
    /// The function's name.
    pub name: Arc<str>,
    /// Values of the attributes that the function declares.
    pub attrs: BTreeMap<String, Attr>,
}

impl FuncRef {
    /// The function `name`, which needs no attributes.
    pub fn new(name: &str) -> FuncRef {
        FuncRef { name: name.into(), attrs: BTreeMap::new() }
    }
}

macro_rules! from {
    ($($t:ty => $v:ident),* $(,)?) => { $(
        impl From<$t> for Attr {
            fn from(value: $t) -> Attr {
                Attr::$v(value)
            }
        }
    )* };
}
from!(i64 => Int, f32 => Float, bool => Bool, Vec<u8> => Str, DType => Type, PartialShape => Shape, Tensor => Tensor,
    Vec<i64> => ListInt, Vec<f32> => ListFloat, Vec<DType> => ListType, FuncRef => Func, Vec<FuncRef> => ListFunc);

impl From<&str> for Attr {
    fn from(value: &str) -> Attr {
        Attr::Str(value.as_bytes().to_vec())
    }
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::Int(v) => write!(f, "{v}"),
            Attr::Float(v) => write!(f, "{v}"),
            Attr::Bool(v) => write!(f, "{v}"),
            Attr::Str(v) => write!(f, "{:?}", String::from_utf8_lossy(v)),
            Attr::Type(v) => write!(f, "{v}"),
            Attr::Shape(v) => write!(f, "{v}"),
            Attr::Tensor(v) => write!(f, "{v:?}"),
            Attr::ListInt(v) => write!(f, "{v:?}"),
            Attr::ListFloat(v) => write!(f, "{v:?}"),
            Attr::ListStr(v) => write!(f, "{:?}", v.iter().map(|s| String::from_utf8_lossy(s)).collect::<Vec<_>>()),
            Attr::ListType(v) => write!(f, "{v:?}"),
            Attr::ListShape(v) => write!(f, "{v:?}"),
            Attr::Func(v) => write!(f, "{}", v.name),
            Attr::ListFunc(v) => write!(f, "{:?}", v.iter().map(|f| &*f.name).collect::<Vec<_>>()),
        }
    }
}
