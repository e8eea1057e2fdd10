//! Layered drawing of a directed graph of boxes (Sugiyama, Tagawa, Toda 1981), without egui.
//!
//! [`draw`] takes sizes of boxes and edges between them and gives centres and paths. Ranks grow downwards here (y); who
//! wants the flow upwards flips it. The phases, a file each: `rank` (cycles opened, boxes to ranks, edges shortened),
//! `order` (few crossings), `place` (straight edges by isotonic regression). Edges of one source share the dummy
//! vertices they pass, so that fans are drawn as bundles and the work stays linear in boxes and ranks.
//!
//! Deterministic: the same request gives the same drawing. Cost: O(V + E) per sweep, a fixed number of sweeps, fewer
//! for large graphs.

mod kept;
mod order;
mod place;
mod rank;

#[cfg(test)]
mod tests;

pub use kept::Drawings;

use std::sync::atomic::{AtomicBool, Ordering};

/// A box to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vertex {
    /// Width.
    pub w: f32,
    /// Height.
    pub h: f32,
    /// Held at an end of the drawing.
    pub end: End,
}

/// Where a vertex must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Anywhere.
    #[default]
    Free,
    /// In the first rank of all.
    First,
    /// In the last rank of all.
    Last,
}

/// An edge between two vertices, which may be equal to others or go back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arc {
    /// Tail.
    pub src: u32,
    /// Head.
    pub dst: u32,
    /// Offset of the edge's end from the tail's centre.
    pub src_dx: f32,
    /// Offset of the edge's end from the head's centre.
    pub dst_dx: f32,
    /// How much its length and straightness count.
    pub weight: f32,
}

/// Distances.
#[derive(Clone, Copy, Debug)]
pub struct Spacing {
    /// Between boxes of a rank.
    pub node: f32,
    /// Between an edge and its neighbours in a rank.
    pub edge: f32,
    /// Between ranks.
    pub rank: f32,
}

/// A drawing. The top left corner is the origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Centres of the vertices.
    pub centers: Vec<[f32; 2]>,
    /// Rank of each vertex.
    pub ranks: Vec<u32>,
    /// Per edge the points it passes, tail to head, both ends on the boxes' borders. Empty for self loops.
    pub paths: Vec<Vec<[f32; 2]>>,
    /// Per edge whether it was turned to open a cycle.
    pub reversed: Vec<bool>,
    /// Width and height.
    pub size: [f32; 2],
}

/// The drawing was no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Draws the graph. Arcs' ends must be valid places in `vertices`.
pub fn draw(vertices: &[Vertex], arcs: &[Arc], spacing: Spacing, cancel: &AtomicBool) -> Result<Drawing, Cancelled> {
    let ranked = rank::rank(vertices, arcs);
    check(cancel)?;
    let mut layers = rank::layers(vertices, arcs, &ranked);
    check(cancel)?;
    order::order(&mut layers, cancel)?;
    let x = place::place(&layers, spacing, cancel)?;
    Ok(finish(vertices, arcs, &ranked, &layers, &x, spacing))
}

fn check(cancel: &AtomicBool) -> Result<(), Cancelled> {
    if cancel.load(Ordering::Relaxed) { Err(Cancelled) } else { Ok(()) }
}

/// Vertices and dummies in ranks, joined by segments that span one rank each.
#[derive(Debug, Default)]
struct Layers {
    /// Width of each vertex, then of each dummy (0).
    width: Vec<f32>,
    n_real: usize,
    rank: Vec<u32>,
    /// Per rank its members in order.
    order: Vec<Vec<u32>>,
    segments: Vec<Segment>,
    /// Per member the segments up (towards rank 0) and down.
    up: Adjacency,
    down: Adjacency,
    /// Per arc the dummies it passes in order of rank.
    through: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Member in the smaller rank and the end's offset from its centre.
    a: u32,
    a_dx: f32,
    /// Member in the larger rank.
    b: u32,
    b_dx: f32,
    weight: f32,
}

/// Segments of each member.
#[derive(Debug, Default)]
struct Adjacency {
    start: Vec<u32>,
    segment: Vec<u32>,
}

impl Adjacency {
    fn of(&self, member: u32) -> &[u32] {
        &self.segment[self.start[member as usize] as usize..self.start[member as usize + 1] as usize]
    }

