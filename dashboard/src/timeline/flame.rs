//! Flame graphs of a range: slices added up by what they are nested in, and samples by call stack.

use crate::{
    format,
    theme::{metrics, palette},
    widgets::describe,
};
use egui::{Align2, Mesh, Rect, Sense, Ui, pos2, vec2};
use profiler::{FlameNode, SliceRef, Store};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Slices that are added up, at most.
pub const MAX_SLICES: usize = 2_000_000;
/// Levels that are shown, at most.
const MAX_DEPTH: usize = 64;

/// A box of a flame graph.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameBox {
    /// What it is.
    pub name: String,
    /// Nesting, 0 outermost.
    pub depth: usize,
    /// Where it begins, of the widths of all outermost boxes, 0..1.
    pub start: f64,
    /// How much of that it covers.
    pub width: f64,
    /// Weight with what is nested in it: ns, or samples.
    pub total: u64,
    /// Weight without.
    pub own: u64,
    /// How many slices; 0 for samples.
    pub count: u64,
}

/// A tree of weights.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    by_key: FxHashMap<(u32, u32), u32>,
}

struct Node {
    name: String,
    parent: u32,
    depth: usize,
    total: u64,
    nested: u64,
    count: u64,
}

const ROOT: u32 = u32::MAX;

/// The slices of a range on all tracks that `shows`, by what they are nested in. The flag: whether slices were left out.
pub fn of_slices(store: &Store, range: &Range<i64>, shows: impl Fn(u32) -> bool) -> (Vec<FlameBox>, bool) {
    let mut tree = Tree::default();
    let mut left = MAX_SLICES;
    for track in store.tracks().iter().filter(|t| shows(t.id.0)) {
        // What the lane above holds: begin, end, node of the tree.
        let mut above: Vec<(i64, i64, u32)> = Vec::new();
        for (nth, lane) in track.lanes.iter().enumerate() {
            let mut here = Vec::new();
            let mut at = 0;
            for slice in lane.slices(range) {
                if left == 0 {
                    return (boxes(&tree), true);
                }
                left -= 1;
                while above.get(at).is_some_and(|(_, end, _)| *end <= slice.start) {
                    at += 1;
                }
                let parent = above.get(at).filter(|(start, end, _)| *start <= slice.start && slice.end <= *end);
                if parent.is_none()
                    && nth > 0
                    && !above.is_empty()
                    && above.get(at).is_some_and(|(s, ..)| *s < slice.end)
                {
                    // It overlaps what it is not nested in: a lane for that, and outermost here.
                    here.push((slice.start, slice.end, tree.add(store, ROOT, &slice, range)));
                    continue;
                }
                let node = tree.add(store, parent.map_or(ROOT, |(_, _, node)| *node), &slice, range);
                here.push((slice.start, slice.end, node));
            }
            if !here.is_empty() {
                above = here;
            }
        }
    }
    (boxes(&tree), false)
}

impl Tree {
    fn add(&mut self, store: &Store, parent: u32, slice: &SliceRef, range: &Range<i64>) -> u32 {
        let depth = self.nodes.get(parent as usize).map_or(0, |p| p.depth + 1);
        let nodes = &mut self.nodes;
        let row = *self.by_key.entry((parent, slice.site)).or_insert_with(|| {
            let name = store.sites().get(slice.site as usize).map_or_else(|| "?".to_owned(), |s| s.name.clone());
            nodes.push(Node { name, parent, depth, total: 0, nested: 0, count: 0 });
            nodes.len() as u32 - 1
        });
        let ns = slice.end.min(range.end).saturating_sub(slice.start.max(range.start)).max(0) as u64;
        let node = &mut self.nodes[row as usize];
        node.total += ns;
        node.count += 1;
        if let Some(parent) = self.nodes.get_mut(parent as usize) {
            parent.nested += ns;
        }
        row
    }
}

/// Boxes side by side, the heaviest first.
fn boxes(tree: &Tree) -> Vec<FlameBox> {
    let weights = tree.nodes.iter().map(|n| (n.parent, n.depth, n.total));
    let starts = starts(&weights.collect::<Vec<_>>());
    let all: u64 = tree.nodes.iter().filter(|n| n.parent == ROOT).map(|n| n.total).sum();
    let share = |weight: u64| weight as f64 / all.max(1) as f64;
    let made = tree.nodes.iter().zip(starts).map(|(n, start)| FlameBox {
        name: n.name.clone(),
        depth: n.depth,
        start: share(start),
        width: share(n.total),
        total: n.total,
        own: n.total.saturating_sub(n.nested),
        count: n.count,
    });
    made.filter(|b| b.depth < MAX_DEPTH && b.total > 0).collect()
}

/// The samples of a range by call stack.
pub fn of_samples(store: &Store, range: &Range<i64>) -> Vec<FlameBox> {
    let nodes: Vec<FlameNode> = profiler::flame(store, &[], range.clone());
    let weights: Vec<_> = nodes.iter().map(|n| (n.parent.map_or(ROOT, |p| p as u32), n.depth, n.total)).collect();
    let starts = starts(&weights);
    let all: u64 = nodes.iter().filter(|n| n.parent.is_none()).map(|n| n.total).sum();
    let share = |weight: u64| weight as f64 / all.max(1) as f64;
    let made = nodes.into_iter().zip(starts).map(|(n, start)| FlameBox {
        start: share(start),
        width: share(n.total),
        total: n.total,
        own: n.own,
        count: 0,
        name: n.name,
        depth: n.depth,
    });
    made.filter(|b| b.depth < MAX_DEPTH).collect()
}

