//! Matrix products with their bias and relu become one node, which adds and clips each block while it is in the cache.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{PassContext, Source, Uses, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::ops;

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let uses = graph.uses();
    let mut n_gone = 0;
    for bias in graph.ids() {
        if graph.get(bias).is_none_or(|node| !context.has_kernel(node, "_FusedMatMul")) {
            continue;
        }
        let Some((product, relu)) = chain(graph, &uses, bias) else { continue };
        let members: SmallVec<[WorkId; 3]> = [product, bias].into_iter().chain(relu).collect();
        n_gone += members.len() - 1;
        replace(graph, &members)?;
    }
    Ok(n_gone)
}

/// The product before a bias and the relu behind it, where nobody else uses what lies between.
fn chain(graph: &WorkGraph, uses: &Uses, bias: WorkId) -> Option<(WorkId, Option<WorkId>)> {
    let node = graph.get(bias).filter(|node| node.op() == "BiasAdd" && is_nhwc(node))?;
    let Source::Port(product, 0) = node.inputs[0] else { return None };
    let from = graph.get(product).filter(|from| from.op() == "MatMul")?;
    let is_float = matches!(node.outputs()[0].dtype, DType::F32 | DType::F64);
    if !is_float || !is_sole_use(uses, product, bias) || !is_same_place(from, node) || !from.control_inputs.is_empty() {
        return None;
    }
    let relu = match uses.of_node(bias) {
        [one] if graph.op(one.consumer) == "Relu" => Some(one.consumer),
        _ => None,
    };
    let relu = relu.filter(|relu| {
        let fits = graph.get(*relu).is_some_and(|relu| is_same_place(node, relu));
        fits && node.control_inputs.is_empty() && is_sole_use(uses, bias, *relu)
    });
    Some((product, relu))
}

fn is_nhwc(node: &WorkNode) -> bool {
    !matches!(node.def.attrs.get("data_format"), Some(Attr::Str(format)) if format != b"NHWC")
}

fn is_same_place(a: &WorkNode, b: &WorkNode) -> bool {
    a.device == b.device && a.def.device == b.def.device
}

/// Whether `consumer` is all that uses `id`, once.
fn is_sole_use(uses: &Uses, id: WorkId, consumer: WorkId) -> bool {
    let is_sole = matches!(uses.of_node(id), [one] if one.consumer == consumer && one.edge.is_some());
    is_sole && !uses.is_wanted(id)
}

/// Makes the last of product, bias and relu all of them.
fn replace(graph: &mut WorkGraph, members: &[WorkId]) -> Result<(), CompileError> {
    let Some(op) = ops::lookup("_FusedMatMul") else {
        return Err(CompileError::Pass { pass: "fuse_matmul", problem: "there is no op _FusedMatMul".into() });
    };
    let nodes: SmallVec<[WorkNode; 3]> = members.iter().filter_map(|id| graph.get(*id).cloned()).collect();
    let [product, bias, ..] = nodes.as_slice() else { return Ok(()) };
    let (last, root) = (&nodes[nodes.len() - 1], members[members.len() - 1]);
    let texts = |text: fn(&WorkNode) -> &str, of: &[WorkNode]| {
        Attr::ListStr(of.iter().map(|node| text(node).as_bytes().to_vec()).collect())
    };
    let mut attrs = BTreeMap::from([
        ("T".to_owned(), Attr::Type(last.outputs()[0].dtype)),
        ("num_args".to_owned(), Attr::Int(1)),
        ("epsilon".to_owned(), Attr::Float(0.0001)),
        ("leakyrelu_alpha".to_owned(), Attr::Float(0.2)),
        ("fused_ops".to_owned(), texts(|node| node.op(), &nodes[1..])),
        ("originals".to_owned(), texts(|node| node.name(), &nodes)),
    ]);
    for name in ["transpose_a", "transpose_b"] {
        attrs.extend(product.def.attrs.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    let def = Node {
        op,
        attrs,
        inputs: product.def.inputs.iter().chain(&bias.def.inputs[1..]).copied().collect(),
        control_inputs: Vec::new(),
        name: Arc::clone(last.name()),
        id: last.def.id,
        device: Arc::clone(&last.def.device),
        outputs: last.outputs().to_vec(),
    };
    let inputs = product.inputs.iter().chain(&bias.inputs[1..]).copied().collect();
    graph.redefine(root, Arc::new(def));
    if let Some(node) = graph.get_mut(root) {
        node.inputs = inputs;
    }
    for id in members.iter().filter(|id| **id != root) {
        graph.remove(*id);
    }
    Ok(())
}
