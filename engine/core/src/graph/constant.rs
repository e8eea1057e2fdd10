//! Integers that are known before anything runs: constants, sizes of known shapes, and what follows from them by the ops that
//! shapes are computed with. TensorFlow's shape functions see the same values (`EvaluateConstantTensor`).

use super::{Attr, Node, Nodes, Output};
use crate::dtype::DType;
use crate::ops::OpKind;
use crate::ops::flow::forwards_input;
use crate::shape::Shape;
use crate::strided::{self, Masks};

/// The nodes that are visited for one value: computations of shapes are small, and whatever is larger stays unknown.
const MAX_NODES: usize = 64;
/// The integers that a computed value may have.
const MAX_INTS: usize = 256;

/// The node that made a node's value, before it came into branches and, unchanging, into loops.
pub(super) fn origin(nodes: &Nodes, output: Output) -> Option<&Node> {
    let mut node = nodes.get(output.node)?;
    loop {
        let is_constant = matches!(node.attrs.get("is_constant"), Some(Attr::Bool(true)));
        match node.inputs.first().and_then(|input| nodes.get(input.node)) {
            Some(from) if forwards_input(node.op.kind, is_constant) => node = from,
            _ => return Some(node),
        }
    }
}

/// The integers of a value in row-major order, where they are known.
pub(super) fn ints(nodes: &Nodes, output: Output) -> Option<Vec<i64>> {
    Search { nodes, left: MAX_NODES }.ints(output)
}

struct Search<'a> {
    nodes: &'a Nodes,
    /// The nodes that may still be visited.
    left: usize,
}

impl Search<'_> {
    fn ints(&mut self, output: Output) -> Option<Vec<i64>> {
        self.left = self.left.checked_sub(1)?;
        let node = origin(self.nodes, output)?;
        if node.op.kind == OpKind::Const {
            return of_const(node);
        }
        let ints = self.computed(node)?;
        let is_fit = match node.outputs.first()?.dtype {
            DType::I32 => ints.iter().all(|v| i32::try_from(*v).is_ok()),
            DType::I64 => true,
            _ => false,
        };
        (is_fit && ints.len() <= MAX_INTS).then_some(ints)
    }

    fn computed(&mut self, node: &Node) -> Option<Vec<i64>> {
        let first = *node.inputs.first()?;
        match node.op.name {
            "Shape" => self.dims(first)?.into_iter().map(|d| i64::try_from(d).ok()).collect(),
            "Size" => Some(vec![i64::try_from(self.nodes.shape_of(first).known()?.checked_n_elements()?).ok()?]),
            "Rank" => Some(vec![i64::try_from(self.nodes.shape_of(first).rank()?).ok()?]),
            "Cast" | "Reshape" | "ExpandDims" | "Squeeze" => self.ints(first),
            "Pack" if self.ranks_are(&node.inputs, 0) => self.joined(&node.inputs),
            "ConcatV2" => {
                let (_, parts) = node.inputs.split_last()?;
                self.ranks_are(parts, 1).then(|| self.joined(parts))?
            }
            "StridedSlice" => self.slice(node),
            "Add" | "AddV2" => self.pairwise(node, i64::checked_add),
            "Sub" => self.pairwise(node, i64::checked_sub),
            "Mul" => self.pairwise(node, i64::checked_mul),
            "Maximum" => self.pairwise(node, |a, b| Some(a.max(b))),
            "Minimum" => self.pairwise(node, |a, b| Some(a.min(b))),
            _ => None,
        }
    }

    fn dims(&self, of: Output) -> Option<Vec<usize>> {
        self.nodes.shape_of(of).known().map(|shape| shape.dims().to_vec())
    }

    fn ranks_are(&self, of: &[Output], rank: usize) -> bool {
        of.iter().all(|output| self.nodes.shape_of(*output).rank() == Some(rank))
    }

    fn joined(&mut self, parts: &[Output]) -> Option<Vec<i64>> {
        let mut all = Vec::new();
        for part in parts {
            all.extend(self.ints(*part)?);
        }
        Some(all)
    }

    /// Of two lists, or of a list and a number.
    fn pairwise(&mut self, node: &Node, of: fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
        let &[a, b] = &*node.inputs else { return None };
        let is_list = |output: Output| self.nodes.shape_of(output).rank().is_some_and(|rank| rank <= 1);
        if !(is_list(a) && is_list(b)) {
            return None;
        }
        let (a, b) = (self.ints(a)?, self.ints(b)?);
        match (&*a, &*b) {
            (a, [b]) => a.iter().map(|a| of(*a, *b)).collect(),
            ([a], b) => b.iter().map(|b| of(*a, *b)).collect(),
            (a, b) if a.len() == b.len() => a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect(),
            _ => None,
        }
    }

    fn slice(&mut self, node: &Node) -> Option<Vec<i64>> {
        let &[of, begin, end, step] = &*node.inputs else { return None };
        let shape = Shape::new(&self.dims(of)?);
        let [of, begin, end, step] = [self.ints(of)?, self.ints(begin)?, self.ints(end)?, self.ints(step)?];
        let slice = strided::resolve(&shape, &Masks::of(&node.attrs), &begin, &end, &step).ok()?;
        match (&*slice.dims, &*slice.strides) {
            ([n], [stride]) if shape.rank() == 1 => {
                let at = |i: usize| slice.first.checked_add(stride.checked_mul(isize::try_from(i).ok()?)?);
                (0..*n).map(|i| of.get(usize::try_from(at(i)?).ok()?).copied()).collect()
            }
            _ => None,
        }
    }
}

fn of_const(node: &Node) -> Option<Vec<i64>> {
    let Some(Attr::Tensor(value)) = node.attrs.get("value") else { return None };
    if node.outputs.first()?.dtype != value.dtype() {
        return None;
    }
    match value.slice::<i64>() {
        Ok(ints) => Some(ints.to_vec()),
        Err(_) => Some(value.slice::<i32>().ok()?.iter().map(|v| i64::from(*v)).collect()),
    }
}
