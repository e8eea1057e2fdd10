//! Lays out an open scope: draws its connected parts in layers and packs them.

use super::{
    draft::{Draft, OpenScope, Part},
    layered::{self, Cancelled, Drawing, DrawingCache, RankConstraint, Spacing, Vertex},
    pack::pack_shelves,
    scope_layout::{BoxLayout, EdgeLayout, Note, ScopeLayout},
};
use crate::graph::model::{ItemId, MetaEdge};
use std::sync::{Arc, atomic::AtomicBool};
use ui::theme::metrics::graph as m;

const SPACING: Spacing = Spacing { node: m::NODE_GAP, edge: m::EDGE_GAP, rank: m::RANK_GAP };

/// Width of a side area as a multiple of its height, about.
const SIDE_ASPECT: f32 = 0.4;
/// Elements of a tensor at which an edge is thickest.
const MAX_SIZE: f32 = 5e6;

pub(super) fn lay_out(
    open: &OpenScope<'_>,
    drawings: &DrawingCache,
    cancel: &AtomicBool,
) -> Result<ScopeLayout, Cancelled> {
    let mut draft = Draft::new(open);
    let parts = draft.connected_parts();
    let blocks = parts.iter().map(|part| draft.draw(part, drawings, cancel)).collect::<Result<Vec<_>, _>>()?;
    Ok(draft.assemble(open.scope, &parts, &blocks))
}

/// The drawing of a part. Its vertices are the children, then the ports; the flow goes downwards.
struct Block {
    drawing: Arc<Drawing>,
    /// The metaedge of each path of the drawing, and whether the path has the arrow head.
    edges: Vec<(MetaEdge, bool)>,
}

impl Block {
    /// Turns the flow of the drawing upwards: mirrors a point vertically.
    fn flip(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        [x, self.drawing.size[1] - y]
    }
}

impl Draft {
    fn draw(&self, part: &Part, drawings: &DrawingCache, cancel: &AtomicBool) -> Result<Block, Cancelled> {
        let n = part.children.len();
        let child = |&c: &usize| {
            let [w, h] = self.children[c].outer_size();
            Vertex { w, h, constraint: RankConstraint::Free }
        };
        let mut vertices: Vec<Vertex> = part.children.iter().map(child).collect();
        let (n_in, n_out) = if part.has_ports { (self.ins.ports.len(), self.outs.ports.len()) } else { (0, 0) };
        let port = |constraint| Vertex { w: m::PORT_W, h: 0.0, constraint };
        vertices.extend((0..n_in).map(|_| port(RankConstraint::First)));
        vertices.extend((0..n_out).map(|_| port(RankConstraint::Last)));
        let (mut arcs, mut edges) = (Vec::new(), Vec::new());
        let mut push_arc = |src: u32, dst: u32, src_dx: f32, dst_dx: f32, edge: MetaEdge, has_head: bool| {
            let weight = 1.0 + (edge.n_data + edge.n_control).min(64).ilog2() as f32 * 0.5;
            arcs.push(layered::Arc { src, dst, src_dx, dst_dx, weight });
            edges.push((edge, has_head));
        };
        for (src, dst, edge) in &part.core {
            let (a, b) = (self.vertex_of[*src], self.vertex_of[*dst]);
            let (src_dx, dst_dx) = (self.out_dx(*src, edge.dst), self.in_dx(*dst, edge.src));
            push_arc(a, b, src_dx, dst_dx, *edge, !self.has_in_port(*dst, edge.src));
        }
        if part.has_ports {
            for &(port, child, edge) in &self.ins.drawn {
                let idx = self.idx_of[&child];
                let has_head = !self.has_in_port(idx, edge.src);
                push_arc((n + port) as u32, self.vertex_of[idx], 0.0, self.in_dx(idx, edge.src), edge, has_head);
            }
            for &(port, child, edge) in &self.outs.drawn {
                let idx = self.idx_of[&child];
                let edge = MetaEdge { src: edge.dst, dst: edge.src, ..edge };
                push_arc(self.vertex_of[idx], (n + n_in + port) as u32, self.out_dx(idx, edge.dst), 0.0, edge, false);
            }
        }
        Ok(Block { drawing: drawings.draw(&vertices, &arcs, SPACING, cancel)?, edges })
    }

