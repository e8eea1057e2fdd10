//! Common subexpressions: nodes that compute the same from the same become one (white paper section 5.1).
//!
//! Nodes are canonical after one walk in topological order, because their inputs are: the same op, attributes, device,
//! inputs (in any order where the op commutes) and control inputs. What has state or is control flow stays, and a node that
//! is fetched or a target is never the one that goes.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::{PassContext, Redirects, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;
use engine_core::graph::Attr;
use engine_core::tensor::Tensor;

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, _: &PassContext<'_>) -> Result<usize, CompileError> {
    let uses = graph.uses();
    let mut redirects = Redirects::default();
    let mut seen: FxHashMap<u64, SmallVec<[WorkId; 1]>> = FxHashMap::default();
    let mut n_merged = 0;
    for id in graph.order()? {
        canonicalise(graph, id, &redirects);
        let Some(node) = graph.get(id).filter(|node| is_mergeable(node)) else { continue };
        let like = seen.entry(hash(node)).or_default();
        let twin = like.iter().position(|other| graph.get(*other).is_some_and(|other| is_same(node, other)));
        match twin.map(|i| (i, like[i])) {
            None => like.push(id),
            // Its name may be wanted, then the other one goes. If both are, both stay.
            Some((i, other)) if uses.is_wanted(id) => {
                if !uses.is_wanted(other) {
                    merge(graph, other, id, &mut redirects);
                    like[i] = id;
                    n_merged += 1;
                }
            }
            Some((_, other)) => {
                merge(graph, id, other, &mut redirects);
                n_merged += 1;
            }
        }
    }
    graph.redirect(&redirects);
    graph.sweep();
    Ok(n_merged)
}

fn merge(graph: &WorkGraph, gone: WorkId, stays: WorkId, redirects: &mut Redirects) {
    redirects.node(gone, graph.get(gone).map_or(0, |n| n.outputs().len()), stays);
}

fn is_mergeable(node: &WorkNode) -> bool {
    node.is_pure() && !node.outputs().is_empty()
}

/// Brings a node's inputs into the one order, and to the nodes that stayed.
fn canonicalise(graph: &mut WorkGraph, id: WorkId, redirects: &Redirects) {
    let Some(node) = graph.get_mut(id) else { return };
    for input in &mut node.inputs {
        *input = redirects.source(*input);
    }
    redirects.resolve_controls(id, &mut node.control_inputs);
    node.control_inputs.sort_unstable();
    if node.def.op.commutes {
        node.inputs.sort_unstable();
    }
}

fn is_same(a: &WorkNode, b: &WorkNode) -> bool {
    std::ptr::eq(a.def.op, b.def.op)
        && a.inputs == b.inputs
        && a.control_inputs == b.control_inputs
        && a.device == b.device
        && a.def.device == b.def.device
        && a.def.attrs.len() == b.def.attrs.len()
        && a.def.attrs.iter().zip(&b.def.attrs).all(|((k, v), (l, w))| k == l && same_attr(v, w))
}

/// Equal to the bit: 0 is not -0.
fn same_attr(a: &Attr, b: &Attr) -> bool {
    match (a, b) {
        (Attr::Float(a), Attr::Float(b)) => a.to_bits() == b.to_bits(),
        (Attr::ListFloat(a), Attr::ListFloat(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
        }
        _ => a == b,
    }
}

fn hash(node: &WorkNode) -> u64 {
    let mut hasher = FxHasher::default();
    node.op().hash(&mut hasher);
    node.inputs.hash(&mut hasher);
    node.control_inputs.hash(&mut hasher);
    for (name, value) in &node.def.attrs {
        name.hash(&mut hasher);
        hash_attr(value, &mut hasher);
    }
    hasher.finish()
}

fn hash_attr(value: &Attr, hasher: &mut FxHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Attr::Int(v) => v.hash(hasher),
        Attr::Float(v) => v.to_bits().hash(hasher),
        Attr::Bool(v) => v.hash(hasher),
        Attr::Str(v) => v.hash(hasher),
        Attr::Type(v) => v.hash(hasher),
        Attr::Shape(v) => v.hash(hasher),
        Attr::Tensor(v) => hash_tensor(v, hasher),
        Attr::ListInt(v) => v.hash(hasher),
        Attr::ListStr(v) => v.hash(hasher),
        Attr::ListType(v) => v.hash(hasher),
        Attr::ListShape(v) => v.hash(hasher),
        // Whatever it holds: the test for equality decides.
        _ => {}
    }
}

/// Large tensors are hashed by their beginning: the test for equality decides.
fn hash_tensor(value: &Tensor, hasher: &mut FxHasher) {
    const HASHED: usize = 4096;
    value.dtype().hash(hasher);
    value.shape().hash(hasher);
    let bytes = value.bytes();
    bytes[..bytes.len().min(HASHED)].hash(hasher);
    if let Ok(strings) = value.strings() {
        strings.iter().take(16).for_each(|s| s.hash(hasher));
    }
}
