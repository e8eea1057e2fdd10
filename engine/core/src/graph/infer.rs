//! What a shape function learns of a node's inputs from the graph.

use super::constant;
use super::{Node, Nodes, Output, Port};
use crate::ops::{InputFacts, Maker};

/// The inputs of a node that is about to be added.
pub(super) struct Inputs<'a> {
    pub nodes: &'a Nodes,
    pub inputs: &'a [Output],
}

fn maker(node: &Node) -> Maker<'_> {
    Maker { op: node.op.name, kind: node.op.kind, attrs: &node.attrs, outputs: &node.outputs }
}

impl InputFacts for Inputs<'_> {
    fn count(&self) -> usize {
        self.inputs.len()
    }

    fn port(&self, i: usize) -> Option<&Port> {
        let input = self.inputs.get(i)?;
        self.nodes.get(input.node)?.outputs.get(input.port as usize)
    }

    fn source(&self, i: usize) -> Option<Maker<'_>> {
        self.nodes.get(self.inputs.get(i)?.node).map(|node| maker(node))
    }

    fn origin(&self, i: usize) -> Option<Maker<'_>> {
        constant::origin(self.nodes, *self.inputs.get(i)?).map(maker)
    }

    fn ints(&self, i: usize) -> Option<Vec<i64>> {
        constant::ints(self.nodes, *self.inputs.get(i)?)
    }
}