/// Where each node begins, given (parent, depth, weight) of each; siblings from the heaviest to the lightest.
fn starts(nodes: &[(u32, usize, u64)]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|i| (nodes[*i].1, nodes[*i].0, std::cmp::Reverse(nodes[*i].2), *i));
    let mut starts = vec![0; nodes.len()];
    // Where the next child of each node begins; the outermost ones' is the last.
    let mut next = vec![0_u64; nodes.len() + 1];
    for i in order {
        let (parent, _, weight) = nodes[i];
        let slot = (parent as usize).min(nodes.len());
        starts[i] = next[slot];
        next[slot] += weight;
        next[i] = starts[i];
    }
    starts
}

/// Shows the boxes from top to bottom; `weight` writes a weight.
pub fn flame_ui(ui: &mut Ui, what: &str, boxes: &[FlameBox], weight: impl Fn(u64) -> String) {
    let p = palette(ui);
    let depth = boxes.iter().map(|b| b.depth + 1).max().unwrap_or(0);
    let size = vec2(ui.available_width(), depth as f32 * metrics::LANE_H);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    describe(&response, || {
        let top = boxes.iter().filter(|b| b.depth == 0).max_by_key(|b| b.total);
        let top = top.map_or_else(String::new, |b| format!(", most in {}: {}", b.name, weight(b.total)));
        format!("Flame graph of {what}: {}{top}", format::counted_as(boxes.len() as u64, "box", "boxes"))
    });
    let place = |b: &FlameBox| {
        let x = |share: f64| rect.left() + (share * f64::from(rect.width())) as f32;
        let y = rect.top() + b.depth as f32 * metrics::LANE_H;
        Rect::from_min_max(pos2(x(b.start), y), pos2(x(b.start + b.width), y + metrics::LANE_H - 1.0))
    };
    let painter = ui.painter_at(rect);
    let mut mesh = Mesh::default();
    let pixel = 1.0 / ui.pixels_per_point();
    let mut labels = Vec::new();
    for b in boxes {
        let at = place(b);
        if at.width() < pixel || !ui.is_rect_visible(at) {
            continue;
        }
        let gap = if at.width() > 3.0 { pixel } else { 0.0 };
        let fill = p.mark_of_name(&b.name);
        mesh.add_colored_rect(Rect::from_min_max(at.min, pos2(at.right() - gap, at.bottom())), fill);
        if at.width() >= metrics::LABEL_MIN_W {
            labels.push((at, &b.name, fill));
        }
    }
    painter.add(mesh);
    for (at, name, fill) in labels {
        if let Some(text) = super::picture::fitted(&painter, name, at.width() - 2.0 * metrics::GAP) {
            let pos = pos2(at.left() + metrics::GAP, at.center().y);
            let color = crate::theme::on_fill(fill);
            painter.text(pos, Align2::LEFT_CENTER, text, super::picture::label_font(), color);
        }
    }
    let Some(pos) = response.hover_pos() else { return };
    let Some(under) = boxes.iter().find(|b| place(b).contains(pos)) else { return };
    response.on_hover_ui_at_pointer(|ui| {
        ui.label(&under.name);
        ui.label(format!("{} ({})", weight(under.total), format::percent(under.width)));
        ui.colored_label(palette(ui).text_weak, format!("{} in itself", weight(under.own)));
        if under.count > 0 {
            ui.colored_label(palette(ui).text_weak, format::counted(under.count, "slice"));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;

    #[test]
    fn slices_add_up_by_what_they_are_nested_in() {
        let store = demo(3);
        let (boxes, is_cut) = of_slices(&store, &store.range(), |_| true);
        let find = |name: &str, depth: usize| boxes.iter().find(|b| b.name == name && b.depth == depth).unwrap();
        assert!(!is_cut);
        let product = find("MatMul", 0);
        assert_eq!((product.total, product.count), (3 * (50_000 + 13_000), 6));
        assert_eq!(product.own, 3 * (50_000 + 13_000 - 10_000 - 5_000));
        let shard = find("MatMul", 1);
        assert_eq!((shard.total, shard.count), (3 * 15_000, 6));
        assert!(shard.start >= product.start && shard.start + shard.width <= product.start + product.width + 1e-9);
        let outermost: f64 = boxes.iter().filter(|b| b.depth == 0).map(|b| b.width).sum();
        assert!((outermost - 1.0).abs() < 1e-9);
        // Half of a slice counts half.
        let (boxes, _) = of_slices(&store, &(20_000..45_000), |track| track == 1);
        assert_eq!(boxes[0].total, 25_000);
        assert_eq!(of_slices(&Store::new(), &(0..1), |_| true), (Vec::new(), false));
    }

    #[test]
    fn siblings_stand_beside_each_other() {
        let nodes = [(ROOT, 0, 10), (ROOT, 0, 30), (1, 1, 5), (1, 1, 20), (3, 2, 20)];
        assert_eq!(starts(&nodes), [30, 0, 20, 0, 0]);
    }
}
