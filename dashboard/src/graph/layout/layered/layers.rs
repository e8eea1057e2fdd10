//! The layers of a drawing, as its phases share them.

use crate::graph::model::Csr;

/// Vertices and dummies in ranks, joined by segments that span one rank each.
#[derive(Debug, Default)]
pub(super) struct Layers {
    /// Width of each vertex, then of each dummy (0).
    pub width: Vec<f32>,
    /// The number of vertices; members with larger indices are dummies.
    pub n_real: usize,
    /// The rank of each member.
    pub rank: Vec<u32>,
    /// The members of each rank, from left to right.
    pub order: Vec<Vec<u32>>,
    pub segments: Vec<Segment>,
    /// Indices of each member's segments up (towards rank 0) and down.
    pub up: Csr<u32>,
    pub down: Csr<u32>,
    /// The dummies of each arc, in order of rank.
    pub arc_dummies: Vec<Vec<u32>>,
}

/// A part of an arc between two members of adjacent ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// The member in the smaller rank.
    pub upper: u32,
    /// Horizontal offset of the upper end from its member's centre.
    pub upper_dx: f32,
    /// The member in the larger rank.
    pub lower: u32,
    /// Horizontal offset of the lower end from its member's centre.
    pub lower_dx: f32,
    pub weight: f32,
}
