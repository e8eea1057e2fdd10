//! Edges that cross a scope's border. They come in through ports on the lower border and leave through ports on the
//! upper one; a port stands for the item at the other end as its own scope draws it, so the parts of one edge meet
//! across any number of borders. Edges that would clutter the picture (to many children, control edges) become notes.

use super::scope_layout::{Note, NoteKind};
use crate::graph::model::{Edge, ItemId, MetaEdge, Model};

/// An outside item with edges to more children than this becomes a note at each child instead of a port.
const MAX_ENDS: usize = 4;
/// Ports on one border, at most.
const MAX_PORTS: usize = 14;

/// The edges across one border of a scope.
#[derive(Default)]
pub(super) struct Bridges {
    /// Outside items that get a port.
    pub ports: Vec<ItemId>,
    /// Edges to draw: (index of the port, child, edges).
    pub drawn: Vec<(usize, ItemId, MetaEdge)>,
    /// Notes for children.
    pub notes: Vec<(ItemId, Note)>,
}

/// All edges between an outside item and a child.
struct Crossing {
    outer: ItemId,
    child: ItemId,
    edge: MetaEdge,
}

/// Returns the edges that come into `scope`.
pub(super) fn incoming(model: &Model, scope: ItemId) -> Bridges {
    let is_outside = |e: &&Edge| !model.is_below(e.src, scope);
    collect(model, scope, model.flow_into(scope).filter(is_outside), |e| (e.src, e.dst))
}

/// Returns the edges that leave `scope`.
pub(super) fn outgoing(model: &Model, scope: ItemId) -> Bridges {
    let is_outside = |e: &&Edge| !model.is_below(e.dst, scope);
    collect(model, scope, model.flow_out_of(scope).filter(is_outside), |e| (e.dst, e.src))
}

/// Merges edges by outside item and child. `ends` returns the outside and the inside end of an edge.
fn collect<'m>(
    model: &'m Model,
    scope: ItemId,
    edges: impl Iterator<Item = &'m Edge>,
    ends: impl Fn(&Edge) -> (ItemId, ItemId),
) -> Bridges {
    let mut edges: Vec<(ItemId, ItemId, Edge)> = edges
        .map(|edge| {
            let (outer, inner) = ends(edge);
            (model.side_of(outer, inner), model.child_towards(scope, inner), *edge)
        })
        .collect();
    edges.sort_by_key(|&(outer, child, _)| (outer, child));
    let mut merged: Vec<Crossing> = Vec::new();
    for (outer, child, edge) in edges {
        match merged.last_mut() {
            Some(last) if (last.outer, last.child) == (outer, child) => last.edge.add(&edge),
            _ => merged.push(Crossing { outer, child, edge: MetaEdge::from_edge(outer, child, &edge) }),
        }
    }
    ports_and_notes(&merged)
}

/// Gives ports to the heaviest outside items that have data edges and few ends; all other edges and all control edges
/// become notes.
fn ports_and_notes(merged: &[Crossing]) -> Bridges {
    let mut bridges = Bridges::default();
    let mut groups: Vec<(&[Crossing], u64)> = merged
        .chunk_by(|a, b| a.outer == b.outer)
        .map(|group| (group, group.iter().map(|crossing| crossing.edge.size).fold(0, u64::saturating_add)))
        .collect();
    groups.sort_by_key(|(group, size)| (std::cmp::Reverse(*size), group[0].outer));
    for (group, _) in groups {
        let can_have_port = group.len() <= MAX_ENDS && bridges.ports.len() < MAX_PORTS;
        let has_port = can_have_port && group.iter().any(|crossing| !crossing.edge.is_control());
        let port = bridges.ports.len();
        if has_port {
            bridges.ports.push(group[0].outer);
        }
        for &Crossing { outer, child, edge } in group {
            match (has_port, edge.is_control()) {
                (true, false) => bridges.drawn.push((port, child, edge)),
                (_, true) => bridges.notes.push((child, Note { item: outer, kind: NoteKind::Control })),
                (false, false) => bridges.notes.push((child, Note { item: outer, kind: NoteKind::Shortcut })),
            }
        }
    }
    bridges
}
