//! The definition of an op: what its nodes' inputs, outputs and attributes must be.

use std::collections::BTreeMap;

use super::attr::{Attr, AttrError, AttrKind};
use super::facts::{Effect, OpKind};
use super::infer::{InferContext, ShapeError};
use crate::dtype::DType;

/// The kind of a computation: what a node's inputs, outputs and attributes must be.
#[derive(Debug)]
pub struct OpDef {
    /// TensorFlow's name.
    pub name: &'static str,
    /// The inputs. A list input stands for several ports.
    pub inputs: Vec<ArgDef>,
    /// The outputs.
    pub outputs: Vec<ArgDef>,
    /// The attributes.
    pub attrs: Vec<AttrDef>,
    /// The part that it plays in a graph.
    pub kind: OpKind,
    /// What it does besides computing its outputs.
    pub effect: Effect,
    /// Whether the order of its two inputs does not matter.
    pub commutes: bool,
    /// Whether its output is its first input's memory.
    pub view: bool,
    /// Infers shapes.
    pub shape_fn: ShapeFn,
}

impl OpDef {
    /// Whether it has state or effects, so that equal nodes are not the same node and it cannot be folded.
    pub fn is_stateful(&self) -> bool {
        self.effect != Effect::None
    }

    /// The element types of the ports that `args` (the inputs or the outputs) stand for, given a node's attributes.
    ///
    /// # Errors
    /// An attribute that gives them is missing.
    pub fn port_types(&self, args: &[ArgDef], attrs: &BTreeMap<String, Attr>) -> Result<Vec<DType>, AttrError> {
        let mut out = Vec::with_capacity(args.len());
        let missing = |name: &str| AttrError::Missing(name.into());
        let dtype = |name: &str| match attrs.get(name) {
            Some(Attr::Type(t)) => Ok(*t),
            _ => Err(missing(name)),
        };
        let count = |name: &str| match attrs.get(name) {
            Some(Attr::Int(n)) => usize::from(u16::try_from(*n).unwrap_or(0)),
            _ => 0,
        };
        for arg in args {
            match &arg.ty {
                ArgType::Fixed(t) => out.push(*t),
                ArgType::Attr(t) => out.push(dtype(t)?),
                ArgType::Repeat(n, t) => out.extend(std::iter::repeat_n(dtype(t)?, count(n))),
                ArgType::RepeatFixed(n, t) => out.extend(std::iter::repeat_n(*t, count(n))),
                ArgType::List(ts) => match attrs.get(*ts) {
                    Some(Attr::ListType(list)) => out.extend(list),
                    _ => return Err(missing(ts)),
                },
            }
        }
        Ok(out)
    }
}

/// Infers the shapes of a node's outputs and checks those of its inputs.
pub type ShapeFn = fn(&mut InferContext<'_>) -> Result<(), ShapeError>;

/// An input or output.
#[derive(Debug, Clone)]
pub struct ArgDef {
    /// The name.
    pub name: &'static str,
    /// The element type or types.
    pub ty: ArgType,
    /// Whether it is a variable itself, not its value: `ref: Ref(T)`, the type of TensorFlow's first variables.
    pub is_ref: bool,
}

/// How the element types of an input or output are determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgType {
    /// Always this one: `x: float`.
    Fixed(DType),
    /// The type attribute: `x: T`.
    Attr(&'static str),
    /// As many ports of one type as an attribute says: `x: N * T`.
    Repeat(&'static str, &'static str),
    /// As many ports of a fixed type as an attribute says: `x: N * string`.
    RepeatFixed(&'static str, DType),
    /// One port for each type of a list attribute: `x: Tdense`, where that is a `list(type)`.
    List(&'static str),
}

impl ArgType {
    /// Whether an input of this type determines the value of the attribute `name`.
    pub fn determines(&self, name: &str) -> bool {
        match self {
            ArgType::Fixed(_) => false,
            ArgType::Attr(attr) | ArgType::List(attr) | ArgType::RepeatFixed(attr, _) => *attr == name,
            ArgType::Repeat(length, attr) => *attr == name || *length == name,
        }
    }
}

/// An attribute.
#[derive(Debug, Clone)]
pub struct AttrDef {
    /// The name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: AttrKind,
    /// The value of nodes that do not give one; without it the attribute is required (or inferred from inputs).
    pub default: Option<Attr>,
    /// For types: which are allowed; empty means any.
    pub allowed: Vec<DType>,
}