    /// Returns where edges from `outer` enter a child: an offset from the middle of box and notes.
    fn in_dx(&self, idx: usize, outer: ItemId) -> f32 {
        let child = &self.children[idx];
        child.box_dx() + child.inner.as_ref().and_then(|i| i.in_ports.get(&outer)).copied().unwrap_or(0.0)
    }

    /// Whether the child is open and continues edges from `outer` inside.
    fn has_in_port(&self, idx: usize, outer: ItemId) -> bool {
        self.children[idx].inner.as_ref().is_some_and(|inner| inner.in_ports.contains_key(&outer))
    }

    /// Returns where edges to `outer` leave a child: an offset from the middle of box and notes.
    fn out_dx(&self, idx: usize, outer: ItemId) -> f32 {
        let child = &self.children[idx];
        child.box_dx() + child.inner.as_ref().and_then(|i| i.out_ports.get(&outer)).copied().unwrap_or(0.0)
    }

    /// Packs the blocks, adds the side area, and computes the size of the scope.
    fn assemble(mut self, scope: ItemId, parts: &[Part], blocks: &[Block]) -> ScopeLayout {
        let sizes: Vec<[f32; 2]> = blocks.iter().map(|b| b.drawing.size).collect();
        let (corners, core_size) = arrange(parts, &sizes);
        let side: Vec<usize> = (0..self.children.len()).filter(|&c| self.children[c].is_auxiliary).collect();
        let side_sizes: Vec<[f32; 2]> = side.iter().map(|&c| self.children[c].outer_size()).collect();
        let (side_corners, side_size) = pack_shelves(&side_sizes, m::NODE_GAP, SIDE_ASPECT);
        let top = m::TITLE_H + m::SCOPE_PAD;
        let top = if scope == ItemId::ROOT { m::SCOPE_PAD } else { top };
        let height = core_size[1].max(side_size[1]);
        let mut layout = ScopeLayout { n_hidden: self.n_hidden, ..ScopeLayout::default() };
        let mut width = m::SCOPE_PAD + core_size[0];
        let side_x = (!side.is_empty()).then_some(width + m::SIDE_GAP);
        if let Some(x) = side_x {
            width = x + m::SIDE_GAP + side_size[0];
            layout.side_x = Some(x);
        }
        layout.size = [(width + m::SCOPE_PAD).max(m::SCOPE_MIN_W), top + height + m::SCOPE_PAD];
        if self.n_hidden > 0 {
            layout.size[1] += m::MORE_H;
        }
        let core_dy = (height - core_size[1]) / 2.0;
        layout.boxes.reserve_exact(self.children.len());
        layout.edges.reserve_exact(blocks.iter().map(|block| block.edges.len()).sum());
        for ((part, block), corner) in parts.iter().zip(blocks).zip(corners) {
            let origin = [m::SCOPE_PAD + corner[0], top + core_dy + corner[1]];
            self.add_part(&mut layout, part, block, origin);
        }
        for ((&idx, corner), size) in side.iter().zip(side_corners).zip(&side_sizes) {
            let x = side_x.unwrap_or(0.0) + m::SIDE_GAP + corner[0] + size[0] / 2.0;
            let box_layout = self.box_layout(idx, [x, top + corner[1] + size[1] / 2.0]);
            layout.boxes.push(box_layout);
        }
        layout
    }

