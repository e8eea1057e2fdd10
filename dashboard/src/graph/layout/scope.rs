//! One open scope: its children chosen, side area and notes decided, the connected parts drawn in layers and packed.

use super::{
    BoxLayout, CHILDREN_MAX, EdgeLayout, NOTES_MAX, Note, NoteKind, ScopeLayout, Span,
    bridge::{self, Bridges},
    pack::shelves,
};
use crate::graph::{
    layered::{self, Cancelled, Drawing, Drawings, End, Spacing, Vertex},
    model::{
        ItemId, Kind, MetaEdge, Model,
        extract::{CONTROL_MAX, Place, places},
    },
};
use crate::theme::metrics::graph as m;
use rustc_hash::FxHashMap;
use std::sync::{Arc, atomic::AtomicBool};

const SPACING: Spacing = Spacing { node: m::NODE_GAP, edge: m::EDGE_GAP, rank: m::RANK_GAP };

/// Elements of a tensor at which an edge is thickest.
const SIZE_MAX: f32 = 5e6;

type Inner = FxHashMap<ItemId, Arc<ScopeLayout>>;

/// Lays out `scope`; `inner` has the layouts of its open children.
pub(super) fn lay_out(
    model: &Model,
    scope: ItemId,
    unlimited: bool,
    inner: &Inner,
    drawings: &Drawings,
    cancel: &AtomicBool,
) -> Result<ScopeLayout, Cancelled> {
    let mut draft = Draft::new(model, scope, unlimited, inner);
    draft.sort_edges(model, scope);
    draft.annotate(model);
    let parts = draft.parts();
    let blocks = parts.iter().map(|part| draft.draw(part, drawings, cancel)).collect::<Result<Vec<_>, _>>()?;
    Ok(draft.assemble(scope, &parts, &blocks))
}

/// A child on its way to a box.
struct Child {
    item: ItemId,
    side: bool,
    inner: Option<Arc<ScopeLayout>>,
    size: [f32; 2],
    notes_in: Vec<Note>,
    notes_out: Vec<Note>,
}

impl Child {
    /// Room that notes take left and right of the box.
    fn margins(&self) -> (f32, f32) {
        let side = |notes: &[Note]| if notes.is_empty() { 0.0 } else { m::NOTE_W };
        (side(&self.notes_in), side(&self.notes_out))
    }

    fn outer(&self) -> [f32; 2] {
        let (left, right) = self.margins();
        let rows = self.notes_in.len().max(self.notes_out.len()) as f32;
        [self.size[0] + left + right, self.size[1].max(rows * m::NOTE_H)]
    }

    /// Offset of the box's middle from the middle of its room.
    fn shift(&self) -> f32 {
        let (left, right) = self.margins();
        (left - right) / 2.0
    }
}

struct Draft {
    children: Vec<Child>,
    n_more: u32,
    /// Edges between children that are drawn, by place.
    core: Vec<(usize, usize, MetaEdge)>,
    ins: Bridges,
    outs: Bridges,
    place_of: FxHashMap<ItemId, usize>,
    /// Each child's place in its part.
    vertex_of: Vec<u32>,
}

/// What is drawn together: children by place, edges between them, and whether the ports belong to it.
#[derive(Default)]
struct Part {
    children: Vec<usize>,
    core: Vec<(usize, usize, MetaEdge)>,
    ports: bool,
}

/// A part drawn. Its vertices are the children, then the ports; the flow goes downwards.
struct Block {
    drawing: Arc<Drawing>,
    /// Per path of the drawing what it stands for, and whether it has its head here.
    edges: Vec<(MetaEdge, bool)>,
}

impl Block {
    /// A place in the drawing with the flow turned upwards.
    fn flip(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        [x, self.drawing.size[1] - y]
    }
}

