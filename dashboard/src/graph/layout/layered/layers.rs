//! Ranks of vertices and dummies, joined by segments.

/// Vertices and dummies in ranks, joined by segments that span one rank each.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// Width of each vertex, then of each dummy (0).
    pub width: Vec<f32>,
    pub n_real: usize,
    pub rank: Vec<u32>,
    /// Per rank its members in order.
    pub order: Vec<Vec<u32>>,
    pub segments: Vec<Segment>,
    /// Per member the segments up (towards rank 0) and down.
    pub up: Adjacency,
    pub down: Adjacency,
    /// Per arc the dummies it passes in order of rank.
    pub through: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Member in the smaller rank and the end's offset from its centre.
    pub a: u32,
    pub a_dx: f32,
    /// Member in the larger rank.
    pub b: u32,
    pub b_dx: f32,
    pub weight: f32,
}

/// Segments of each member.
#[derive(Debug, Default)]
pub(super) struct Adjacency {
    start: Vec<u32>,
    segment: Vec<u32>,
}

impl Adjacency {
    pub fn of(&self, member: u32) -> &[u32] {
        &self.segment[self.start[member as usize] as usize..self.start[member as usize + 1] as usize]
    }

    pub fn build(n: usize, segments: &[Segment], member: impl Fn(&Segment) -> u32) -> Self {
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
