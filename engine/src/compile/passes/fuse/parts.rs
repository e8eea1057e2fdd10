//! What cuts values out for clusters and puts their results together: `Split`, `Slice` and `ConcatV2` with constant places
//! that serve clusters alone go, and the fused nodes read and write the parts where they lie.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cluster::Clusters;
use crate::compile::{Source, Uses, WorkGraph, WorkId, WorkNode};
use engine_core::geometry::axis;

/// A part of a value along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub axis: i64,
    pub begin: i64,
    pub size: i64,
}

/// What goes.
#[derive(Default)]
pub(super) struct Parts {
    /// What the outputs of nodes that cut are windows of.
    windows: FxHashMap<(WorkId, u32), (Source, Window)>,
    /// By cluster member: the nodes that put its results together.
    joins: BTreeMap<WorkId, (i64, SmallVec<[WorkId; 4]>)>,
    /// By member: the join that it is a part of.
    joined: FxHashMap<WorkId, WorkId>,
    cuts: Vec<WorkId>,
}

impl Parts {
    pub fn of(graph: &WorkGraph, uses: &Uses, clusters: &Clusters) -> Parts {
        let mut parts = Parts::default();
        for (id, node) in graph.iter() {
            let is_free = !uses.is_wanted(id) && node.control_inputs.is_empty();
            match node.op() {
                "Split" | "Slice" if is_free && serves_clusters(graph, uses, clusters, id) => {
                    let windows = if node.op() == "Split" { split(graph, node) } else { slice(graph, node) };
                    if let Some((source, windows)) = windows {
                        let windows = windows.into_iter().enumerate();
                        parts.windows.extend(windows.map(|(port, window)| ((id, port as u32), (source, window))));
                        parts.cuts.push(id);
                    }
                }
                "ConcatV2" if is_free => {
                    if let Some((axis, results)) = join(graph, uses, clusters, id, node) {
                        parts.joined.extend(results.iter().map(|result| (*result, id)));
                        parts.joins.insert(id, (axis, results));
                    }
                }
                _ => {}
            }
        }
        parts
    }

    /// What a source is a window of.
    pub fn window(&self, source: Source) -> Option<(Source, Window)> {
        let Source::Port(id, port) = source else { return None };
        self.windows.get(&(id, port)).copied()
    }

    /// The node that puts a member's result together with others, and all of these along an axis.
    pub fn join(&self, member: WorkId) -> Option<(WorkId, i64, &[WorkId])> {
        let join = *self.joined.get(&member)?;
        self.joins.get(&join).map(|(axis, results)| (join, *axis, results.as_slice()))
    }

    /// The nodes that are not needed any more.
    pub fn gone(&self) -> impl Iterator<Item = WorkId> {
        self.cuts.iter().copied().chain(self.joins.keys().copied())
    }
}

/// Whether all outputs go into clusters on the same device, which work on their shape.
fn serves_clusters(graph: &WorkGraph, uses: &Uses, clusters: &Clusters, id: WorkId) -> bool {
    let Some(node) = graph.get(id) else { return false };
    uses.of_node(id).iter().all(|one| {
        let consumer = graph.get(one.consumer).filter(|_| clusters.number(one.consumer).is_some());
        let fits = |(consumer, (_, port)): (&WorkNode, (u32, u32))| {
            consumer.device == node.device && consumer.outputs()[0] == node.outputs()[port as usize]
        };
        consumer.zip(one.edge).is_some_and(fits)
    })
}

/// The windows of a `Split`.
fn split(graph: &WorkGraph, node: &WorkNode) -> Option<(Source, Vec<Window>)> {
    let [along] = graph.constant_ints(node.inputs[0])?[..] else { return None };
    let dims = node.outputs().first()?.shape.dims()?;
    let axis = axis(along, dims.len()).ok()?;
    let size = dims[axis]? as i64;
    let window = |i: usize| Window { axis: axis as i64, begin: i as i64 * size, size };
    Some((node.inputs[1], (0..node.outputs().len()).map(window).collect()))
}

/// The window of a `Slice` that cuts along one axis.
fn slice(graph: &WorkGraph, node: &WorkNode) -> Option<(Source, Vec<Window>)> {
    let (begin, size) = (graph.constant_ints(node.inputs[1])?, graph.constant_ints(node.inputs[2])?);
    let dims = graph.port(node.inputs[0])?.1.dims()?;
    if begin.len() != dims.len() || size.len() != dims.len() {
        return None;
    }
    let is_whole = |i: &usize| begin[*i] == 0 && (size[*i] == -1 || dims[*i].is_some_and(|d| d as i64 == size[*i]));
    let cut: SmallVec<[usize; 4]> = (0..dims.len()).filter(|i| !is_whole(i)).collect();
    let &[axis] = cut.as_slice() else { return None };
    let whole = dims[axis]? as i64;
    let size = if size[axis] == -1 { whole - begin[axis] } else { size[axis] };
    let fits = begin[axis] >= 0 && size >= 0 && begin[axis] + size <= whole;
    fits.then(|| (node.inputs[0], vec![Window { axis: axis as i64, begin: begin[axis], size }]))
}

/// The axis and the results that a `ConcatV2` puts together, where these are of one cluster and for it alone.
fn join(
    graph: &WorkGraph,
    uses: &Uses,
    clusters: &Clusters,
    id: WorkId,
    node: &WorkNode,
) -> Option<(i64, SmallVec<[WorkId; 4]>)> {
    let (along, values) = node.inputs.split_last()?;
    let [along] = graph.constant_ints(*along)?[..] else { return None };
    let results: Option<SmallVec<[WorkId; 4]>> = values.iter().map(|value| value.node()).collect();
    let results = results.filter(|results| results.len() > 1)?;
    let first = *results.first()?;
    let number = clusters.number(first)?;
    let outside = |result: WorkId| {
        let is_outside =
            move |one: &&super::super::Use| one.edge.is_none() || clusters.number(one.consumer) != Some(number);
        uses.of_node(result).iter().filter(is_outside).copied().collect::<SmallVec<[super::super::Use; 2]>>()
    };
    let is_for_it = |result: &WorkId| {
        let is_only = matches!(outside(*result).as_slice(), [one] if one.consumer == id && one.edge.is_some());
        clusters.number(*result) == Some(number) && is_only && !uses.is_wanted(*result)
    };
    let at = graph.get(first)?;
    let axis = axis(along, at.outputs()[0].shape.rank()?).ok()?;
    (at.device == node.device && results.iter().all(is_for_it)).then_some((axis as i64, results))
}