    /// Adds a part's boxes and edges with its corner at `origin`; extends edges of ports to the scope's borders.
    fn add_part(&mut self, layout: &mut ScopeLayout, part: &Part, block: &Block, origin: [f32; 2]) {
        let to_scope = |point: [f32; 2]| {
            let [x, y] = block.flip(point);
            [x + origin[0], y + origin[1]]
        };
        for (&idx, &center) in part.children.iter().zip(&block.drawing.centers) {
            let box_layout = self.box_layout(idx, to_scope(center));
            layout.boxes.push(box_layout);
        }
        let bottom = layout.size[1];
        let (in_ports, out_ports) =
            if part.has_ports { (&self.ins.ports[..], &self.outs.ports[..]) } else { (&[][..], &[][..]) };
        for (&(edge, has_head), path) in block.edges.iter().zip(&block.drawing.paths) {
            let (Some(&first), Some(&last)) = (path.first(), path.last()) else { continue };
            let start = layout.points.len();
            if in_ports.contains(&edge.src) {
                layout.points.push([to_scope(first)[0], bottom]);
            }
            layout.points.extend(path.iter().map(|&point| to_scope(point)));
            if out_ports.contains(&edge.dst) {
                layout.points.push([to_scope(last)[0], 0.0]);
            }
            let (bounds, point_range) = (bounds(&layout.points[start..]), [start as u32, layout.points.len() as u32]);
            layout.edges.push(EdgeLayout {
                metaedge: edge,
                scope_idx: 0,
                point_range,
                bounds,
                width: width(&edge),
                has_head,
            });
        }
        if part.has_ports {
            let middle = layout.size[0] / 2.0;
            let (ins, outs) = block.drawing.centers[part.children.len()..].split_at(in_ports.len());
            let dx = |center: &[f32; 2]| center[0] + origin[0] - middle;
            layout.in_ports = in_ports.iter().copied().zip(ins.iter().map(dx)).collect();
            layout.out_ports = out_ports.iter().copied().zip(outs.iter().map(dx)).collect();
        }
    }

    fn box_layout(&mut self, idx: usize, center: [f32; 2]) -> BoxLayout {
        let child = &mut self.children[idx];
        BoxLayout {
            item: child.item,
            center: [center[0] + child.box_dx(), center[1]],
            size: child.size,
            inner: child.inner.take(),
            is_auxiliary: child.is_auxiliary,
            notes_in: share_notes(std::mem::take(&mut child.notes_in)),
            notes_out: share_notes(std::mem::take(&mut child.notes_out)),
        }
    }
}

/// Returns left, top, right, bottom of the points.
fn bounds(points: &[[f32; 2]]) -> [f32; 4] {
    points.iter().fold([f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY], |b, p| {
        [b[0].min(p[0]), b[1].min(p[1]), b[2].max(p[0]), b[3].max(p[1])]
    })
}

/// Returns the line width at zoom 1: it grows with the 0.3th power of the size, as in TensorBoard.
fn width(edge: &MetaEdge) -> f32 {
    let [min, max] = m::EDGE_W;
    if edge.is_control() || edge.size <= 1 {
        return min;
    }
    let power = |x: f32| x.powf(0.3);
    min + (max - min) * (power((edge.size as f32).min(MAX_SIZE)) - 1.0) / (power(MAX_SIZE) - 1.0)
}

/// Moves notes into an `Arc`; boxes without notes, which are most, share one empty list.
fn share_notes(notes: Vec<Note>) -> Arc<[Note]> {
    if notes.is_empty() { Arc::default() } else { notes.into() }
}

/// Returns the corners of the parts and the total size: the part with ports is at the left, the others to its right.
fn arrange(parts: &[Part], sizes: &[[f32; 2]]) -> (Vec<[f32; 2]>, [f32; 2]) {
    let has_ports = parts.first().is_some_and(|part| part.has_ports);
    let (main, rest) = if has_ports { (sizes[0], &sizes[1..]) } else { ([0.0; 2], sizes) };
    let (mut corners, size) = pack_shelves(rest, m::PART_GAP, 1.6);
    if !has_ports {
        return (corners, size);
    }
    let left = if rest.is_empty() { 0.0 } else { main[0] + m::PART_GAP };
    let height = main[1].max(size[1]);
    for corner in &mut corners {
        *corner = [corner[0] + left, corner[1] + (height - size[1]) / 2.0];
    }
    corners.insert(0, [0.0, (height - main[1]) / 2.0]);
    (corners, [main[0].max(left + size[0]), height])
}
