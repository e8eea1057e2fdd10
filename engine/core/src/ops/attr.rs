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

impl Attr {
    /// Whether the value is of this kind.
    pub fn is_kind(&self, kind: AttrKind) -> bool {
        self.kind() == kind
    }

    /// The value's kind.
    pub fn kind(&self) -> AttrKind {
        match self {
            Attr::Int(_) => AttrKind::Int,
            Attr::Float(_) => AttrKind::Float,
            Attr::Bool(_) => AttrKind::Bool,
            Attr::Str(_) => AttrKind::Str,
            Attr::Type(_) => AttrKind::Type,
            Attr::Shape(_) => AttrKind::Shape,
            Attr::Tensor(_) => AttrKind::Tensor,
            Attr::ListInt(_) => AttrKind::ListInt,
            Attr::ListFloat(_) => AttrKind::ListFloat,
            Attr::ListStr(_) => AttrKind::ListStr,
            Attr::ListType(_) => AttrKind::ListType,
            Attr::ListShape(_) => AttrKind::ListShape,
            Attr::Func(_) => AttrKind::Func,
            Attr::ListFunc(_) => AttrKind::ListFunc,
        }
    }
}

/// The kind of an attribute's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttrKind {
    /// Integer.
    Int,
    /// Float.
    Float,
    /// Bool.
    Bool,
    /// Bytes.
    Str,
    /// Element type.
    Type,
    /// Shape, possibly partial.
    Shape,
    /// Tensor.
    Tensor,
    /// List of integers.
    ListInt,
    /// List of floats.
    ListFloat,
    /// List of bytes.
    ListStr,
    /// List of element types.
    ListType,
    /// List of shapes.
    ListShape,
    /// Function of the graph's library.
    Func,
    /// List of functions.
    ListFunc,
}

/// An attribute of a node is not what the op wants.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AttrError {
    /// It is missing.
    #[error("attribute {0} is missing")]
    Missing(Box<str>),
    /// It is of another kind.
    #[error("attribute {name} is {got}, expected {expected:?}")]
    Kind {
        /// The attribute.
        name: Box<str>,
        /// The kind it should have.
        expected: AttrKind,
        /// What it is.
        got: Box<str>,
    },
    /// The op has no such attribute.
    #[error("op {op} has no attribute {name}")]
    Unknown {
        /// The op.
        op: &'static str,
        /// The attribute.
        name: Box<str>,
    },
    /// The value is outside of what the op allows.
    #[error("attribute {name} = {problem}")]
    Value {
        /// The attribute.
        name: Box<str>,
        /// Its value, and what would be allowed.
        problem: Box<str>,
    },
}

/// The error for an attribute that is not there (`got` is `None`) or of another kind than `expected`.
pub fn wrong_kind(name: &str, expected: AttrKind, got: Option<&Attr>) -> AttrError {
    match got {
        None => AttrError::Missing(name.into()),
        Some(got) => AttrError::Kind { name: name.into(), expected, got: got.to_string().into() },
    }
}
