//! Horizontal positions: each rank in turn is moved as near as its order and distances allow to where its neighbours
//! pull it. That is a weighted isotonic regression, solved exactly in one pass by pooling adjacent violators; sweeps
//! down and up settle into straight edges. Segments between dummies weigh most, so that long edges run straight.

use super::{
    drawing::{Cancelled, Spacing, check},
    layers::Layers,
};
use std::sync::atomic::AtomicBool;

pub(super) fn positions(layers: &Layers, spacing: Spacing, cancel: &AtomicBool) -> Result<Vec<f32>, Cancelled> {
    let mut x = vec![0.0_f32; layers.width.len()];
    let mut solver = Solver { layers, spacing, blocks: Vec::new() };
    for rank in &layers.order {
        solver.pack(rank, &mut x);
    }
    let n = layers.width.len();
    let n_sweeps = if n > 20_000 {
        6
    } else if n > 4_000 {
        12
    } else {
        24
    };
    for sweep in 0..n_sweeps {
        check(cancel)?;
        // The last sweeps use both sides.
        let neighbours = match sweep {
            s if s + 6 >= n_sweeps => Neighbours::Both,
            s if s % 2 == 0 => Neighbours::Up,
            _ => Neighbours::Down,
        };
        let n_ranks = layers.order.len();
        for step in 0..n_ranks {
            let rank = if sweep % 2 == 0 { step } else { n_ranks - 1 - step };
            solver.settle(&layers.order[rank], neighbours, &mut x);
        }
    }
    Ok(x)
}

/// The sides of a rank whose positions count.
#[derive(Clone, Copy)]
enum Neighbours {
    Up,
    Down,
    Both,
}

/// Positions members of ranks.
struct Solver<'a> {
    layers: &'a Layers,
    spacing: Spacing,
    /// Blocks of the regression as (mean, weight, members), reused between calls.
    blocks: Vec<(f64, f64, u32)>,
}

impl Solver<'_> {
    /// Least distance between the centres of neighbours.
    fn gap(&self, left: u32, right: u32) -> f32 {
        let (layers, spacing) = (self.layers, self.spacing);
        let real = |m: u32| (m as usize) < layers.n_real;
        let space = match (real(left), real(right)) {
            (true, true) => spacing.node,
            (false, false) => spacing.edge,
            _ => (spacing.node + spacing.edge) / 2.0,
        };
        (layers.width[left as usize] + layers.width[right as usize]) / 2.0 + space
    }

    /// Places the members of a rank next to each other around 0.
    fn pack(&self, rank: &[u32], x: &mut [f32]) {
        let mut at = 0.0;
        for (idx, &member) in rank.iter().enumerate() {
            if idx > 0 {
                at += self.gap(rank[idx - 1], member);
            }
            x[member as usize] = at;
        }
        let middle = at / 2.0;
        for &member in rank {
            x[member as usize] -= middle;
        }
    }

    /// Moves the members of a rank towards their neighbours.
    fn settle(&mut self, rank: &[u32], neighbours: Neighbours, x: &mut [f32]) {
        self.blocks.clear();
        let mut offset = 0.0_f64;
        for (idx, &member) in rank.iter().enumerate() {
            if idx > 0 {
                offset += f64::from(self.gap(rank[idx - 1], member));
            }
            let (target, weight) = target(self.layers, x, member, neighbours);
            let mut block = (target - offset, weight, 1);
            while let Some(&(mean, sum, n)) = self.blocks.last() {
                if mean <= block.0 {
                    break;
                }
                let total = sum + block.1;
                block = ((mean * sum + block.0 * block.1) / total, total, n + block.2);
                self.blocks.pop();
            }
            self.blocks.push(block);
        }
        let (mut idx, mut offset) = (0, 0.0_f64);
        for &(mean, _, n) in &self.blocks {
            for _ in 0..n {
                if idx > 0 {
                    offset += f64::from(self.gap(rank[idx - 1], rank[idx]));
                }
                x[rank[idx] as usize] = (mean + offset) as f32;
                idx += 1;
            }
        }
    }
}

/// The position to which a member's neighbours pull it, and the weight of the pull.
fn target(layers: &Layers, x: &[f32], member: u32, neighbours: Neighbours) -> (f64, f64) {
    let own_dummy = member as usize >= layers.n_real;
    let (mut sum, mut weight) = (0.0, 0.0);
    let mut add = |other: u32, shift: f32, w: f32| {
        let other_dummy = other as usize >= layers.n_real;
        let straight = match (own_dummy, other_dummy) {
            (true, true) => 8.0,
            (false, false) => 1.0,
            _ => 2.0,
        };
        let w = f64::from(w) * straight;
        sum += w * f64::from(x[other as usize] + shift);
        weight += w;
    };
    if matches!(neighbours, Neighbours::Up | Neighbours::Both) {
        for &segment in layers.up.of(member as usize) {
            let s = &layers.segments[segment as usize];
            add(s.a, s.a_dx - s.b_dx, s.weight);
        }
    }
    if matches!(neighbours, Neighbours::Down | Neighbours::Both) {
        for &segment in layers.down.of(member as usize) {
            let s = &layers.segments[segment as usize];
            add(s.b, s.b_dx - s.a_dx, s.weight);
        }
    }
    if weight > 0.0 { (sum / weight, weight) } else { (f64::from(x[member as usize]), 0.05) }
}
