//! Constants in a [`WorkGraph`]: looking at them and making them.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{NewNode, Source, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;
use engine_core::graph::{Attr, Node, Port};
use engine_core::ops::{self, OpKind};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;

impl WorkGraph {
    /// The value of a source that is a constant's.
    pub fn constant(&self, source: Source) -> Option<&Tensor> {
        let node = self.get(source.node()?)?;
        match node.def.attrs.get("value") {
            Some(Attr::Tensor(value))
                if node.kind() == OpKind::Const && value.dtype() == node.outputs().first()?.dtype =>
            {
                Some(value)
            }
            _ => None,
        }
    }

    /// The value that comes to `source` through identities.
    pub fn handed_on(&self, mut source: Source) -> Source {
        while let Source::Port(id, port) = source
            && let Some(node) = self.get(id).filter(|node| matches!(node.op(), "Identity" | "IdentityN"))
            && let Some(input) = node.inputs.get(port as usize)
        {
            source = *input;
        }
        source
    }

    /// The value of a constant of integers, of whichever width.
    pub fn constant_ints(&self, source: Source) -> Option<Vec<i64>> {
        let value = self.constant(source)?;
        value.slice::<i64>().map(<[i64]>::to_vec).ok().or_else(|| {
            let ints = value.slice::<i32>().ok()?;
            Some(ints.iter().map(|v| i64::from(*v)).collect())
        })
    }

    /// Makes a node of one output the constant `value`, under its name, that runs after `after`.
    ///
    /// # Errors
    /// There is no op `Const`.
    pub fn make_constant(
        &mut self,
        id: WorkId,
        value: &Tensor,
        after: SmallVec<[WorkId; 2]>,
    ) -> Result<(), CompileError> {
        let Some(node) = self.get(id) else { return Ok(()) };
        let Some(op) = ops::lookup("Const") else {
            return Err(CompileError::Pass { pass: "fold", problem: "there is no op Const".into() });
        };
        let def = Node {
            op,
            attrs: attrs(value, node.op()),
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            outputs: vec![Port { dtype: value.dtype(), shape: PartialShape::from(value.shape()) }],
            name: Arc::clone(node.name()),
            id: node.def.id,
            device: Arc::clone(&node.def.device),
        };
        self.redefine(id, Arc::new(def));
        if let Some(node) = self.get_mut(id) {
            node.inputs.clear();
            node.control_inputs = after;
        }
        Ok(())
    }

    /// Adds a constant for output `port` of `of`, that runs after `after`.
    ///
    /// # Errors
    /// There is no op `Const`.
    pub fn add_constant(
        &mut self,
        of: &WorkNode,
        port: usize,
        value: &Tensor,
        after: SmallVec<[WorkId; 2]>,
    ) -> Result<WorkId, CompileError> {
        let outputs = vec![Port { dtype: value.dtype(), shape: PartialShape::from(value.shape()) }];
        let id = self.add_new(NewNode {
            name: &format!("{}/output{port}", of.name()),
            op: "Const",
            attrs: attrs(value, of.op()),
            inputs: SmallVec::new(),
            control_inputs: after,
            outputs,
            device: of.device,
        })?;
        Ok(id)
    }
}

/// Attributes of a constant that stands for the result of `op`.
fn attrs(value: &Tensor, op: &str) -> BTreeMap<String, Attr> {
    BTreeMap::from([
        ("dtype".to_owned(), Attr::Type(value.dtype())),
        ("value".to_owned(), Attr::Tensor(value.clone())),
        ("_folded_op".to_owned(), Attr::from(op)),
    ])
}
