//! Ranks: cycles are opened, each vertex gets a rank below all its predecessors, edges are shortened by moving
//! vertices towards the heavier side, and edges over several ranks are cut into segments through dummies.

use super::{
    drawing::{Arc, End, Vertex},
    layers::{Layers, Segment},
};
use crate::graph::model::Csr;
use rustc_hash::FxHashMap;

/// Dummies in a drawing, at most; further long edges go straight from box to box.
const DUMMIES_MAX: usize = 60_000;
/// Sweeps that shorten edges.
const SHORTEN_SWEEPS: usize = 8;

pub(super) struct Ranking {
    pub rank: Vec<u32>,
    pub reversed: Vec<bool>,
}

/// The graph without cycles: arcs that close one are reversed.
struct Graph<'a> {
    arcs: &'a [Arc],
    reversed: &'a [bool],
    /// Per vertex the arcs out of it and into it, by index, without self loops.
    outs: Vec<Vec<u32>>,
    ins: Vec<Vec<u32>>,
}

impl Graph<'_> {
    /// The tail and the head of an arc.
    fn endpoints(&self, arc: u32) -> (u32, u32) {
        endpoints(&self.arcs[arc as usize], self.reversed[arc as usize])
    }
}

pub(super) fn rank(vertices: &[Vertex], arcs: &[Arc]) -> Ranking {
    let n = vertices.len();
    let mut outs: Vec<Vec<u32>> = vec![Vec::new(); n];
    let mut ins: Vec<Vec<u32>> = vec![Vec::new(); n];
    for (idx, arc) in arcs.iter().enumerate().filter(|(_, arc)| arc.src != arc.dst) {
        outs[arc.src as usize].push(idx as u32);
        ins[arc.dst as usize].push(idx as u32);
    }
    let reversed = back_arcs(vertices, arcs, &outs, &ins);
    if reversed.contains(&true) {
        for list in outs.iter_mut().chain(ins.iter_mut()) {
            list.clear();
        }
        for (idx, arc) in arcs.iter().enumerate().filter(|(_, arc)| arc.src != arc.dst) {
            let (a, b) = endpoints(arc, reversed[idx]);
            outs[a as usize].push(idx as u32);
            ins[b as usize].push(idx as u32);
        }
    }
    let graph = Graph { arcs, reversed: &reversed, outs, ins };
    let order = topological(&graph);
    let mut rank = longest_paths(vertices, &graph, &order);
    shorten(vertices, &graph, &order, &mut rank);
    normalise(vertices, &mut rank);
    Ranking { rank, reversed }
}

fn endpoints(arc: &Arc, reversed: bool) -> (u32, u32) {
    if reversed { (arc.dst, arc.src) } else { (arc.src, arc.dst) }
}

/// Arcs that close a cycle in a depth-first walk that starts at sources. Arcs into the first rank and out of the last
/// are turned too.
fn back_arcs(vertices: &[Vertex], arcs: &[Arc], outs: &[Vec<u32>], ins: &[Vec<u32>]) -> Vec<bool> {
    let n = vertices.len();
    let mut reversed: Vec<bool> = arcs
        .iter()
        .map(|arc| {
            let (src, dst) = (vertices[arc.src as usize].end, vertices[arc.dst as usize].end);
            (dst == End::First && src != End::First) || (src == End::Last && dst != End::Last)
        })
        .collect();
    // 0 new, 1 on the walk's path, 2 done
    let mut state = vec![0_u8; n];
    let sources = (0..n as u32).filter(|&v| ins[v as usize].is_empty());
    let mut stack: Vec<(u32, usize)> = Vec::new();
    for start in sources.chain(0..n as u32) {
        if state[start as usize] != 0 {
            continue;
        }
        state[start as usize] = 1;
        stack.push((start, 0));
        while let Some((v, next)) = stack.last_mut() {
            let Some(&arc) = outs[*v as usize].get(*next) else {
                state[*v as usize] = 2;
                stack.pop();
                continue;
            };
            *next += 1;
            let to = arcs[arc as usize].dst;
            match state[to as usize] {
                _ if reversed[arc as usize] => {}
                0 => {
                    state[to as usize] = 1;
                    stack.push((to, 0));
                }
                1 => reversed[arc as usize] = true,
                _ => {}
            }
        }
    }
    reversed
}

