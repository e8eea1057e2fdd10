//! Clean-ups that change no bit of a result: nodes that give what they get, pairs that undo each other.
//!
//! A table by op says what a node is the same as. What is fetched, a target, or waits for control edges stays; an identity
//! behind a switch that others wait for stays too, because it is dead where the switch itself is not.

use super::{PassContext, Redirects, Source, Uses, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;
use engine_core::dtype::DType;
use engine_core::graph::Attr;
use engine_core::ops::OpKind;
use engine_core::tensor::Tensor;

/// What a node may be replaced by.
enum Same {
    /// A source.
    As(Source),
    /// Itself, with another first input.
    On(Source),
}

/// Finds what a node of an op is the same as.
type Rule = fn(&WorkGraph, &WorkNode) -> Option<Same>;

/// The rules, by op.
const RULES: &[(&str, Rule)] = &[
    ("Identity", first),
    ("StopGradient", first),
    ("PreventGradient", first),
    ("Snapshot", first),
    ("Cast", cast),
    ("Add", plus_zero),
    ("AddV2", plus_zero),
    ("Sub", minus_zero),
    ("Mul", times_one),
    ("Div", over_one),
    ("RealDiv", over_one),
    ("Neg", undone),
    ("LogicalNot", undone),
    ("Abs", repeated),
    ("Relu", repeated),
    ("Sign", repeated),
    ("Floor", repeated),
    ("Ceil", repeated),
    ("Reshape", reshape),
    ("Transpose", transpose),
    ("AddN", only_one),
    ("ConcatV2", concat_of_one),
    ("Tile", tile_once),
    ("Sum", over_no_axes),
    ("Prod", over_no_axes),
    ("Max", over_no_axes),
    ("Min", over_no_axes),
    ("All", over_no_axes),
    ("Any", over_no_axes),
];

fn rule(op: &str) -> Option<Rule> {
    RULES.iter().find(|(name, _)| *name == op).map(|(_, rule)| *rule)
}

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, _: &PassContext<'_>) -> Result<usize, CompileError> {
    let uses = graph.uses();
    let mut redirects = Redirects::default();
    let mut n_changes = 0;
    for id in graph.order()? {
        let Some(node) = graph.get_mut(id) else { continue };
        for input in &mut node.inputs {
            *input = redirects.source(*input);
        }
        // What comes from further up may be the same as something again.
        while let Some(same) = graph.get(id).and_then(|node| rule(node.op())?(graph, node)) {
            n_changes += 1;
            match same {
                Same::On(source) => graph.set_input(id, 0, source),
                Same::As(source) if may_go(graph, &uses, id, source) => {
                    redirects.port(id, 0, source);
                    redirects.control(id, source.node().as_slice());
                    break;
                }
                Same::As(_) => {
                    n_changes -= 1;
                    break;
                }
            }
        }
    }
    graph.redirect(&redirects);
    graph.sweep();
    Ok(n_changes)
}

/// Whether what uses `node` may use `source` instead.
fn may_go(graph: &WorkGraph, uses: &Uses, id: WorkId, source: Source) -> bool {
    let Some(node) = graph.get(id) else { return false };
    let from = source.node().and_then(|from| graph.get(from));
    // An explicit place of an identity is where somebody wants the value.
    let is_placed = |from: &WorkNode| {
        node.device != from.device || !node.def.device.is_empty() && node.def.device != from.def.device
    };
    let has_control_uses = || uses.of_node(id).iter().any(|one| one.edge.is_none());
    let is_pivot = from.is_some_and(|from| from.kind().is_switch()) && has_control_uses();
    !uses.is_wanted(id) && node.control_inputs.is_empty() && !from.is_some_and(is_placed) && !is_pivot
}

fn first(_: &WorkGraph, node: &WorkNode) -> Option<Same> {
    node.inputs.first().copied().map(Same::As)
}

fn cast(_: &WorkGraph, node: &WorkNode) -> Option<Same> {
    (node.def.attrs.get("SrcT") == node.def.attrs.get("DstT")).then(|| Same::As(node.inputs[0]))
}

/// Whether a source is a constant that runs before everything, all of whose elements satisfy `is`, and that leaves the shape
/// of `other` as it is.
fn is_neutral(graph: &WorkGraph, source: Source, other: Source, is: fn(&Tensor) -> bool) -> bool {
    let Some(value) = graph.constant(source).filter(|value| is(value)) else { return false };
    let is_free = source.node().and_then(|id| graph.get(id)).is_some_and(|node| node.control_inputs.is_empty());
    let keeps_shape = || {
        let known = graph.port(other).and_then(|(_, shape)| shape.known());
        value.shape().rank() == 0 || known.is_some_and(|shape| shape == *value.shape())
    };
    is_free && keeps_shape()
}

fn all<T: engine_core::dtype::Element>(value: &Tensor, is: impl Fn(T) -> bool) -> bool {
    value.slice::<T>().is_ok_and(|values| !values.is_empty() && values.iter().all(|v| is(*v)))
}

fn is_one(value: &Tensor) -> bool {
    match value.dtype() {
        DType::F32 => all(value, |v: f32| v == 1.0),
        DType::F64 => all(value, |v: f64| v == 1.0),
        DType::I32 => all(value, |v: i32| v == 1),
        DType::I64 => all(value, |v: i64| v == 1),
        _ => false,
    }
}

