//! The draft of an open scope: which children it shows, its side area, its notes, its connected parts.

use super::{
    bridge::{self, Bridges},
    scope_layout::{MAX_CHILDREN, MAX_NOTES, Note, NoteKind, ScopeLayout},
};
use crate::graph::model::{
    ItemId, Kind, MetaEdge, Model,
    side_area::{MAX_CONTROL, are_in_side_area},
};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use ui::theme::metrics::graph as m;

/// An open scope to lay out.
pub(super) struct OpenScope<'a> {
    pub model: &'a Model,
    pub scope: ItemId,
    /// Whether all its children are drawn, however many.
    pub is_unlimited: bool,
    /// The layouts of its open children.
    pub inner: FxHashMap<ItemId, Arc<ScopeLayout>>,
}

/// A child that becomes a box.
pub(super) struct Child {
    pub item: ItemId,
    pub is_auxiliary: bool,
    pub inner: Option<Arc<ScopeLayout>>,
    pub size: [f32; 2],
    pub notes_in: Vec<Note>,
    pub notes_out: Vec<Note>,
}

impl Child {
    /// Returns the widths of the notes to the left and to the right of the box.
    fn margins(&self) -> (f32, f32) {
        let width = |notes: &[Note]| if notes.is_empty() { 0.0 } else { m::NOTE_W };
        (width(&self.notes_in), width(&self.notes_out))
    }

    /// Returns width and height including the notes.
    pub fn outer_size(&self) -> [f32; 2] {
        let (left, right) = self.margins();
        let rows = self.notes_in.len().max(self.notes_out.len()) as f32;
        [self.size[0] + left + right, self.size[1].max(rows * m::NOTE_H)]
    }

    /// Returns the horizontal offset of the box's middle from the middle of box and notes.
    pub fn box_dx(&self) -> f32 {
        let (left, right) = self.margins();
        (left - right) / 2.0
    }
}

/// The children of an open scope and the edges to draw.
pub(super) struct Draft {
    pub children: Vec<Child>,
    /// Children that are not drawn.
    pub n_hidden: u32,
    /// Edges to draw between children, by index.
    pub core: Vec<(usize, usize, MetaEdge)>,
    pub ins: Bridges,
    pub outs: Bridges,
    pub idx_of: FxHashMap<ItemId, usize>,
    /// The vertex of each child in the drawing of its part.
    pub vertex_of: Vec<u32>,
}

/// Connected children by index, the edges between them, and whether the ports belong to them.
#[derive(Default)]
pub(super) struct Part {
    pub children: Vec<usize>,
    pub core: Vec<(usize, usize, MetaEdge)>,
    pub has_ports: bool,
}

impl Draft {
    /// Chooses the children of a scope, their notes, and the edges to draw.
    pub fn new(open: &OpenScope<'_>) -> Self {
        let mut draft = Self::of_children(open);
        draft.split_edges(open.model, open.scope);
        draft.annotate(open.model);
        draft
    }

    fn of_children(&OpenScope { model, scope, is_unlimited, ref inner }: &OpenScope<'_>) -> Self {
        let all = model.children(scope);
        let mut shown: Vec<ItemId> = all.to_vec();
        if !is_unlimited && all.len() > MAX_CHILDREN {
            shown.sort_by_key(|&c| (!inner.contains_key(&c), std::cmp::Reverse(model.n_nodes(c)), c));
            shown.truncate(MAX_CHILDREN);
            shown.sort_unstable();
        }
        let are_auxiliary = are_in_side_area(model, scope, &shown);
        let child = |(&item, is_auxiliary): (&ItemId, bool)| {
            let inner = inner.get(&item).cloned();
            let size = inner.as_ref().map_or_else(|| box_size(model, item), |layout| layout.size);
            Child { item, is_auxiliary, inner, size, notes_in: vec![], notes_out: vec![] }
        };
        let n_hidden = (all.len() - shown.len()) as u32;
        let idx_of = shown.iter().enumerate().map(|(idx, &c)| (c, idx)).collect();
        let vertex_of = vec![0; shown.len()];
        let children = shown.iter().zip(are_auxiliary).map(child).collect();
        let (ins, outs) = match scope {
            ItemId::ROOT => (Bridges::default(), Bridges::default()),
            _ => (bridge::incoming(model, scope), bridge::outgoing(model, scope)),
        };
        Self { children, n_hidden, core: vec![], ins, outs, idx_of, vertex_of }
    }

