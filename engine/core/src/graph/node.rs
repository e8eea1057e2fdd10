//! Nodes: uses of ops in a graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Attr, FuncRef, NodeId, Output, Port};
use crate::dtype::DType;
use crate::ops::{AttrError, AttrKind, OpDef, wrong_kind};
use crate::shape::PartialShape;

/// A use of an op in a graph.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its position in the graph.
    pub id: NodeId,
    /// Its full name, scopes included.
    pub name: Arc<str>,
    /// The op.
    pub op: &'static OpDef,
    /// All attributes, defaults included.
    pub attrs: BTreeMap<String, Attr>,
    /// Where the inputs come from.
    pub inputs: Vec<Output>,
    /// The nodes that must have run before, besides those.
    pub control_inputs: Vec<NodeId>,
    /// The device asked for; empty: any.
    pub device: Arc<str>,
    /// The outputs.
    pub outputs: Vec<Port>,
}

macro_rules! getter {
    ($(#[$doc:meta])* $name:ident, $variant:ident, $kind:ident, $t:ty) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// It is missing or of another kind.
        pub fn $name(&self, name: &str) -> Result<&$t, AttrError> {
            match self.attrs.get(name) {
                Some(Attr::$variant(v)) => Ok(v),
                other => Err(wrong_kind(name, AttrKind::$kind, other)),
            }
        }
    };
}

impl Node {
    getter!(/** The integer attribute `name`. */ int, Int, Int, i64);
    getter!(/** The float attribute `name`. */ float, Float, Float, f32);
    getter!(/** The boolean attribute `name`. */ flag, Bool, Bool, bool);
    getter!(/** The string attribute `name`. */ bytes, Str, Str, Vec<u8>);
    getter!(/** The type attribute `name`. */ dtype, Type, Type, DType);
    getter!(/** The shape attribute `name`. */ shape, Shape, Shape, PartialShape);
    getter!(/** The tensor attribute `name`. */ tensor, Tensor, Tensor, crate::tensor::Tensor);
    getter!(/** The attribute `name`, a list of integers. */ ints, ListInt, ListInt, Vec<i64>);

    getter!(/** The function attribute `name`. */ func, Func, Func, FuncRef);
    getter!(/** The attribute `name`, a list of functions. */ funcs, ListFunc, ListFunc, Vec<FuncRef>);
    getter!(/** The attribute `name`, a list of element types. */ dtypes, ListType, ListType, Vec<DType>);

    /// The string attribute `name`, as text.
    ///
    /// # Errors
    /// It is missing or of another kind.
    pub fn text(&self, name: &str) -> Result<String, AttrError> {
        Ok(String::from_utf8_lossy(self.bytes(name)?).into_owned())
    }
}