fn topological(graph: &Graph<'_>) -> Vec<u32> {
    let n = graph.ins.len();
    let mut waiting: Vec<u32> = graph.ins.iter().map(|list| list.len() as u32).collect();
    let mut order: Vec<u32> = (0..n as u32).filter(|&v| waiting[v as usize] == 0).collect();
    let mut next = 0;
    while let Some(&v) = order.get(next) {
        next += 1;
        for &arc in &graph.outs[v as usize] {
            let to = graph.endpoints(arc).1 as usize;
            waiting[to] -= 1;
            if waiting[to] == 0 {
                order.push(to as u32);
            }
        }
    }
    // Turned end arcs can close a cycle of their own; what is left is placed last, in order.
    if order.len() < n {
        let placed: Vec<bool> = order.iter().fold(vec![false; n], |mut placed, &v| {
            placed[v as usize] = true;
            placed
        });
        order.extend((0..n as u32).filter(|&v| !placed[v as usize]));
    }
    order
}

fn longest_paths(vertices: &[Vertex], graph: &Graph<'_>, order: &[u32]) -> Vec<u32> {
    let mut rank = vec![0_u32; vertices.len()];
    for &v in order {
        // Vertices fixed to the first rank have rank 0 to themselves.
        let least = u32::from(vertices[v as usize].end != End::First);
        let above = graph.ins[v as usize].iter().map(|&arc| rank[graph.endpoints(arc).0 as usize] + 1);
        rank[v as usize] = above.max().unwrap_or(0).max(least);
    }
    rank
}

