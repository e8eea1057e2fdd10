//! Ranks: cycles are broken, each vertex gets a rank below all its predecessors, edges are shortened by moving
//! vertices towards the heavier side, and edges over several ranks are cut into segments by dummies.

use super::{
    drawing::{Arc, RankConstraint, Vertex},
    layers::{Layers, Segment},
};
use crate::graph::model::Csr;
use rustc_hash::FxHashMap;

/// Dummies in a drawing, at most; further long edges go straight from box to box.
const MAX_DUMMIES: usize = 60_000;
/// Sweeps that shorten edges.
const SHORTEN_SWEEPS: usize = 8;

/// The ranks of all vertices.
pub(super) struct Ranking {
    pub rank: Vec<u32>,
    /// Whether each arc was reversed to break a cycle.
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
    /// Returns the tail and the head of an arc.
    fn endpoints(&self, arc: u32) -> (u32, u32) {
        endpoints(&self.arcs[arc as usize], self.reversed[arc as usize])
    }
}

/// Breaks cycles and assigns ranks.
pub(super) fn assign_ranks(vertices: &[Vertex], arcs: &[Arc]) -> Ranking {
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
            let (tail, head) = endpoints(arc, reversed[idx]);
            outs[tail as usize].push(idx as u32);
            ins[head as usize].push(idx as u32);
        }
    }
    let graph = Graph { arcs, reversed: &reversed, outs, ins };
    let order = topological_order(&graph);
    let mut rank = longest_paths(vertices, &graph, &order);
    shorten_edges(vertices, &graph, &order, &mut rank);
    normalise(vertices, &mut rank);
    Ranking { rank, reversed }
}

fn endpoints(arc: &Arc, reversed: bool) -> (u32, u32) {
    if reversed { (arc.dst, arc.src) } else { (arc.src, arc.dst) }
}

/// Returns whether each arc must be reversed: because it closes a cycle in a depth-first search from the sources, or
/// leads into the first rank or out of the last.
fn back_arcs(vertices: &[Vertex], arcs: &[Arc], outs: &[Vec<u32>], ins: &[Vec<u32>]) -> Vec<bool> {
    let n = vertices.len();
    let mut reversed: Vec<bool> = arcs
        .iter()
        .map(|arc| {
            let (src, dst) = (vertices[arc.src as usize].constraint, vertices[arc.dst as usize].constraint);
            (dst == RankConstraint::First && src != RankConstraint::First)
                || (src == RankConstraint::Last && dst != RankConstraint::Last)
        })
        .collect();
    // 0 new, 1 on the search's path, 2 done
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
            let head = arcs[arc as usize].dst;
            match state[head as usize] {
                _ if reversed[arc as usize] => {}
                0 => {
                    state[head as usize] = 1;
                    stack.push((head, 0));
                }
                1 => reversed[arc as usize] = true,
                _ => {}
            }
        }
    }
    reversed
}

fn topological_order(graph: &Graph<'_>) -> Vec<u32> {
    let n = graph.ins.len();
    let mut n_pending: Vec<u32> = graph.ins.iter().map(|list| list.len() as u32).collect();
    let mut order: Vec<u32> = (0..n as u32).filter(|&v| n_pending[v as usize] == 0).collect();
    let mut next = 0;
    while let Some(&v) = order.get(next) {
        next += 1;
        for &arc in &graph.outs[v as usize] {
            let head = graph.endpoints(arc).1 as usize;
            n_pending[head] -= 1;
            if n_pending[head] == 0 {
                order.push(head as u32);
            }
        }
    }
    // The arcs reversed for constraints can close another cycle. Its vertices and those after it come last, by index.
    if order.len() < n {
        let is_placed: Vec<bool> = order.iter().fold(vec![false; n], |mut is_placed, &v| {
            is_placed[v as usize] = true;
            is_placed
        });
        order.extend((0..n as u32).filter(|&v| !is_placed[v as usize]));
    }
    order
}