impl Draft {
    fn new(model: &Model, scope: ItemId, unlimited: bool, inner: &Inner) -> Self {
        let all = model.children(scope);
        let mut kept: Vec<ItemId> = all.to_vec();
        if !unlimited && all.len() > CHILDREN_MAX {
            kept.sort_by_key(|&c| (!inner.contains_key(&c), std::cmp::Reverse(model.n_nodes(c)), c));
            kept.truncate(CHILDREN_MAX);
            kept.sort_unstable();
        }
        let places = places(model, scope, &kept);
        let child = |(&item, place): (&ItemId, Place)| {
            let inner = inner.get(&item).cloned();
            let size = inner.as_ref().map_or_else(|| box_size(model, item), |layout| layout.size);
            Child { item, side: place == Place::Side, inner, size, notes_in: vec![], notes_out: vec![] }
        };
        let n_more = (all.len() - kept.len()) as u32;
        let place_of = kept.iter().enumerate().map(|(idx, &c)| (c, idx)).collect();
        let vertex_of = vec![0; kept.len()];
        let children = kept.iter().zip(places).map(child).collect();
        let (ins, outs) = match scope {
            ItemId::ROOT => (Bridges::default(), Bridges::default()),
            _ => (bridge::inwards(model, scope), bridge::outwards(model, scope)),
        };
        Self { children, n_more, core: vec![], ins, outs, place_of, vertex_of }
    }

    /// Decides which edges are drawn and which become notes at both ends.
    fn sort_edges(&mut self, model: &Model, scope: ItemId) {
        let edges = model.metaedges(scope);
        let mut controls = vec![0_u32; self.children.len()];
        let ends = |e: &MetaEdge, of: &FxHashMap<ItemId, usize>| Some((*of.get(&e.src)?, *of.get(&e.dst)?));
        for edge in edges.iter().filter(|e| e.is_control()) {
            if let Some((src, dst)) = ends(edge, &self.place_of) {
                controls[src] += 1;
                controls[dst] += 1;
            }
        }
        for edge in edges {
            let Some((src, dst)) = ends(edge, &self.place_of) else { continue };
            let aside = self.children[src].side || self.children[dst].side;
            let crowded = edge.is_control() && controls[src].max(controls[dst]) > CONTROL_MAX;
            if aside || crowded {
                let kind = if edge.is_control() { NoteKind::Control } else { NoteKind::Shortcut };
                self.children[src].notes_out.push(Note { item: edge.dst, kind });
                self.children[dst].notes_in.push(Note { item: edge.src, kind });
            } else {
                self.core.push((src, dst, *edge));
            }
        }
        for (bridges, inwards) in [(&mut self.ins, true), (&mut self.outs, false)] {
            // A bridge to a child in the side area, or to one beyond the limit, is not drawn.
            let mut notes = std::mem::take(&mut bridges.notes);
            let (place_of, children) = (&self.place_of, &self.children);
            bridges.drawn.retain(|&(port, near, _)| match place_of.get(&near) {
                Some(&place) if !children[place].side => true,
                _ => {
                    notes.push((near, Note { item: bridges.ports[port], kind: NoteKind::Shortcut }));
                    false
                }
            });
            for (near, note) in notes {
                let Some(&place) = self.place_of.get(&near) else { continue };
                let child = &mut self.children[place];
                if inwards { child.notes_in.push(note) } else { child.notes_out.push(note) }
            }
        }
    }

