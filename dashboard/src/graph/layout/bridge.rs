//! Edges that cross a scope's border. They come in through ports on the lower border and leave through ports on the
//! upper one; a port stands for the item at the other end as its own scope draws it, so the parts of one edge meet
//! across any number of borders. What would clutter (sources that reach many children, control edges) becomes notes.

use super::scope_layout::{Note, NoteKind};
use crate::graph::model::{Edge, ItemId, MetaEdge, Model};

/// An outside item with more ends in a scope than this is noted at each of them instead of drawn.
const ENDS_MAX: usize = 4;
const PORTS_MAX: usize = 14;

/// The edges across one border of a scope.
#[derive(Default)]
pub(super) struct Bridges {
    /// Outside items that get a port.
    pub ports: Vec<ItemId>,
    /// Edges that are drawn, as (index of the port, child, edges).
    pub drawn: Vec<(usize, ItemId, MetaEdge)>,
    /// Notes for children.
    pub notes: Vec<(ItemId, Note)>,
}

/// All edges between an outside item and a child.
type Crossing = (ItemId, ItemId, MetaEdge);

/// Edges that come into `scope`.
pub(super) fn inwards(model: &Model, scope: ItemId) -> Bridges {
    let outside = |e: &&Edge| !model.is_below(e.src, scope);
    collect(model, scope, model.flow_into(scope).filter(outside), |e| (e.src, e.dst))
}

/// Edges that leave `scope`.
pub(super) fn outwards(model: &Model, scope: ItemId) -> Bridges {
    let outside = |e: &&Edge| !model.is_below(e.dst, scope);
    collect(model, scope, model.flow_out_of(scope).filter(outside), |e| (e.dst, e.src))
}

fn collect<'m>(
    model: &'m Model,
    scope: ItemId,
    edges: impl Iterator<Item = &'m Edge>,
    ends: impl Fn(&Edge) -> (ItemId, ItemId),
) -> Bridges {
    let mut found: Vec<(ItemId, ItemId, Edge)> = edges
        .map(|edge| {
            let (outer, child) = ends(edge);
            (model.side_of(outer, child), model.child_towards(scope, child), *edge)
        })
        .collect();
    found.sort_by_key(|&(outer, child, _)| (outer, child));
    let mut merged: Vec<Crossing> = Vec::new();
    for (outer, child, edge) in found {
        match merged.last_mut() {
            Some((o, c, sum)) if (*o, *c) == (outer, child) => sum.add(&edge),
            _ => merged.push((outer, child, MetaEdge::of(outer, child, &edge))),
        }
    }
    choose(&merged)
}

fn choose(merged: &[Crossing]) -> Bridges {
    let mut bridges = Bridges::default();
    let mut groups: Vec<(&[Crossing], u64)> = merged
        .chunk_by(|a, b| a.0 == b.0)
        .map(|group| (group, group.iter().map(|g| g.2.size).fold(0, u64::saturating_add)))
        .collect();
    // The heaviest keep their ports where there are too many.
    groups.sort_by_key(|(group, size)| (std::cmp::Reverse(*size), group[0].0));
    for (group, _) in groups {
        let drawn = group.len() <= ENDS_MAX && bridges.ports.len() < PORTS_MAX;
        let drawn = drawn && group.iter().any(|g| !g.2.is_control());
        let port = bridges.ports.len();
        if drawn {
            bridges.ports.push(group[0].0);
        }
        for &(outer, child, edge) in group {
            match (drawn, edge.is_control()) {
                (true, false) => bridges.drawn.push((port, child, edge)),
                (_, true) => bridges.notes.push((child, Note { item: outer, kind: NoteKind::Control })),
                (false, false) => bridges.notes.push((child, Note { item: outer, kind: NoteKind::Shortcut })),
            }
        }
    }
    bridges
}