fn longest_paths(vertices: &[Vertex], graph: &Graph<'_>, order: &[u32]) -> Vec<u32> {
    let mut rank = vec![0_u32; vertices.len()];
    for &v in order {
        // Rank 0 is reserved for the vertices that are fixed to the first rank.
        let min_rank = u32::from(vertices[v as usize].constraint != RankConstraint::First);
        let above = graph.ins[v as usize].iter().map(|&arc| rank[graph.endpoints(arc).0 as usize] + 1);
        rank[v as usize] = above.max().unwrap_or(0).max(min_rank);
    }
    rank
}

/// Moves vertices between the ranks of their neighbours to where the weighted length of their edges is least.
fn shorten_edges(vertices: &[Vertex], graph: &Graph<'_>, order: &[u32], rank: &mut [u32]) {
    let total_weight = |list: &[u32]| list.iter().map(|&arc| graph.arcs[arc as usize].weight).sum::<f32>();
    for sweep in 0..SHORTEN_SWEEPS {
        let mut has_moved = false;
        for step in 0..order.len() {
            let v = order[if sweep % 2 == 0 { order.len() - 1 - step } else { step }] as usize;
            if vertices[v].constraint != RankConstraint::Free {
                continue;
            }
            let min_rank = graph.ins[v].iter().map(|&arc| rank[graph.endpoints(arc).0 as usize] + 1).max();
            let max_rank =
                graph.outs[v].iter().map(|&arc| rank[graph.endpoints(arc).1 as usize].saturating_sub(1)).min();
            let (ins, outs) = (total_weight(&graph.ins[v]), total_weight(&graph.outs[v]));
            let target = match (min_rank, max_rank) {
                (_, Some(max_rank)) if outs > ins => max_rank,
                (Some(min_rank), _) if ins > outs => min_rank,
                _ => continue,
            };
            let allowed = min_rank.unwrap_or(1)..=max_rank.unwrap_or(u32::MAX);
            if target != rank[v] && allowed.contains(&target) {
                rank[v] = target;
                has_moved = true;
            }
        }
        if !has_moved {
            break;
        }
    }
}

/// Makes ranks consecutive; vertices fixed to the first or the last rank are alone there.
fn normalise(vertices: &[Vertex], rank: &mut [u32]) {
    let last = rank.iter().max().copied().unwrap_or(0) + 1;
    for (vertex, rank) in vertices.iter().zip(rank.iter_mut()) {
        match vertex.constraint {
            RankConstraint::First => *rank = 0,
            RankConstraint::Last => *rank = last,
            RankConstraint::Free => {}
        }
    }
    let mut used: Vec<u32> = rank.to_vec();
    used.sort_unstable();
    used.dedup();
    for rank in rank {
        *rank = used.binary_search(rank).unwrap_or(0) as u32;
    }
}

/// Cuts edges into segments and puts members into ranks in the order of a depth-first search from the first rank.
pub(super) fn build_layers(vertices: &[Vertex], arcs: &[Arc], ranking: &Ranking) -> Layers {
    let layers = Layers {
        width: vertices.iter().map(|v| v.w).collect(),
        n_real: vertices.len(),
        rank: ranking.rank.clone(),
        arc_dummies: vec![Vec::new(); arcs.len()],
        ..Layers::default()
    };
    let mut by_span: Vec<u32> = (0..arcs.len() as u32).collect();
    let span = |arc: &Arc| ranking.rank[arc.src as usize].abs_diff(ranking.rank[arc.dst as usize]);
    by_span.sort_by_key(|&idx| span(&arcs[idx as usize]));
    let mut cutter = Cutter { layers, dummies: FxHashMap::default(), segments: FxHashMap::default() };
    for idx in by_span {
        cutter.cut(&arcs[idx as usize], idx as usize, ranking.reversed[idx as usize]);
    }
    let mut layers = cutter.layers;
    let n = layers.width.len();
    layers.up = Csr::index(n, &layers.segments, |s| s.lower);
    layers.down = Csr::index(n, &layers.segments, |s| s.upper);
    layers.order = initial_order(&layers);
    layers
}

