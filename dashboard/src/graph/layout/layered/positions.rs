//! Horizontal positions. Each rank in turn moves as close to the pull of its neighbours as its order and the least
//! distances allow: a weighted isotonic regression, solved exactly in one pass by pooling adjacent violators. Sweeps
//! down and up converge to straight edges. Segments between dummies weigh most, so that long edges run straight.

use super::{
    drawing::{Cancelled, Spacing, check_cancelled},
    layers::Layers,
};
use std::sync::atomic::AtomicBool;

/// Returns the centre (x) of each member.
pub(super) fn solve(layers: &Layers, spacing: Spacing, cancel: &AtomicBool) -> Result<Vec<f32>, Cancelled> {
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
        check_cancelled(cancel)?;
        // The last sweeps use both sides.
        let neighbours = match sweep {
            s if s + 6 >= n_sweeps => Neighbours::Both,
            s if s % 2 == 0 => Neighbours::Up,
            _ => Neighbours::Down,
        };
        let n_ranks = layers.order.len();
        for step in 0..n_ranks {
            let rank = if sweep % 2 == 0 { step } else { n_ranks - 1 - step };
            solver.move_rank(&layers.order[rank], neighbours, &mut x);
        }
    }
    Ok(x)
}

/// The adjacent ranks that pull a member.
#[derive(Clone, Copy)]
enum Neighbours {
    Up,
    Down,
    Both,
}

/// Computes positions, one rank at a time.
struct Solver<'a> {
    layers: &'a Layers,
    spacing: Spacing,
    /// Blocks of the regression, reused between calls.
    blocks: Vec<Block>,
}

/// Adjacent members of a rank that move together.
struct Block {
    /// Weighted mean of the members' targets, each less the offset of the member in its rank.
    mean: f64,
    weight: f64,
    n_members: u32,
}

impl Solver<'_> {
    /// Returns the least distance between the centres of neighbours in a rank.
    fn gap(&self, left: u32, right: u32) -> f32 {
        let (layers, spacing) = (self.layers, self.spacing);
        let is_real = |member: u32| (member as usize) < layers.n_real;
        let space = match (is_real(left), is_real(right)) {
            (true, true) => spacing.node,
            (false, false) => spacing.edge,
            _ => (spacing.node + spacing.edge) / 2.0,
        };
        (layers.width[left as usize] + layers.width[right as usize]) / 2.0 + space
    }

    /// Places the members of a rank next to each other around 0.
    fn pack(&self, rank: &[u32], x: &mut [f32]) {
        let mut center = 0.0;
        for (idx, &member) in rank.iter().enumerate() {
            if idx > 0 {
                center += self.gap(rank[idx - 1], member);
            }
            x[member as usize] = center;
        }
        let middle = center / 2.0;
        for &member in rank {
            x[member as usize] -= middle;
        }
    }

    /// Moves the members of a rank towards their neighbours in the adjacent ranks.
    fn move_rank(&mut self, rank: &[u32], neighbours: Neighbours, x: &mut [f32]) {
        self.blocks.clear();
        let mut offset = 0.0_f64;
        for (idx, &member) in rank.iter().enumerate() {
            if idx > 0 {
                offset += f64::from(self.gap(rank[idx - 1], member));
            }
            let (target, weight) = target(self.layers, x, member, neighbours);
            let mut block = Block { mean: target - offset, weight, n_members: 1 };
            while let Some(previous) = self.blocks.pop_if(|previous| previous.mean > block.mean) {
                let total = previous.weight + block.weight;
                let mean = (previous.mean * previous.weight + block.mean * block.weight) / total;
                block = Block { mean, weight: total, n_members: previous.n_members + block.n_members };
            }
            self.blocks.push(block);
        }
        let (mut idx, mut offset) = (0, 0.0_f64);
        for &Block { mean, n_members, .. } in &self.blocks {
            for _ in 0..n_members {
                if idx > 0 {
                    offset += f64::from(self.gap(rank[idx - 1], rank[idx]));
                }
                x[rank[idx] as usize] = (mean + offset) as f32;
                idx += 1;
            }
        }
    }
}

/// Returns the position to which a member's neighbours pull it, and the weight of the pull: a small one to its own
/// position without neighbours.
fn target(layers: &Layers, x: &[f32], member: u32, neighbours: Neighbours) -> (f64, f64) {
    let is_dummy = member as usize >= layers.n_real;
    let (mut sum, mut weight) = (0.0, 0.0);
    let mut add = |neighbour: u32, shift: f32, segment_weight: f32| {
        let is_neighbour_dummy = neighbour as usize >= layers.n_real;
        let straightness = match (is_dummy, is_neighbour_dummy) {
            (true, true) => 8.0,
            (false, false) => 1.0,
            _ => 2.0,
        };
        let w = f64::from(segment_weight) * straightness;
        sum += w * f64::from(x[neighbour as usize] + shift);
        weight += w;
    };
    if matches!(neighbours, Neighbours::Up | Neighbours::Both) {
        for &segment in layers.up.row(member as usize) {
            let s = &layers.segments[segment as usize];
            add(s.upper, s.upper_dx - s.lower_dx, s.weight);
        }
    }
    if matches!(neighbours, Neighbours::Down | Neighbours::Both) {
        for &segment in layers.down.row(member as usize) {
            let s = &layers.segments[segment as usize];
            add(s.lower, s.lower_dx - s.upper_dx, s.weight);
        }
    }
    if weight > 0.0 { (sum / weight, weight) } else { (f64::from(x[member as usize]), 0.05) }
}
