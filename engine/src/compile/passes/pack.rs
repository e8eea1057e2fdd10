//! Right matrices of several products are packed once for all of them, into the order in which products read them: the
//! weights of a network that is applied step by step. Where a loop uses one, it is packed before the loop.
//!
//! Results stay the same to the bit: a product of given sizes takes its sums in one order, whoever packs.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::{NewNode, PassContext, Source, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Port};
use engine_core::ops::OpKind;
use engine_core::shape::PartialShape;
use engine_ops::kernels::packed_elements;

/// Products outside of loops for which packing once is worth it.
const MIN_PRODUCTS: usize = 4;
/// Products of more rows pack for themselves at no noticeable cost.
const MAX_ROWS: usize = 512;
/// Products of fewer rows or columns are not computed from packed matrices.
const MIN_ROWS: usize = 4;
const MIN_COLUMNS: usize = 16;

/// A right matrix: where it comes from, outside of all loops that only pass it on, and whether it is transposed.
type Key = (Source, bool);

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let mut groups: BTreeMap<Key, Vec<WorkId>> = BTreeMap::new();
    for (id, node) in
        graph.iter().filter(|(_, node)| may_be_packed(graph, node) && context.has_kernel(node, "_PackedMatMul"))
    {
        let key = (outside(graph, node.inputs[1]).0, flag(node, "transpose_b"));
        groups.entry(key).or_default().push(id);
    }
    let mut packing = Packing::default();
    for (key, products) in groups {
        let is_in_loop = |id: &WorkId| graph.get(*id).is_some_and(|node| !outside(graph, node.inputs[1]).1.is_empty());
        if products.len() >= MIN_PRODUCTS || products.iter().any(is_in_loop) {
            for product in products {
                packing.replace(graph, product, key)?;
            }
        }
    }
    Ok(packing.n_changed)
}

fn flag(node: &WorkNode, name: &str) -> bool {
    matches!(node.def.attrs.get(name), Some(Attr::Bool(true)))
}

fn may_be_packed(graph: &WorkGraph, node: &WorkNode) -> bool {
    let (1.., true) = (node.outputs().len(), matches!(node.op(), "MatMul" | "_FusedMatMul")) else { return false };
    let Port { dtype, shape } = &node.outputs()[0];
    let dim = |i: usize| shape.dims().and_then(|dims| dims.get(i).copied()).flatten();
    packed_elements(*dtype, 1, 1).is_some()
        && dim(0).is_none_or(|rows| (MIN_ROWS..=MAX_ROWS).contains(&rows))
        && dim(1).is_none_or(|columns| columns >= MIN_COLUMNS)
        && graph.port(node.inputs[1]).is_some()
}

/// Where a source comes from before it entered loops unchanged, and the nodes that it entered them by, the outermost last.
fn outside(graph: &WorkGraph, mut source: Source) -> (Source, SmallVec<[WorkId; 2]>) {
    let mut enters = SmallVec::new();
    while let Some((id, node)) = source.node().and_then(|id| Some((id, graph.get(id)?)))
        && node.kind() == OpKind::Enter
        && flag(node, "is_constant")
        && !enters.contains(&id)
    {
        enters.push(id);
        source = node.inputs[0];
    }
    (source, enters)
}

#[derive(Default)]
struct Packing {
    /// The packed matrices.
    packed: FxHashMap<Key, Source>,
    /// By the node that a matrix enters a loop by: how it enters packed.
    entered: FxHashMap<(WorkId, bool), Source>,
    n_changed: usize,
}

impl Packing {
    /// Makes a product one with a packed matrix.
    fn replace(&mut self, graph: &mut WorkGraph, product: WorkId, key: Key) -> Result<(), CompileError> {
        let Some(node) = graph.get(product).cloned() else { return Ok(()) };
        let mut packed = self.packed(graph, key, &node)?;
        for enter in outside(graph, node.inputs[1]).1.iter().rev() {
            packed = self.enter(graph, *enter, key.1, packed)?;
        }
        let mut attrs = node.def.attrs.clone();
        if node.op() == "MatMul" {
            attrs.retain(|name, _| matches!(name.as_str(), "T" | "transpose_a" | "transpose_b"));
            attrs.insert("originals".to_owned(), Attr::ListStr(vec![node.name().as_bytes().to_vec()]));
        }
        let (operands, others) = node.inputs.split_at(2);
        let inputs = operands.iter().copied().chain([packed]).chain(others.iter().copied()).collect();
        self.n_changed += 1;
        graph.turn_into(product, "_PackedMatMul", attrs, inputs)
    }

    fn packed(&mut self, graph: &mut WorkGraph, key: Key, product: &WorkNode) -> Result<Source, CompileError> {
        if let Some(packed) = self.packed.get(&key) {
            return Ok(*packed);
        }
        let (source, is_transposed) = key;
        let Some((dtype, shape)) = graph.port(source).map(|(dtype, shape)| (dtype, shape.clone())) else {
            return Err(CompileError::Pass { pass: "pack", problem: "a matrix comes from nowhere".into() });
        };
        let name = match source {
            Source::Port(id, _) => graph.get(id).map(|node| node.name().to_string()),
            Source::Feed(i) => graph.feeds.get(i as usize).map(|feed| feed.name.replace(':', "_")),
        };
        let attrs = [("T", Attr::Type(dtype)), ("transpose_b", Attr::Bool(is_transposed))];
        let packed = graph.add_new(NewNode {
            name: &format!("{}/packed", name.unwrap_or_default()),
            op: "_PackMatrix",
            attrs: attrs.map(|(name, value)| (name.to_owned(), value)).into(),
            inputs: smallvec![source],
            control_inputs: SmallVec::new(),
            outputs: vec![Port { dtype, shape: packed_shape(dtype, &shape, is_transposed) }],
            device: product.device,
        })?;
        self.packed.insert(key, packed.into());
        Ok(packed.into())
    }

    /// Lets a packed matrix into a loop as `enter` lets in the matrix.
    fn enter(
        &mut self,
        graph: &mut WorkGraph,
        enter: WorkId,
        turned: bool,
        packed: Source,
    ) -> Result<Source, CompileError> {
        if let Some(entered) = self.entered.get(&(enter, turned)) {
            return Ok(*entered);
        }
        let (Some(node), Some((dtype, shape))) = (graph.get(enter).cloned(), graph.port(packed)) else {
            return Err(CompileError::Pass { pass: "pack", problem: "a matrix enters a loop by no node".into() });
        };
        let outputs = vec![Port { dtype, shape: shape.clone() }];
        let entered = graph.add_new(NewNode {
            name: &format!("{}/packed", node.name()),
            op: "Enter",
            attrs: node.def.attrs.clone(),
            inputs: smallvec![packed],
            control_inputs: node.control_inputs,
            outputs,
            device: node.device,
        })?;
        self.entered.insert((enter, turned), entered.into());
        Ok(entered.into())
    }
}

/// The shape of a packed matrix, as far as known.
fn packed_shape(dtype: DType, shape: &PartialShape, is_transposed: bool) -> PartialShape {
    let elements = match shape.dims() {
        Some(&[Some(rows), Some(columns)]) if is_transposed => packed_elements(dtype, columns, rows),
        Some(&[Some(rows), Some(columns)]) => packed_elements(dtype, rows, columns),
        _ => None,
    };
    PartialShape::from([elements])
}