/// Moves vertices within the ranks their neighbours leave free, to where their edges are shortest in sum.
fn shorten(vertices: &[Vertex], graph: &Graph<'_>, order: &[u32], rank: &mut [u32]) {
    let weigh = |list: &[u32]| list.iter().map(|&arc| graph.arcs[arc as usize].weight).sum::<f32>();
    for sweep in 0..SHORTEN_SWEEPS {
        let mut moved = false;
        for step in 0..order.len() {
            let v = order[if sweep % 2 == 0 { order.len() - 1 - step } else { step }] as usize;
            if vertices[v].end != End::Free {
                continue;
            }
            let lowest = graph.ins[v].iter().map(|&arc| rank[graph.endpoints(arc).0 as usize] + 1).max();
            let highest =
                graph.outs[v].iter().map(|&arc| rank[graph.endpoints(arc).1 as usize].saturating_sub(1)).min();
            let (ins, outs) = (weigh(&graph.ins[v]), weigh(&graph.outs[v]));
            let to = match (lowest, highest) {
                (_, Some(highest)) if outs > ins => highest,
                (Some(lowest), _) if ins > outs => lowest,
                _ => continue,
            };
            let free = lowest.unwrap_or(1)..=highest.unwrap_or(u32::MAX);
            if to != rank[v] && free.contains(&to) {
                rank[v] = to;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
}

/// Makes ranks consecutive, with the vertices fixed to the first and the last rank alone in these.
fn normalise(vertices: &[Vertex], rank: &mut [u32]) {
    let last = rank.iter().max().copied().unwrap_or(0) + 1;
    for (vertex, rank) in vertices.iter().zip(rank.iter_mut()) {
        match vertex.end {
            End::First => *rank = 0,
            End::Last => *rank = last,
            End::Free => {}
        }
    }
    let mut used: Vec<u32> = rank.to_vec();
    used.sort_unstable();
    used.dedup();
    for rank in rank {
        *rank = used.binary_search(rank).unwrap_or(0) as u32;
    }
}

/// Cuts edges into segments and puts members into ranks in the order of a walk from the first rank.
pub(super) fn layers(vertices: &[Vertex], arcs: &[Arc], ranked: &Ranking) -> Layers {
    let layers = Layers {
        width: vertices.iter().map(|v| v.w).collect(),
        n_real: vertices.len(),
        rank: ranked.rank.clone(),
        through: vec![Vec::new(); arcs.len()],
        ..Layers::default()
    };
    let mut by_span: Vec<u32> = (0..arcs.len() as u32).collect();
    let span = |arc: &Arc| ranked.rank[arc.src as usize].abs_diff(ranked.rank[arc.dst as usize]);
    by_span.sort_by_key(|&idx| span(&arcs[idx as usize]));
    let mut cutter = Cutter { layers, dummies: FxHashMap::default(), segments: FxHashMap::default() };
    for idx in by_span {
        cutter.cut(&arcs[idx as usize], idx as usize, ranked.reversed[idx as usize]);
    }
    let mut layers = cutter.layers;
    let n = layers.width.len();
    layers.up = Csr::index(n, &layers.segments, |s| s.b);
    layers.down = Csr::index(n, &layers.segments, |s| s.a);
    layers.order = walk(&layers);
    layers
}

/// Cuts edges into segments through dummies.
struct Cutter {
    layers: Layers,
    /// Dummies by source, offset, direction and rank.
    dummies: FxHashMap<(u32, i32, bool, u32), u32>,
    /// Segments by their ends.
    segments: FxHashMap<(u32, i32, u32, i32), u32>,
}

impl Cutter {
    fn cut(&mut self, arc: &Arc, idx: usize, reversed: bool) {
        let (a, b) = endpoints(arc, reversed);
        let (a_dx, b_dx) = if reversed { (arc.dst_dx, arc.src_dx) } else { (arc.src_dx, arc.dst_dx) };
        let (from, to) = (self.layers.rank[a as usize], self.layers.rank[b as usize]);
        if from >= to {
            return;
        }
        let (mut at, mut at_dx) = (a, a_dx);
        for rank in from + 1..to {
            // Edges of one source share the dummies they pass; a reversed edge belongs to its own source.
            let key = (arc.src, key_dx(arc.src_dx), reversed, rank);
            let dummy = match self.dummies.get(&key) {
                Some(&dummy) => dummy,
                None if self.layers.width.len() - self.layers.n_real >= DUMMIES_MAX => break,
                None => {
                    let made = self.layers.width.len() as u32;
                    self.layers.width.push(0.0);
                    self.layers.rank.push(rank);
                    self.dummies.insert(key, made);
                    made
                }
            };
            self.layers.through[idx].push(dummy);
            self.add(Segment { a: at, a_dx: at_dx, b: dummy, b_dx: 0.0, weight: arc.weight });
            (at, at_dx) = (dummy, 0.0);
        }
        if self.layers.rank[at as usize] + 1 == to {
            self.add(Segment { a: at, a_dx: at_dx, b, b_dx, weight: arc.weight });
        } else {
            self.layers.through[idx].clear();
        }
    }

    fn add(&mut self, segment: Segment) {
        let key = (segment.a, key_dx(segment.a_dx), segment.b, key_dx(segment.b_dx));
        let made = self.layers.segments.len() as u32;
        let known = *self.segments.entry(key).or_insert(made);
        if known == made {
            self.layers.segments.push(segment);
        } else {
            self.layers.segments[known as usize].weight += segment.weight;
        }
    }
}

/// An offset as a key.
fn key_dx(dx: f32) -> i32 {
    (dx * 8.0) as i32
}

/// The initial order of each rank: depth-first from the first rank, so that connected members are near each other.
fn walk(layers: &Layers) -> Vec<Vec<u32>> {
    let n_ranks = layers.rank.iter().max().map_or(0, |r| *r as usize + 1);
    let mut order = vec![Vec::new(); n_ranks];
    let mut seen = vec![false; layers.width.len()];
    let mut starts: Vec<u32> = (0..layers.width.len() as u32).collect();
    starts.sort_by_key(|&v| layers.rank[v as usize]);
    let mut stack = Vec::new();
    for start in starts {
        stack.push(start);
        while let Some(v) = stack.pop() {
            if std::mem::replace(&mut seen[v as usize], true) {
                continue;
            }
            order[layers.rank[v as usize] as usize].push(v);
            stack.extend(layers.down.of(v as usize).iter().rev().map(|&s| layers.segments[s as usize].b));
        }
    }
    order
}
