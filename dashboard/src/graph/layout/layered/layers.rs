//! Ranks of vertices and dummies, joined by segments.

use crate::graph::model::Csr;

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
    pub up: Csr<u32>,
    pub down: Csr<u32>,
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
