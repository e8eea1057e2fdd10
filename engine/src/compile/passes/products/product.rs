//! Products and additions as the passes look at them.

use std::collections::BTreeMap;

use crate::compile::{Source, Uses, WorkGraph, WorkId, WorkNode};
use engine_core::dtype::DType;
use engine_core::graph::Attr;

/// Which operands of a product are transposed.
pub(super) type Transposed = (bool, bool);

/// The product that a source is, where `consumer` alone uses it, once, and on the same device.
pub(super) fn product(
    graph: &WorkGraph,
    uses: &Uses,
    source: Source,
    consumer: WorkId,
) -> Option<(WorkId, Transposed)> {
    let Source::Port(id, 0) = source else { return None };
    let node = graph.get(id).filter(|node| node.op() == "MatMul")?;
    let fits = is_sole_use(uses, id, consumer) && is_same_place(node, graph.get(consumer)?) && is_float(node);
    let flag = |name: &str| matches!(node.def.attrs.get(name), Some(Attr::Bool(true)));
    (fits && node.control_inputs.is_empty()).then(|| (id, (flag("transpose_a"), flag("transpose_b"))))
}

fn is_float(node: &WorkNode) -> bool {
    node.outputs().first().is_some_and(|port| matches!(port.dtype, DType::F32 | DType::F64))
}

/// Whether the node adds values of one shape.
pub(super) fn is_addition(graph: &WorkGraph, node: &WorkNode) -> bool {
    if !is_float(node) || node.inputs.len() < 2 {
        return false;
    }
    let shape = &node.outputs()[0].shape;
    let is_whole = |source: &Source| graph.port(*source).is_some_and(|(_, of)| of == shape);
    match node.op() {
        "AddN" => true,
        "Add" | "AddV2" => shape.known().is_some() && node.inputs.iter().all(is_whole),
        _ => false,
    }
}

pub(super) fn is_same_place(a: &WorkNode, b: &WorkNode) -> bool {
    a.device == b.device && a.def.device == b.def.device
}

/// Whether `consumer` is all that uses `id`, once.
pub(super) fn is_sole_use(uses: &Uses, id: WorkId, consumer: WorkId) -> bool {
    let is_sole = matches!(uses.of_node(id), [one] if one.consumer == consumer && one.edge.is_some());
    is_sole && !uses.is_wanted(id)
}

/// The attributes that all ops of products have.
pub(super) fn attrs(dtype: DType, (a, b): Transposed) -> BTreeMap<String, Attr> {
    BTreeMap::from([
        ("T".to_owned(), Attr::Type(dtype)),
        ("transpose_a".to_owned(), Attr::Bool(a)),
        ("transpose_b".to_owned(), Attr::Bool(b)),
    ])
}

/// The names of nodes that became one.
pub(super) fn originals(graph: &WorkGraph, ids: &[WorkId]) -> (String, Attr) {
    let names = ids.iter().filter_map(|id| graph.get(*id)).map(|node| node.name().as_bytes().to_vec());
    ("originals".to_owned(), Attr::ListStr(names.collect()))
}
