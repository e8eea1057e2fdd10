//! The phases in order, and the drawing made of their results.

use super::{
    drawing::{Arc, Cancelled, Drawing, Spacing, Vertex, check},
    layers::Layers,
    order, positions, rank,
};
use std::sync::atomic::AtomicBool;

/// Draws the graph. Arcs' ends must be valid places in `vertices`.
pub fn draw(vertices: &[Vertex], arcs: &[Arc], spacing: Spacing, cancel: &AtomicBool) -> Result<Drawing, Cancelled> {
    let ranked = rank::rank(vertices, arcs);
    check(cancel)?;
    let mut layers = rank::layers(vertices, arcs, &ranked);
    check(cancel)?;
    order::order(&mut layers, cancel)?;
    let x = positions::positions(&layers, spacing, cancel)?;
    Ok(finish(vertices, arcs, &ranked, &layers, &x, spacing))
}

fn finish(
    vertices: &[Vertex],
    arcs: &[Arc],
    ranked: &rank::Ranking,
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
        // Ranks with many edges between them stand further apart, so that the edges can be distinguished.
        let crowd = (n_segments[rank] as f32 / 8.0).sqrt().clamp(1.0, 4.0);
        y += height + spacing.rank * crowd;
    }
    let height = match (middles.last(), heights.last()) {
        (Some(middle), Some(last)) => middle + last / 2.0,
        _ => 0.0,
    };
    (middles, heights, height)
}