    /// Decides which edges are drawn and which become notes at both ends.
    fn split_edges(&mut self, model: &Model, scope: ItemId) {
        let edges = model.metaedges(scope);
        let mut n_controls = vec![0_u32; self.children.len()];
        let ends = |e: &MetaEdge, idx_of: &FxHashMap<ItemId, usize>| Some((*idx_of.get(&e.src)?, *idx_of.get(&e.dst)?));
        for edge in edges.iter().filter(|e| e.is_control()) {
            if let Some((src, dst)) = ends(edge, &self.idx_of) {
                n_controls[src] += 1;
                n_controls[dst] += 1;
            }
        }
        for edge in edges {
            let Some((src, dst)) = ends(edge, &self.idx_of) else { continue };
            let has_auxiliary = self.children[src].is_auxiliary || self.children[dst].is_auxiliary;
            let is_crowded = edge.is_control() && n_controls[src].max(n_controls[dst]) > MAX_CONTROL;
            if has_auxiliary || is_crowded {
                let kind = if edge.is_control() { NoteKind::Control } else { NoteKind::Shortcut };
                self.children[src].notes_out.push(Note { item: edge.dst, kind });
                self.children[dst].notes_in.push(Note { item: edge.src, kind });
            } else {
                self.core.push((src, dst, *edge));
            }
        }
        for (bridges, is_incoming) in [(&mut self.ins, true), (&mut self.outs, false)] {
            // A bridge to a child that is auxiliary or not shown is not drawn.
            let mut notes = std::mem::take(&mut bridges.notes);
            let (idx_of, children) = (&self.idx_of, &self.children);
            bridges.drawn.retain(|&(port, child, _)| match idx_of.get(&child) {
                Some(&idx) if !children[idx].is_auxiliary => true,
                _ => {
                    notes.push((child, Note { item: bridges.ports[port], kind: NoteKind::Shortcut }));
                    false
                }
            });
            for (child, note) in notes {
                let Some(&idx) = self.idx_of.get(&child) else { continue };
                let child = &mut self.children[idx];
                if is_incoming { child.notes_in.push(note) } else { child.notes_out.push(note) }
            }
        }
    }

    /// Adds constants and summaries, drops duplicate notes, and replaces notes beyond the limit by their number.
    fn annotate(&mut self, model: &Model) {
        for child in &mut self.children {
            if child.inner.is_some() {
                child.notes_in.clear();
                child.notes_out.clear();
                continue;
            }
            let constants = model.constants(child.item).iter().map(|&item| Note { item, kind: NoteKind::Constant });
            child.notes_in.splice(0..0, constants);
            let summaries = model.summaries(child.item).iter().map(|&item| Note { item, kind: NoteKind::Summary });
            child.notes_out.splice(0..0, summaries);
            for notes in [&mut child.notes_in, &mut child.notes_out] {
                let mut seen = rustc_hash::FxHashSet::default();
                notes.retain(|note| seen.insert(note.item));
                if notes.len() > MAX_NOTES {
                    let rest = (notes.len() - MAX_NOTES + 1) as u32;
                    notes.truncate(MAX_NOTES - 1);
                    notes.push(Note { item: child.item, kind: NoteKind::More(rest) });
                }
            }
        }
    }

    /// Moves the core into its connected parts: the part with the ports, then the others by their first child.
    pub fn connected_parts(&mut self) -> Vec<Part> {
        let n = self.children.len();
        let mut sets = UnionFind::new(n + 1);
        for &(src, dst, _) in &self.core {
            sets.union(src, dst);
        }
        for (_, child, _) in self.ins.drawn.iter().chain(&self.outs.drawn) {
            sets.union(self.idx_of[child], n);
        }
        let mut part_of: FxHashMap<usize, usize> = FxHashMap::default();
        let mut parts: Vec<Part> = Vec::new();
        if !self.ins.drawn.is_empty() || !self.outs.drawn.is_empty() {
            part_of.insert(sets.find(n), 0);
            parts.push(Part { has_ports: true, ..Part::default() });
        }
        for idx in (0..n).filter(|&idx| !self.children[idx].is_auxiliary) {
            let part = *part_of.entry(sets.find(idx)).or_insert_with(|| {
                parts.push(Part::default());
                parts.len() - 1
            });
            self.vertex_of[idx] = parts[part].children.len() as u32;
            parts[part].children.push(idx);
        }
        for edge in std::mem::take(&mut self.core) {
            if let Some(&part) = part_of.get(&sets.find(edge.0)) {
                parts[part].core.push(edge);
            }
        }
        parts
    }
}

/// Returns width and height of a closed box.
fn box_size(model: &Model, item: ItemId) -> [f32; 2] {
    let chars = model.label(item).chars().count() as f32;
    match model.kind(item) {
        Kind::Op => [(chars * m::CHAR_W + m::OP_PAD).clamp(m::OP_MIN_W, m::OP_MAX_W), m::OP_H],
        _ => {
            let n = model.n_nodes(item).max(1) as f32;
            let height = (m::SCOPE_H + n.log2() * 2.5).min(m::SCOPE_MAX_H);
            [(chars * m::CHAR_W + m::BOX_PAD).clamp(m::BOX_MIN_W, m::BOX_MAX_W), height]
        }
    }
}

/// Disjoint sets: the parent of each element.
struct UnionFind(Vec<usize>);

impl UnionFind {
    fn new(n: usize) -> Self {
        Self((0..n).collect())
    }

    fn find(&mut self, mut element: usize) -> usize {
        while self.0[element] != element {
            self.0[element] = self.0[self.0[element]];
            element = self.0[element];
        }
        element
    }

    fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}