    /// Adds constants and summaries, drops repetitions and what goes beyond the limit.
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
                if notes.len() > NOTES_MAX {
                    let rest = (notes.len() - NOTES_MAX + 1) as u32;
                    notes.truncate(NOTES_MAX - 1);
                    notes.push(Note { item: child.item, kind: NoteKind::More(rest) });
                }
            }
        }
    }

    /// Connected parts of the core, the one with the ports first, in the order of their first children.
    fn parts(&mut self) -> Vec<Part> {
        let n = self.children.len();
        let mut sets = Sets::new(n + 1);
        for &(src, dst, _) in &self.core {
            sets.join(src, dst);
        }
        for (_, near, _) in self.ins.drawn.iter().chain(&self.outs.drawn) {
            sets.join(self.place_of[near], n);
        }
        let mut part_of: FxHashMap<usize, usize> = FxHashMap::default();
        let mut parts: Vec<Part> = Vec::new();
        if !self.ins.drawn.is_empty() || !self.outs.drawn.is_empty() {
            part_of.insert(sets.find(n), 0);
            parts.push(Part { ports: true, ..Part::default() });
        }
        for place in (0..n).filter(|&place| !self.children[place].side) {
            let part = *part_of.entry(sets.find(place)).or_insert_with(|| {
                parts.push(Part::default());
                parts.len() - 1
            });
            self.vertex_of[place] = parts[part].children.len() as u32;
            parts[part].children.push(place);
        }
        for edge in std::mem::take(&mut self.core) {
            if let Some(&part) = part_of.get(&sets.find(edge.0)) {
                parts[part].core.push(edge);
            }
        }
        parts
    }

    fn draw(&self, part: &Part, drawings: &Drawings, cancel: &AtomicBool) -> Result<Block, Cancelled> {
        let n = part.children.len();
        let child = |&c: &usize| {
            let [w, h] = self.children[c].outer();
            Vertex { w, h, end: End::Free }
        };
        let mut vertices: Vec<Vertex> = part.children.iter().map(child).collect();
        let (n_in, n_out) = if part.ports { (self.ins.ports.len(), self.outs.ports.len()) } else { (0, 0) };
        let port = |end| Vertex { w: m::PORT_W, h: 0.0, end };
        vertices.extend((0..n_in).map(|_| port(End::First)).chain((0..n_out).map(|_| port(End::Last))));
        let (mut arcs, mut edges) = (Vec::new(), Vec::new());
        let mut push = |src: u32, dst: u32, src_dx: f32, dst_dx: f32, edge: MetaEdge, has_head: bool| {
            let weight = 1.0 + (edge.n_data + edge.n_control).min(64).ilog2() as f32 * 0.5;
            arcs.push(layered::Arc { src, dst, src_dx, dst_dx, weight });
            edges.push((edge, has_head));
        };
        for (src, dst, edge) in &part.core {
            let (a, b) = (self.vertex_of[*src], self.vertex_of[*dst]);
            push(a, b, self.out_dx(*src, edge.dst), self.in_dx(*dst, edge.src), *edge, !self.enters(*dst, edge.src));
        }
        if part.ports {
            for &(port, near, edge) in &self.ins.drawn {
                let place = self.place_of[&near];
                let has_head = !self.enters(place, edge.src);
                push((n + port) as u32, self.vertex_of[place], 0.0, self.in_dx(place, edge.src), edge, has_head);
            }
            for &(port, near, edge) in &self.outs.drawn {
                let place = self.place_of[&near];
                let edge = MetaEdge { src: edge.dst, dst: edge.src, ..edge };
                push(self.vertex_of[place], (n + n_in + port) as u32, self.out_dx(place, edge.dst), 0.0, edge, false);
            }
        }
        Ok(Block { drawing: drawings.draw(&vertices, &arcs, SPACING, cancel)?, edges })
    }

    /// Where on the lower border of a child edges from `far` enter, from the middle of its room.
    fn in_dx(&self, place: usize, far: ItemId) -> f32 {
        let child = &self.children[place];
        child.shift() + child.inner.as_ref().and_then(|i| i.in_ports.get(&far)).copied().unwrap_or(0.0)
    }

    /// Whether an edge from `far` goes on inside the child.
    fn enters(&self, place: usize, far: ItemId) -> bool {
        self.children[place].inner.as_ref().is_some_and(|inner| inner.in_ports.contains_key(&far))
    }

    fn out_dx(&self, place: usize, far: ItemId) -> f32 {
        let child = &self.children[place];
        child.shift() + child.inner.as_ref().and_then(|i| i.out_ports.get(&far)).copied().unwrap_or(0.0)
    }

    fn assemble(mut self, scope: ItemId, parts: &[Part], blocks: &[Block]) -> ScopeLayout {
        let sizes: Vec<[f32; 2]> = blocks.iter().map(|b| b.drawing.size).collect();
        let (corners, core) = arrange(parts, &sizes);
        let side: Vec<usize> = (0..self.children.len()).filter(|&c| self.children[c].side).collect();
        let side_sizes: Vec<[f32; 2]> = side.iter().map(|&c| self.children[c].outer()).collect();
        let (side_corners, side_size) = shelves(&side_sizes, m::NODE_GAP, 0.4);
        let top = m::TITLE_H + m::SCOPE_PAD;
        let top = if scope == ItemId::ROOT { m::SCOPE_PAD } else { top };
        let height = core[1].max(side_size[1]);
        let mut layout = ScopeLayout { n_more: self.n_more, ..ScopeLayout::default() };
        let mut width = m::SCOPE_PAD + core[0];
        let side_x = (!side.is_empty()).then_some(width + m::SIDE_GAP);
        if let Some(x) = side_x {
            width = x + m::SIDE_GAP + side_size[0];
            layout.side_x = Some(x);
        }
        layout.size = [(width + m::SCOPE_PAD).max(m::SCOPE_MIN_W), top + height + m::SCOPE_PAD];
        if self.n_more > 0 {
            layout.size[1] += m::MORE_H;
        }
        let spread = (height - core[1]) / 2.0;
        layout.boxes.reserve_exact(self.children.len());
        layout.edges.reserve_exact(blocks.iter().map(|block| block.edges.len()).sum());
        for ((part, block), corner) in parts.iter().zip(blocks).zip(corners) {
            let at = [m::SCOPE_PAD + corner[0], top + spread + corner[1]];
            self.put(&mut layout, part, block, at);
        }
        for ((&place, corner), size) in side.iter().zip(side_corners).zip(&side_sizes) {
            let x = side_x.unwrap_or(0.0) + m::SIDE_GAP + corner[0] + size[0] / 2.0;
            let made = self.finish_box(place, [x, top + corner[1] + size[1] / 2.0]);
            layout.boxes.push(made);
        }
        layout
    }

    /// Adds a part's boxes and edges with its corner at `at`; its ports go to the scope's borders.
    fn put(&mut self, layout: &mut ScopeLayout, part: &Part, block: &Block, at: [f32; 2]) {
        let shift = |point: [f32; 2]| {
            let [x, y] = block.flip(point);
            [x + at[0], y + at[1]]
        };
        for (&place, &center) in part.children.iter().zip(&block.drawing.centers) {
            let made = self.finish_box(place, shift(center));
            layout.boxes.push(made);
        }
        let bottom = layout.size[1];
        let (in_ports, out_ports) =
            if part.ports { (&self.ins.ports[..], &self.outs.ports[..]) } else { (&[][..], &[][..]) };
        for (&(edge, has_head), path) in block.edges.iter().zip(&block.drawing.paths) {
            let (Some(&first), Some(&last)) = (path.first(), path.last()) else { continue };
            let start = layout.points.len();
            if in_ports.contains(&edge.src) {
                layout.points.push([shift(first)[0], bottom]);
            }
            layout.points.extend(path.iter().map(|&point| shift(point)));
            if out_ports.contains(&edge.dst) {
                layout.points.push([shift(last)[0], 0.0]);
            }
            let (bounds, span) = (bounds(&layout.points[start..]), Span::since(start, &layout.points));
            layout.edges.push(EdgeLayout { edge, span, bounds, width: width(&edge), has_head });
        }
        if part.ports {
            let middle = layout.size[0] / 2.0;
            let (ins, outs) = block.drawing.centers[part.children.len()..].split_at(in_ports.len());
            let dx = |center: &[f32; 2]| center[0] + at[0] - middle;
            layout.in_ports = in_ports.iter().copied().zip(ins.iter().map(dx)).collect();
            layout.out_ports = out_ports.iter().copied().zip(outs.iter().map(dx)).collect();
        }
    }

    fn finish_box(&mut self, place: usize, center: [f32; 2]) -> BoxLayout {
        let child = &mut self.children[place];
        BoxLayout {
            item: child.item,
            center: [center[0] + child.shift(), center[1]],
            size: child.size,
            inner: child.inner.take(),
            side: child.side,
            notes_in: shared(std::mem::take(&mut child.notes_in)),
            notes_out: shared(std::mem::take(&mut child.notes_out)),
        }
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

/// Most boxes have no notes: those share one empty list.
fn shared(notes: Vec<Note>) -> Arc<[Note]> {
    if notes.is_empty() { Arc::default() } else { notes.into() }
}

/// Corners of the parts: the one with ports to the left over the whole height, the others on shelves beside it.
fn arrange(parts: &[Part], sizes: &[[f32; 2]]) -> (Vec<[f32; 2]>, [f32; 2]) {
    let with_ports = parts.first().is_some_and(|part| part.ports);
    let (main, rest) = if with_ports { (sizes[0], &sizes[1..]) } else { ([0.0; 2], sizes) };
    let (mut corners, size) = shelves(rest, m::PART_GAP, 1.6);
    if !with_ports {
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

/// Size of a box that is not open.
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

/// Union-find.
struct Sets(Vec<usize>);

impl Sets {
    fn new(n: usize) -> Self {
        Self((0..n).collect())
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}
