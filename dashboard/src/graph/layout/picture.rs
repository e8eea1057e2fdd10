//! Everything visible, flat and in absolute coordinates. The points of edges and the annotations of boxes, which are
//! needed only in view, stay in the layouts of their scopes.

use super::scope_layout::{EdgeLayout, Note, ScopeLayout};
use crate::graph::model::{ItemId, Model};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A visible box.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoxLayout {
    pub item: ItemId,
    /// Left, top, right, bottom.
    pub rect: [f32; 4],
    /// Whether the box is open, with its children drawn inside.
    pub is_open: bool,
    /// Whether the box is in its scope's side area.
    pub is_auxiliary: bool,
    /// The number of boxes around this one.
    pub depth: u32,
    /// The left edge (x) of an open scope's side area; `None` without one.
    pub side_x: Option<f32>,
    /// Children of an open scope that are not drawn.
    pub n_hidden: u32,
    /// Whether there are annotations at the left and at the right.
    pub has_notes: [bool; 2],
    /// The index of the box's scope layout in the picture, and the index of the box in that layout.
    layout: [u32; 2],
}

impl BoxLayout {
    pub fn center(&self) -> [f32; 2] {
        [(self.rect[0] + self.rect[2]) / 2.0, (self.rect[1] + self.rect[3]) / 2.0]
    }
}

/// The layout of an open scope with its position in the picture.
#[derive(Clone, Debug, PartialEq)]
struct PlacedScope {
    layout: Arc<ScopeLayout>,
    /// The top left corner of the scope.
    corner: [f32; 2],
    /// The number of boxes around those of the scope.
    depth: u32,
}

/// Everything visible. Boxes come before the boxes inside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picture {
    pub boxes: Vec<BoxLayout>,
    pub edges: Vec<EdgeLayout>,
    scopes: Vec<PlacedScope>,
    /// Width and height.
    pub size: [f32; 2],
    /// The left edge (x) of the root's side area; `None` without one.
    pub side_x: Option<f32>,
    /// Children of the root that are not drawn.
    pub n_hidden: u32,
    box_idx: FxHashMap<ItemId, u32>,
}

impl Picture {
    /// Returns the points of an edge of this picture, from producer to consumer.
    pub fn points(&self, edge: &EdgeLayout) -> impl DoubleEndedIterator<Item = [f32; 2]> + '_ {
        let PlacedScope { layout, corner: [dx, dy], .. } = &self.scopes[edge.scope_idx as usize];
        let [start, end] = edge.point_range.map(|i| i as usize);
        layout.points[start..end].iter().map(move |[x, y]| [x + dx, y + dy])
    }

    /// Returns the annotations of a box of this picture: at the left for inputs, at the right for outputs.
    pub fn notes(&self, box_layout: &BoxLayout) -> [&[Note]; 2] {
        let [scope, idx] = box_layout.layout.map(|i| i as usize);
        let layout = &self.scopes[scope].layout.boxes[idx];
        [&layout.notes_in, &layout.notes_out]
    }

    /// Returns the box of an item, if it is visible.
    pub fn find(&self, item: ItemId) -> Option<&BoxLayout> {
        self.box_idx.get(&item).map(|&idx| &self.boxes[idx as usize])
    }

    /// Returns the innermost visible box that holds the host of `item`: the item itself, or for an annotation the
    /// annotated node.
    pub fn innermost_box(&self, model: &Model, item: ItemId) -> Option<&BoxLayout> {
        let mut ancestor = model.host(item);
        while ancestor != ItemId::ROOT {
            if let Some(box_layout) = self.find(ancestor) {
                return Some(box_layout);
            }
            ancestor = model.parent(ancestor);
        }
        None
    }

    /// Returns the innermost box at a point.
    pub fn box_at(&self, [x, y]: [f32; 2]) -> Option<&BoxLayout> {
        let is_inside = |b: &&BoxLayout| b.rect[0] <= x && x < b.rect[2] && b.rect[1] <= y && y < b.rect[3];
        self.boxes.iter().rev().find(is_inside)
    }

    /// Places the scopes of nested layouts in one coordinate system.
    pub(super) fn flatten(model: &Model, root: Arc<ScopeLayout>) -> Self {
        let (size, side_x, n_hidden) = (root.size, root.side_x, root.n_hidden);
        let scopes = open_scopes(root);
        let (edges, boxes) = rayon::join(|| edges(&scopes), || boxes(&scopes));
        debug_assert!(boxes.iter().all(|b| model.role(b.item) == crate::graph::model::Role::Shown));
        let box_idx = boxes.iter().map(|b| b.item).zip(0..).collect();
        Self { boxes, edges, scopes, size, side_x, n_hidden, box_idx }
    }
}

/// Returns the open scopes, outer before inner.
fn open_scopes(root: Arc<ScopeLayout>) -> Vec<PlacedScope> {
    let mut scopes = Vec::new();
    let mut stack = vec![PlacedScope { layout: root, corner: [0.0; 2], depth: 0 }];
    while let Some(scope) = stack.pop() {
        for child in &scope.layout.boxes {
            if let Some(inner) = &child.inner {
                let [x, y, ..] = rect(child.center, child.size, scope.corner);
                stack.push(PlacedScope { layout: Arc::clone(inner), corner: [x, y], depth: scope.depth + 1 });
            }
        }
        scopes.push(scope);
    }
    scopes
}

fn edges(scopes: &[PlacedScope]) -> Vec<EdgeLayout> {
    let mut out = Vec::with_capacity(scopes.iter().map(|scope| scope.layout.edges.len()).sum());
    for (scope_idx, PlacedScope { layout, corner: [dx, dy], .. }) in (0..).zip(scopes) {
        out.extend(layout.edges.iter().map(|edge| {
            let [left, top, right, bottom] = edge.bounds;
            EdgeLayout { scope_idx, bounds: [left + dx, top + dy, right + dx, bottom + dy], ..edge.clone() }
        }));
    }
    out
}

fn boxes(scopes: &[PlacedScope]) -> Vec<BoxLayout> {
    let mut out = Vec::with_capacity(scopes.iter().map(|scope| scope.layout.boxes.len()).sum());
    for (scope_idx, PlacedScope { layout, corner, depth }) in (0..).zip(scopes) {
        out.extend(layout.boxes.iter().zip(0..).map(|(child, idx)| {
            let rect = rect(child.center, child.size, *corner);
            BoxLayout {
                item: child.item,
                rect,
                is_open: child.inner.is_some(),
                is_auxiliary: child.is_auxiliary,
                depth: *depth,
                side_x: child.inner.as_ref().and_then(|i| i.side_x).map(|x| x + rect[0]),
                n_hidden: child.inner.as_ref().map_or(0, |i| i.n_hidden),
                has_notes: [&child.notes_in, &child.notes_out].map(|notes| !notes.is_empty()),
                layout: [scope_idx, idx],
            }
        }));
    }
    out
}

/// Returns left, top, right, bottom of a box with centre (x, y) in a scope with its corner at (dx, dy).
fn rect([x, y]: [f32; 2], [w, h]: [f32; 2], [dx, dy]: [f32; 2]) -> [f32; 4] {
    let [x, y] = [x + dx, y + dy];
    [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0]
}
