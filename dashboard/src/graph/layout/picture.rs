//! What is visible, flat and in absolute coordinates.

use super::{Note, ScopeLayout, Span};
use crate::{
    graph::model::{ItemId, MetaEdge, Model},
    theme::metrics::graph as m,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Elements of a tensor at which an edge is thickest.
const SIZE_MAX: f32 = 5e6;

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
    pub notes_in: Arc<[Note]>,
    /// Annotations at the right: what goes out.
    pub notes_out: Arc<[Note]>,
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
    span: Span,
    /// Left, top, right, bottom of the points.
    pub bounds: [f32; 4],
    /// Its width at zoom 1.
    pub width: f32,
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
    points: Vec<[f32; 2]>,
    /// Width and height.
    pub size: [f32; 2],
    /// Where the root's side area begins (x), if it has one.
    pub side_x: Option<f32>,
    /// Children of the root that are not drawn.
    pub n_more: u32,
    place: FxHashMap<ItemId, u32>,
}

impl Picture {
    /// The points that an edge of this picture passes, producer to consumer.
    pub fn points(&self, edge: &PicEdge) -> &[[f32; 2]] {
        edge.span.of(&self.points)
    }

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
        picture.reserve(root);
        let mut stack = vec![(root, [0.0_f32; 2], 0_u32)];
        while let Some((layout, [dx, dy], depth)) = stack.pop() {
            for edge in &layout.edges {
                let start = picture.points.len();
                picture.points.extend(edge.span.of(&layout.points).iter().map(|[x, y]| [x + dx, y + dy]));
                let bounds = bounds(&picture.points[start..]);
                let span = Span::since(start, &picture.points);
                picture.edges.push(PicEdge {
                    edge: edge.edge,
                    span,
                    bounds,
                    width: width(&edge.edge),
                    has_head: edge.has_head,
                });
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
                    notes_in: Arc::clone(&child.notes_in),
                    notes_out: Arc::clone(&child.notes_out),
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

    /// Room for all that is in a layout.
    fn reserve(&mut self, root: &ScopeLayout) {
        let (mut n_boxes, mut n_edges, mut n_points) = (0, 0, 0);
        let mut stack = vec![root];
        while let Some(layout) = stack.pop() {
            n_boxes += layout.boxes.len();
            n_edges += layout.edges.len();
            n_points += layout.points.len();
            stack.extend(layout.boxes.iter().filter_map(|child| child.inner.as_deref()));
        }
        self.boxes.reserve(n_boxes);
        self.place.reserve(n_boxes);
        self.edges.reserve(n_edges);
        self.points.reserve(n_points);
    }
}

fn bounds(points: &[[f32; 2]]) -> [f32; 4] {
    points.iter().fold([f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY], |b, p| {
        [b[0].min(p[0]), b[1].min(p[1]), b[2].max(p[0]), b[3].max(p[1])]
    })
}

/// Width at zoom 1: the 0.3th power of the size, as TensorBoard has it, or of the count where no size is known.
fn width(edge: &MetaEdge) -> f32 {
    let [least, most] = m::EDGE_W;
    if edge.is_control() || edge.size <= 1 {
        return least;
    }
    let power = |x: f32| x.powf(0.3);
    least + (most - least) * (power((edge.size as f32).min(SIZE_MAX)) - 1.0) / (power(SIZE_MAX) - 1.0)
}