    fn build(n: usize, segments: &[Segment], member: impl Fn(&Segment) -> u32) -> Self {
        let mut start = vec![0_u32; n + 1];
        for segment in segments {
            start[member(segment) as usize + 1] += 1;
        }
        for idx in 0..n {
            start[idx + 1] += start[idx];
        }
        let mut next = start.clone();
        let mut list = vec![0; segments.len()];
        for (idx, segment) in segments.iter().enumerate() {
            let slot = &mut next[member(segment) as usize];
            list[*slot as usize] = idx as u32;
            *slot += 1;
        }
        Self { start, segment: list }
    }
}

fn finish(
    vertices: &[Vertex],
    arcs: &[Arc],
    ranked: &rank::Ranked,
    layers: &Layers,
    x: &[f32],
    spacing: Spacing,
) -> Drawing {
    let (rank_y, rank_h, height) = rank_positions(vertices, layers, spacing);
    let left = (0..x.len()).map(|i| x[i] - layers.width[i] / 2.0).fold(f32::INFINITY, f32::min);
    let right = (0..x.len()).map(|i| x[i] + layers.width[i] / 2.0).fold(f32::NEG_INFINITY, f32::max);
    let left = if left.is_finite() { left } else { 0.0 };
    let y = |member: u32| rank_y[layers.rank[member as usize] as usize];
    let centers: Vec<[f32; 2]> = (0..vertices.len()).map(|i| [x[i] - left, y(i as u32)]).collect();
    let path = |(idx, arc): (usize, &Arc)| {
        if arc.src == arc.dst {
            return Vec::new();
        }
        let reversed = ranked.reversed[idx];
        let ((a, a_dx), (b, b_dx)) = match reversed {
            false => ((arc.src, arc.src_dx), (arc.dst, arc.dst_dx)),
            true => ((arc.dst, arc.dst_dx), (arc.src, arc.src_dx)),
        };
        let mut points = Vec::with_capacity(layers.through[idx].len() + 2);
        let end = |v: u32, dx: f32, side: f32| {
            let [cx, cy] = centers[v as usize];
            [cx + dx, cy + side * vertices[v as usize].h / 2.0]
        };
        points.push(end(a, a_dx, 1.0));
        // Upright through a whole rank, so that a curve before or after it cuts no box.
        points.extend(layers.through[idx].iter().flat_map(|&d| {
            let half = rank_h[layers.rank[d as usize] as usize] / 2.0;
            [-half, half].map(|dy| [x[d as usize] - left, y(d) + dy])
        }));
        points.push(end(b, b_dx, -1.0));
        if reversed {
            points.reverse();
        }
        points
    };
    let paths = arcs.iter().enumerate().map(path).collect();
    let width = if right.is_finite() { right - left } else { 0.0 };
    let ranks = layers.rank[..vertices.len()].to_vec();
    Drawing { centers, ranks, paths, reversed: ranked.reversed.clone(), size: [width, height] }
}

/// Middle and height of each rank, and the height of all.
fn rank_positions(vertices: &[Vertex], layers: &Layers, spacing: Spacing) -> (Vec<f32>, Vec<f32>, f32) {
    let mut heights = vec![0.0_f32; layers.order.len()];
    for (vertex, &rank) in vertices.iter().zip(&layers.rank) {
        let height = &mut heights[rank as usize];
        *height = height.max(vertex.h);
    }
    let mut n_segments = vec![0_usize; layers.order.len()];
    for segment in &layers.segments {
        n_segments[layers.rank[segment.a as usize] as usize] += 1;
    }
    let (mut y, mut middles) = (0.0, Vec::with_capacity(heights.len()));
    for (rank, height) in heights.iter().enumerate() {
        middles.push(y + height / 2.0);
        // Ranks with many edges between them stand further apart, so that the edges can be told apart.
        let crowd = (n_segments[rank] as f32 / 8.0).sqrt().clamp(1.0, 4.0);
        y += height + spacing.rank * crowd;
    }
    let height = match (middles.last(), heights.last()) {
        (Some(middle), Some(last)) => middle + last / 2.0,
        _ => 0.0,
    };
    (middles, heights, height)
}
