//! What is visible, flat and in absolute coordinates.

use super::{Note, ScopeLayout};
use crate::graph::model::{ItemId, MetaEdge, Model};
use rustc_hash::FxHashMap;

/// A box of the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PicBox {
    /// What it shows.
    pub item: ItemId,
    /// Left, top, right, bottom.
    pub rect: [f32; 4],
    /// Whether its children are drawn inside.
    pub open: bool,
    /// Whether it stands in its scope's side area.
    pub side: bool,
    /// How many boxes are around it.
    pub depth: u32,
    /// Annotations at the left: what comes in.
    pub notes_in: Vec<Note>,
    /// Annotations at the right: what goes out.
    pub notes_out: Vec<Note>,
    /// Where the side area of an open scope begins (x), if it has one.
    pub side_x: Option<f32>,
    /// Children of an open scope that are not drawn.
    pub n_more: u32,
}

impl PicBox {
    /// Middle of the box.
    pub fn center(&self) -> [f32; 2] {
        [(self.rect[0] + self.rect[2]) / 2.0, (self.rect[1] + self.rect[3]) / 2.0]
    }
}

/// An edge, or the part of it between two borders.
#[derive(Clone, Debug, PartialEq)]
pub struct PicEdge {
    /// What it stands for. Its ends are the boxes as the lowest common scope draws them.
    pub edge: MetaEdge,
    /// The points it passes, producer to consumer.
    pub points: Vec<[f32; 2]>,
    /// Left, top, right, bottom of the points.
    pub bounds: [f32; 4],
    /// Whether it ends at its consumer, rather than going on inside another border.
    pub has_head: bool,
}

/// Everything visible. Boxes come before the boxes inside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Boxes, outer before inner.
    pub boxes: Vec<PicBox>,
    /// Edges.
    pub edges: Vec<PicEdge>,
    /// Width and height.
    pub size: [f32; 2],
    /// Where the root's side area begins (x), if it has one.
    pub side_x: Option<f32>,
    /// Children of the root that are not drawn.
    pub n_more: u32,
    place: FxHashMap<ItemId, u32>,
}

impl Picture {
    /// The box of an item, if it is visible.
    pub fn find(&self, item: ItemId) -> Option<&PicBox> {
        self.place.get(&item).map(|&place| &self.boxes[place as usize])
    }

    /// The innermost visible box that holds `item` (or is it).
    pub fn stand_in(&self, model: &Model, item: ItemId) -> Option<&PicBox> {
        let mut at = model.host(item);
        while at != ItemId::ROOT {
            if let Some(found) = self.find(at) {
                return Some(found);
            }
            at = model.parent(at);
        }
        None
    }

    /// The innermost box at a point.
    pub fn hit(&self, [x, y]: [f32; 2]) -> Option<&PicBox> {
        let inside = |b: &&PicBox| b.rect[0] <= x && x < b.rect[2] && b.rect[1] <= y && y < b.rect[3];
        self.boxes.iter().rev().find(inside)
    }

    pub(super) fn flatten(model: &Model, root: &ScopeLayout) -> Self {
        let mut picture = Self { size: root.size, side_x: root.side_x, n_more: root.n_more, ..Self::default() };
        let mut stack = vec![(root, [0.0_f32; 2], 0_u32)];
        while let Some((layout, [dx, dy], depth)) = stack.pop() {
            for edge in &layout.edges {
                let points: Vec<[f32; 2]> = edge.points.iter().map(|[x, y]| [x + dx, y + dy]).collect();
                let bounds = bounds(&points);
                picture.edges.push(PicEdge { edge: edge.edge, points, bounds, has_head: edge.has_head });
            }
            for child in &layout.boxes {
                let ([w, h], center) = (child.size, [child.center[0] + dx, child.center[1] + dy]);
                let rect = [center[0] - w / 2.0, center[1] - h / 2.0, center[0] + w / 2.0, center[1] + h / 2.0];
                debug_assert!(model.role(child.item) == crate::graph::model::Role::Shown);
                picture.place.insert(child.item, picture.boxes.len() as u32);
                picture.boxes.push(PicBox {
                    item: child.item,
                    rect,
                    open: child.inner.is_some(),
                    side: child.side,
                    depth,
                    notes_in: child.notes_in.clone(),
                    notes_out: child.notes_out.clone(),
                    side_x: child.inner.as_ref().and_then(|i| i.side_x).map(|x| x + rect[0]),
                    n_more: child.inner.as_ref().map_or(0, |i| i.n_more),
                });
                if let Some(inner) = &child.inner {
                    stack.push((inner, [rect[0], rect[1]], depth + 1));
                }
            }
        }
        picture
    }
}

fn bounds(points: &[[f32; 2]]) -> [f32; 4] {
    points.iter().fold([f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY], |b, p| {
        [b[0].min(p[0]), b[1].min(p[1]), b[2].max(p[0]), b[3].max(p[1])]
    })
}
