//! Order within ranks: barycentre sweeps down and up, the best order kept, then neighbours exchanged while that helps
//! (Gansner et al., "A technique for drawing directed graphs", 1993, section 3).

use super::{
    drawing::{Cancelled, check},
    layers::Layers,
};
use std::sync::atomic::AtomicBool;

/// Segments above which crossings are not counted and neighbours not exchanged.
const COUNT_MAX: usize = 40_000;
const EXCHANGE_MAX: usize = 6_000;

pub(super) fn order(layers: &mut Layers, cancel: &AtomicBool) -> Result<(), Cancelled> {
    let n_segments = layers.segments.len();
    let n_sweeps = if n_segments > COUNT_MAX {
        4
    } else if n_segments > 8_000 {
        8
    } else {
        16
    };
    let mut pos = positions(layers);
    let counted = n_segments <= COUNT_MAX;
    let mut best = layers.order.clone();
    let mut fewest = if counted { crossings(layers, &pos) } else { u64::MAX };
    let mut since_best = 0;
    for sweep in 0..n_sweeps {
        check(cancel)?;
        if fewest == 0 {
            break;
        }
        barycentres(layers, &mut pos, sweep % 2 == 0);
        if n_segments <= EXCHANGE_MAX {
            exchange(layers, &mut pos);
        }
        if !counted {
            best.clone_from(&layers.order);
            continue;
        }
        let count = crossings(layers, &pos);
        since_best += 1;
        if count < fewest {
            (fewest, since_best) = (count, 0);
            best.clone_from(&layers.order);
        }
        if since_best >= 4 {
            break;
        }
    }
    layers.order = best;
    Ok(())
}

/// Position of each member in its rank.
pub(super) fn positions(layers: &Layers) -> Vec<u32> {
    let mut pos = vec![0; layers.width.len()];
    for rank in &layers.order {
        for (place, &member) in rank.iter().enumerate() {
            pos[member as usize] = place as u32;
        }
    }
    pos
}

/// Position of a segment's end, with the offset on the box as a fraction of a position.
fn end_position(layers: &Layers, pos: &[u32], member: u32, dx: f32) -> f32 {
    let width = layers.width[member as usize].max(1.0);
    pos[member as usize] as f32 + (dx / width).clamp(-0.5, 0.5) * 0.9
}

fn barycentres(layers: &mut Layers, pos: &mut [u32], down: bool) {
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

fn barycentre(layers: &Layers, pos: &[u32], member: u32, down: bool) -> f32 {
    let list = if down { layers.up.of(member as usize) } else { layers.down.of(member as usize) };
    let (mut sum, mut weight) = (0.0, 0.0);
    for &segment in list {
        let s = &layers.segments[segment as usize];
        let (other, other_dx, own_dx) = if down { (s.a, s.a_dx, s.b_dx) } else { (s.b, s.b_dx, s.a_dx) };
        let own = (own_dx / layers.width[member as usize].max(1.0)).clamp(-0.5, 0.5) * 0.9;
        sum += s.weight * (end_position(layers, pos, other, other_dx) - own);
        weight += s.weight;
    }
    if weight > 0.0 { sum / weight } else { pos[member as usize] as f32 }
}

/// Exchanges neighbours in a rank while that saves crossings.
fn exchange(layers: &mut Layers, pos: &mut [u32]) {
    for rank in 0..layers.order.len() {
        for _ in 0..3 {
            let mut improved = false;
            for at in 1..layers.order[rank].len() {
                let (left, right) = (layers.order[rank][at - 1], layers.order[rank][at]);
                let (now, then) = pair_crossings(layers, pos, left, right);
                if then < now {
                    layers.order[rank].swap(at - 1, at);
                    pos[left as usize] = at as u32;
                    pos[right as usize] = at as u32 - 1;
                    improved = true;
                }
            }
            if !improved {
                break;
            }
        }
    }
}

/// Crossings between the segments of two neighbours as they stand, and exchanged.
fn pair_crossings(layers: &Layers, pos: &[u32], left: u32, right: u32) -> (u64, u64) {
    let (mut now, mut then) = (0, 0);
    for up in [true, false] {
        let ends = |member: u32| {
            let list = if up { layers.up.of(member as usize) } else { layers.down.of(member as usize) };
            list.iter().map(move |&segment| {
                let s = &layers.segments[segment as usize];
                if up { end_position(layers, pos, s.a, s.a_dx) } else { end_position(layers, pos, s.b, s.b_dx) }
            })
        };
        if ends(left).len().saturating_mul(ends(right).len()) > 4096 {
            continue;
        }
        for a in ends(left) {
            for b in ends(right) {
                now += u64::from(a > b);
                then += u64::from(a < b);
            }
        }
    }
    (now, then)
}

/// Crossings between all neighbouring ranks: inversions, counted with a Fenwick tree (Barth, Mutzel, Jünger 2004).
pub(super) fn crossings(layers: &Layers, pos: &[u32]) -> u64 {
    let mut total = 0;
    for rank in &layers.order {
        let mut ends: Vec<(f32, f32)> = Vec::new();
        for &member in rank {
            for &segment in layers.down.of(member as usize) {
                let s = &layers.segments[segment as usize];
                ends.push((end_position(layers, pos, s.a, s.a_dx), end_position(layers, pos, s.b, s.b_dx)));
            }
        }
        ends.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
        total += inversions(&ends);
    }
    total
}

fn inversions(ends: &[(f32, f32)]) -> u64 {
    let mut heads: Vec<f32> = ends.iter().map(|e| e.1).collect();
    heads.sort_by(f32::total_cmp);
    heads.dedup();
    let mut tree = vec![0_u64; heads.len() + 1];
    let mut total = 0;
    for (seen, end) in ends.iter().enumerate() {
        let at = heads.partition_point(|&h| h < end.1) + 1;
        let (mut not_greater, mut i) = (0, at);
        while i > 0 {
            not_greater += tree[i];
            i -= i & i.wrapping_neg();
        }
        total += seen as u64 - not_greater;
        let mut i = at;
        while i < tree.len() {
            tree[i] += 1;
            i += i & i.wrapping_neg();
        }
    }
    total
}