/// What added to anything leaves it as it is: of floats only -0, since -0 + 0 is 0.
fn is_nothing_added(value: &Tensor) -> bool {
    match value.dtype() {
        DType::F32 => all(value, |v: f32| v.to_bits() == (-0.0f32).to_bits()),
        DType::F64 => all(value, |v: f64| v.to_bits() == (-0.0f64).to_bits()),
        DType::I32 => all(value, |v: i32| v == 0),
        DType::I64 => all(value, |v: i64| v == 0),
        _ => false,
    }
}

/// What taken from anything leaves it as it is: of floats only +0.
fn is_nothing_taken(value: &Tensor) -> bool {
    match value.dtype() {
        DType::F32 => all(value, |v: f32| v.to_bits() == 0),
        DType::F64 => all(value, |v: f64| v.to_bits() == 0),
        DType::I32 => all(value, |v: i32| v == 0),
        DType::I64 => all(value, |v: i64| v == 0),
        _ => false,
    }
}

fn either(graph: &WorkGraph, node: &WorkNode, is: fn(&Tensor) -> bool) -> Option<Same> {
    let &[a, b] = &node.inputs[..] else { return None };
    if is_neutral(graph, b, a, is) {
        return Some(Same::As(a));
    }
    is_neutral(graph, a, b, is).then_some(Same::As(b))
}

fn second(graph: &WorkGraph, node: &WorkNode, is: fn(&Tensor) -> bool) -> Option<Same> {
    let &[a, b] = &node.inputs[..] else { return None };
    is_neutral(graph, b, a, is).then_some(Same::As(a))
}

fn plus_zero(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    either(graph, node, is_nothing_added)
}

fn minus_zero(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    second(graph, node, is_nothing_taken)
}

fn times_one(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    either(graph, node, is_one)
}

fn over_one(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    second(graph, node, is_one)
}

/// The node of the same op that the only input comes from, where nothing but it must run before.
fn inner<'a>(graph: &'a WorkGraph, node: &WorkNode) -> Option<&'a WorkNode> {
    let Source::Port(from, 0) = *node.inputs.first()? else { return None };
    graph.get(from).filter(|from| from.op() == node.op() && from.control_inputs.is_empty())
}

fn undone(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    inner(graph, node).map(|inner| Same::As(inner.inputs[0]))
}

fn repeated(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    inner(graph, node).map(|_| Same::As(node.inputs[0]))
}

fn reshape(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    let (_, from) = graph.port(node.inputs[0])?;
    let wanted = &node.outputs().first()?.shape;
    let is_constant = graph.constant(node.inputs[1]).is_some();
    if is_constant && from.known().is_some() && from.known() == wanted.known() {
        return is_free(graph, node.inputs[1]).then_some(Same::As(node.inputs[0]));
    }
    // The inner one must be sure to succeed: its shape is known to fit.
    let inner = inner(graph, node)?;
    let (_, before) = graph.port(inner.inputs[0])?;
    let fits = before.known()?.checked_n_elements() == inner.outputs()[0].shape.known()?.checked_n_elements();
    (fits && is_free(graph, inner.inputs[1])).then_some(Same::On(inner.inputs[0]))
}

/// Whether a source is a constant that waits for nothing.
fn is_free(graph: &WorkGraph, source: Source) -> bool {
    let node = source.node().and_then(|id| graph.get(id));
    node.is_some_and(|node| node.kind() == OpKind::Const && node.control_inputs.is_empty())
}

fn permutation(graph: &WorkGraph, source: Source) -> Option<Vec<usize>> {
    let perm = graph.constant_ints(source).filter(|_| is_free(graph, source))?;
    let rank = perm.len() as i64;
    perm.iter().map(|p| usize::try_from(if *p < 0 { *p + rank } else { *p }).ok().filter(|p| *p < perm.len())).collect()
}

fn transpose(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    let outer = permutation(graph, node.inputs[1])?;
    let in_order = |perm: &[usize]| perm.iter().enumerate().all(|(i, p)| i == *p);
    let rank = graph.port(node.inputs[0])?.1.rank()?;
    if in_order(&outer) && rank == outer.len() {
        return Some(Same::As(node.inputs[0]));
    }
    let inner = inner(graph, node)?;
    let first = permutation(graph, inner.inputs[1]).filter(|first| first.len() == outer.len())?;
    let both: Vec<usize> = outer.iter().map(|p| first[*p]).collect();
    (in_order(&both) && rank == both.len()).then(|| Same::As(inner.inputs[0]))
}

fn only_one(_: &WorkGraph, node: &WorkNode) -> Option<Same> {
    (node.inputs.len() == 1).then(|| Same::As(node.inputs[0]))
}

fn concat_of_one(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    let known = graph.port(node.inputs[0])?.1.rank().is_some_and(|rank| rank > 0);
    (node.inputs.len() == 2 && known && is_free(graph, node.inputs[1])).then(|| Same::As(node.inputs[0]))
}

fn tile_once(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    let multiples = graph.constant_ints(node.inputs[1]).filter(|_| is_free(graph, node.inputs[1]))?;
    let rank = graph.port(node.inputs[0])?.1.rank()?;
    (multiples.len() == rank && multiples.iter().all(|m| *m == 1)).then(|| Same::As(node.inputs[0]))
}

fn over_no_axes(graph: &WorkGraph, node: &WorkNode) -> Option<Same> {
    let axes = graph.constant_ints(node.inputs[1]).filter(|_| is_free(graph, node.inputs[1]))?;
    let is_flag = matches!(node.def.attrs.get("keep_dims"), Some(Attr::Bool(_)));
    (axes.is_empty() && is_flag).then(|| Same::As(node.inputs[0]))
}