/// Cuts edges into segments by dummies.
struct Cutter {
    layers: Layers,
    /// Dummies by source, offset, direction and rank.
    dummies: FxHashMap<(u32, i32, bool, u32), u32>,
    /// Segments by their ends.
    segments: FxHashMap<(u32, i32, u32, i32), u32>,
}

impl Cutter {
    /// Adds the segments and dummies of an arc. An arc for which no dummies are left has none and goes straight.
    fn cut(&mut self, arc: &Arc, idx: usize, reversed: bool) {
        let (upper, lower) = endpoints(arc, reversed);
        let (upper_dx, lower_dx) = if reversed { (arc.dst_dx, arc.src_dx) } else { (arc.src_dx, arc.dst_dx) };
        let (first_rank, last_rank) = (self.layers.rank[upper as usize], self.layers.rank[lower as usize]);
        if first_rank >= last_rank {
            return;
        }
        let (mut member, mut member_dx) = (upper, upper_dx);
        for rank in first_rank + 1..last_rank {
            // Edges of one source share dummies; a reversed edge belongs to its own source.
            let key = (arc.src, key_dx(arc.src_dx), reversed, rank);
            let dummy = match self.dummies.get(&key) {
                Some(&dummy) => dummy,
                None if self.layers.width.len() - self.layers.n_real >= MAX_DUMMIES => break,
                None => {
                    let dummy = self.layers.width.len() as u32;
                    self.layers.width.push(0.0);
                    self.layers.rank.push(rank);
                    self.dummies.insert(key, dummy);
                    dummy
                }
            };
            self.layers.arc_dummies[idx].push(dummy);
            let (upper, upper_dx) = (member, member_dx);
            self.add(Segment { upper, upper_dx, lower: dummy, lower_dx: 0.0, weight: arc.weight });
            (member, member_dx) = (dummy, 0.0);
        }
        if self.layers.rank[member as usize] + 1 == last_rank {
            self.add(Segment { upper: member, upper_dx: member_dx, lower, lower_dx, weight: arc.weight });
        } else {
            self.layers.arc_dummies[idx].clear();
        }
    }

    /// Adds a segment, or its weight to the segment with the same ends.
    fn add(&mut self, segment: Segment) {
        let key = (segment.upper, key_dx(segment.upper_dx), segment.lower, key_dx(segment.lower_dx));
        let next_idx = self.layers.segments.len() as u32;
        let idx = *self.segments.entry(key).or_insert(next_idx);
        if idx == next_idx {
            self.layers.segments.push(segment);
        } else {
            self.layers.segments[idx as usize].weight += segment.weight;
        }
    }
}

/// Truncates an offset to eighths of a point, as a key.
fn key_dx(dx: f32) -> i32 {
    (dx * 8.0) as i32
}

/// The initial order of each rank: depth-first from the first rank, so that connected members are near each other.
fn initial_order(layers: &Layers) -> Vec<Vec<u32>> {
    let n_ranks = layers.rank.iter().max().map_or(0, |r| *r as usize + 1);
    let mut order = vec![Vec::new(); n_ranks];
    let mut is_visited = vec![false; layers.width.len()];
    let mut starts: Vec<u32> = (0..layers.width.len() as u32).collect();
    starts.sort_by_key(|&v| layers.rank[v as usize]);
    let mut stack = Vec::new();
    for start in starts {
        stack.push(start);
        while let Some(v) = stack.pop() {
            if std::mem::replace(&mut is_visited[v as usize], true) {
                continue;
            }
            order[layers.rank[v as usize] as usize].push(v);
            stack.extend(layers.down.row(v as usize).iter().rev().map(|&s| layers.segments[s as usize].lower));
        }
    }
    order
}
