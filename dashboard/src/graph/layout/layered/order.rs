//! Order within ranks: sweeps down and up sort by barycentre and exchange neighbours while that saves crossings; the
//! best order wins (Gansner et al., "A technique for drawing directed graphs", 1993, section 3).

use super::{
    drawing::{Cancelled, check_cancelled},
    layers::Layers,
};
use std::sync::atomic::AtomicBool;

/// Segments above which crossings are not counted.
const MAX_COUNT: usize = 40_000;
/// Segments above which neighbours are not exchanged.
const MAX_EXCHANGE: usize = 6_000;

/// Reorders the members of each rank to reduce crossings.
pub(super) fn reduce_crossings(layers: &mut Layers, cancel: &AtomicBool) -> Result<(), Cancelled> {
    let n_segments = layers.segments.len();
    let n_sweeps = if n_segments > MAX_COUNT {
        4
    } else if n_segments > 8_000 {
        8
    } else {
        16
    };
    let mut pos = positions(layers);
    let can_count = n_segments <= MAX_COUNT;
    let mut best = layers.order.clone();
    let mut min_crossings = if can_count { crossings(layers, &pos) } else { u64::MAX };
    let mut n_since_best = 0;
    for sweep in 0..n_sweeps {
        check_cancelled(cancel)?;
        if min_crossings == 0 {
            break;
        }
        sort_by_barycentre(layers, &mut pos, sweep % 2 == 0);
        if n_segments <= MAX_EXCHANGE {
            exchange(layers, &mut pos);
        }
        if !can_count {
            best.clone_from(&layers.order);
            continue;
        }
        let count = crossings(layers, &pos);
        n_since_best += 1;
        if count < min_crossings {
            (min_crossings, n_since_best) = (count, 0);
            best.clone_from(&layers.order);
        }
        if n_since_best >= 4 {
            break;
        }
    }
    layers.order = best;
    Ok(())
}

/// Returns the position of each member in its rank.
fn positions(layers: &Layers) -> Vec<u32> {
    let mut pos = vec![0; layers.width.len()];
    for rank in &layers.order {
        for (place, &member) in rank.iter().enumerate() {
            pos[member as usize] = place as u32;
        }
    }
    pos
}

/// Returns the position of a segment's end; its offset on the box is a fraction of a position.
fn end_position(layers: &Layers, pos: &[u32], member: u32, dx: f32) -> f32 {
    let width = layers.width[member as usize].max(1.0);
    pos[member as usize] as f32 + (dx / width).clamp(-0.5, 0.5) * 0.9
}

/// Sorts each rank by the barycentres of its members.
fn sort_by_barycentre(layers: &mut Layers, pos: &mut [u32], down: bool) {
    let n_ranks = layers.order.len();
    for step in 1..n_ranks {
        let rank = if down { step } else { n_ranks - 1 - step };
        let mut members = std::mem::take(&mut layers.order[rank]);
        let mut keyed: Vec<(f32, u32)> = members.iter().map(|&m| (barycentre(layers, pos, m, down), m)).collect();
        // Members without neighbours keep their places among the others.
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        members.clear();
        members.extend(keyed.iter().map(|&(_, m)| m));
        for (place, &member) in members.iter().enumerate() {
            pos[member as usize] = place as u32;
        }
        layers.order[rank] = members;
    }
}

/// Returns the weighted mean position of a member's neighbours above (`down`) or below it.
fn barycentre(layers: &Layers, pos: &[u32], member: u32, down: bool) -> f32 {
    let segments = if down { layers.up.row(member as usize) } else { layers.down.row(member as usize) };
    let (mut sum, mut weight) = (0.0, 0.0);
    for &segment in segments {
        let s = &layers.segments[segment as usize];
        let (neighbour, dx, member_dx) =
            if down { (s.upper, s.upper_dx, s.lower_dx) } else { (s.lower, s.lower_dx, s.upper_dx) };
        let offset = (member_dx / layers.width[member as usize].max(1.0)).clamp(-0.5, 0.5) * 0.9;
        sum += s.weight * (end_position(layers, pos, neighbour, dx) - offset);
        weight += s.weight;
    }
    if weight > 0.0 { sum / weight } else { pos[member as usize] as f32 }
}

/// Exchanges neighbours in each rank while that saves crossings.
fn exchange(layers: &mut Layers, pos: &mut [u32]) {
    for rank in 0..layers.order.len() {
        for _ in 0..3 {
            let mut has_improved = false;
            for i in 1..layers.order[rank].len() {
                let (left, right) = (layers.order[rank][i - 1], layers.order[rank][i]);
                let (current, exchanged) = pair_crossings(layers, pos, left, right);
                if exchanged < current {
                    layers.order[rank].swap(i - 1, i);
                    pos[left as usize] = i as u32;
                    pos[right as usize] = i as u32 - 1;
                    has_improved = true;
                }
            }
            if !has_improved {
                break;
            }
        }
    }
}

/// Counts the crossings between the segments of two neighbours: in the current order, and exchanged.
fn pair_crossings(layers: &Layers, pos: &[u32], left: u32, right: u32) -> (u64, u64) {
    let (mut current, mut exchanged) = (0, 0);
    for up in [true, false] {
        let ends = |member: u32| {
            let segments = if up { layers.up.row(member as usize) } else { layers.down.row(member as usize) };
            segments.iter().map(move |&segment| {
                let s = &layers.segments[segment as usize];
                let (end, dx) = if up { (s.upper, s.upper_dx) } else { (s.lower, s.lower_dx) };
                end_position(layers, pos, end, dx)
            })
        };
        if ends(left).len().saturating_mul(ends(right).len()) > 4096 {
            continue;
        }
        for a in ends(left) {
            for b in ends(right) {
                current += u64::from(a > b);
                exchanged += u64::from(a < b);
            }
        }
    }
    (current, exchanged)
}

/// Counts the crossings between all adjacent ranks: inversions, with a Fenwick tree (Barth, Mutzel, Jünger 2004).
fn crossings(layers: &Layers, pos: &[u32]) -> u64 {
    let mut total = 0;
    for rank in &layers.order {
        let mut ends: Vec<(f32, f32)> = Vec::new();
        for &member in rank {
            for &segment in layers.down.row(member as usize) {
                let s = &layers.segments[segment as usize];
                let end = |member: u32, dx: f32| end_position(layers, pos, member, dx);
                ends.push((end(s.upper, s.upper_dx), end(s.lower, s.lower_dx)));
            }
        }
        ends.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
        total += inversions(&ends);
    }
    total
}

/// Counts the pairs of segments, sorted by upper end, whose lower ends are in the opposite order.
fn inversions(ends: &[(f32, f32)]) -> u64 {
    let mut lower_ends: Vec<f32> = ends.iter().map(|e| e.1).collect();
    lower_ends.sort_by(f32::total_cmp);
    lower_ends.dedup();
    let mut tree = vec![0_u64; lower_ends.len() + 1];
    let mut total = 0;
    for (n_before, end) in ends.iter().enumerate() {
        let leaf = lower_ends.partition_point(|&h| h < end.1) + 1;
        let (mut not_greater, mut i) = (0, leaf);
        while i > 0 {
            not_greater += tree[i];
            i -= i & i.wrapping_neg();
        }
        total += n_before as u64 - not_greater;
        let mut i = leaf;
        while i < tree.len() {
            tree[i] += 1;
            i += i & i.wrapping_neg();
        }
    }
    total
}
