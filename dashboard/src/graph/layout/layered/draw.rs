//! Runs the phases of a drawing and assembles their results.

use super::{
    drawing::{Arc, Cancelled, Drawing, Spacing, Vertex, check_cancelled},
    layers::Layers,
    order, positions, rank,
};
use std::sync::atomic::AtomicBool;

/// Draws the graph. The ends of `arcs` must be indices of `vertices`.
pub fn draw(vertices: &[Vertex], arcs: &[Arc], spacing: Spacing, cancel: &AtomicBool) -> Result<Drawing, Cancelled> {
    let ranking = rank::assign_ranks(vertices, arcs);
    check_cancelled(cancel)?;
    let mut layers = rank::build_layers(vertices, arcs, &ranking);
    check_cancelled(cancel)?;
    order::reduce_crossings(&mut layers, cancel)?;
    let x = positions::solve(&layers, spacing, cancel)?;
    Ok(assemble(vertices, arcs, &ranking, &layers, &x, spacing))
}

fn assemble(
    vertices: &[Vertex],
    arcs: &[Arc],
    ranking: &rank::Ranking,
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
    let arc_path = |(idx, arc): (usize, &Arc)| {
        if arc.src == arc.dst {
            return Vec::new();
        }
        let reversed = ranking.reversed[idx];
        let ((upper, upper_dx), (lower, lower_dx)) = match reversed {
            false => ((arc.src, arc.src_dx), (arc.dst, arc.dst_dx)),
            true => ((arc.dst, arc.dst_dx), (arc.src, arc.src_dx)),
        };
        let mut points = Vec::with_capacity(layers.arc_dummies[idx].len() + 2);
        let border_point = |vertex: u32, dx: f32, sign: f32| {
            let [cx, cy] = centers[vertex as usize];
            [cx + dx, cy + sign * vertices[vertex as usize].h / 2.0]
        };
        points.push(border_point(upper, upper_dx, 1.0));
        // Vertical over the height of each rank, so that the curves between ranks cut no box.
        points.extend(layers.arc_dummies[idx].iter().flat_map(|&dummy| {
            let half = rank_h[layers.rank[dummy as usize] as usize] / 2.0;
            [-half, half].map(|dy| [x[dummy as usize] - left, y(dummy) + dy])
        }));
        points.push(border_point(lower, lower_dx, -1.0));
        if reversed {
            points.reverse();
        }
        points
    };
    let paths = arcs.iter().enumerate().map(arc_path).collect();
    let width = if right.is_finite() { right - left } else { 0.0 };
    let ranks = layers.rank[..vertices.len()].to_vec();
    Drawing { centers, ranks, paths, reversed: ranking.reversed.clone(), size: [width, height] }
}

/// Returns the middle (y) and the height of each rank, and the total height.
fn rank_positions(vertices: &[Vertex], layers: &Layers, spacing: Spacing) -> (Vec<f32>, Vec<f32>, f32) {
    let mut heights = vec![0.0_f32; layers.order.len()];
    for (vertex, &rank) in vertices.iter().zip(&layers.rank) {
        let height = &mut heights[rank as usize];
        *height = height.max(vertex.h);
    }
    let mut n_segments = vec![0_usize; layers.order.len()];
    for segment in &layers.segments {
        n_segments[layers.rank[segment.upper as usize] as usize] += 1;
    }
    let (mut y, mut middles) = (0.0, Vec::with_capacity(heights.len()));
    for (rank, height) in heights.iter().enumerate() {
        middles.push(y + height / 2.0);
        // Ranks with many edges between them stand further apart, so that the edges can be distinguished.
        let factor = (n_segments[rank] as f32 / 8.0).sqrt().clamp(1.0, 4.0);
        y += height + spacing.rank * factor;
    }
    let height = match (middles.last(), heights.last()) {
        (Some(middle), Some(last)) => middle + last / 2.0,
        _ => 0.0,
    };
    (middles, heights, height)
}
