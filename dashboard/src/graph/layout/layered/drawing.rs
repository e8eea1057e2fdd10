//! The request and the result of a layered drawing.

use std::sync::atomic::{AtomicBool, Ordering};

/// A box to place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vertex {
    /// Width, points.
    pub w: f32,
    /// Height, points.
    pub h: f32,
    pub constraint: RankConstraint,
}

/// A constraint on a vertex's rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankConstraint {
    /// Anywhere.
    #[default]
    Free,
    /// In the first rank of all.
    First,
    /// In the last rank of all.
    Last,
}

/// An edge between two vertices; it may be a duplicate or go backwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arc {
    /// Index of the tail.
    pub src: u32,
    /// Index of the head.
    pub dst: u32,
    /// Horizontal offset of the edge's start from the tail's centre.
    pub src_dx: f32,
    /// Horizontal offset of the edge's end from the head's centre.
    pub dst_dx: f32,
    /// Weight of the edge's length and straightness.
    pub weight: f32,
}

/// Least distances, points.
#[derive(Clone, Copy, Debug)]
pub struct Spacing {
    /// Between boxes of a rank.
    pub node: f32,
    /// Between an edge and its neighbours in a rank.
    pub edge: f32,
    /// Between ranks.
    pub rank: f32,
}

/// A drawing in points. The origin is the top left corner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// The centre of each vertex.
    pub centers: Vec<[f32; 2]>,
    /// The rank of each vertex; rank 0 is at the top.
    pub ranks: Vec<u32>,
    /// The points of each edge from tail to head, both ends on the borders of boxes; empty for self loops.
    pub paths: Vec<Vec<[f32; 2]>>,
    /// Whether each edge was reversed to break a cycle.
    pub reversed: Vec<bool>,
    /// Width and height.
    pub size: [f32; 2],
}

/// The error of a cancelled drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Fails once `cancel` is set.
pub(super) fn check_cancelled(cancel: &AtomicBool) -> Result<(), Cancelled> {
    if cancel.load(Ordering::Relaxed) { Err(Cancelled) } else { Ok(()) }
}
