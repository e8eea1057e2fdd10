//! The request and the result of a layered drawing.

use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vertex {
    pub w: f32,
    pub h: f32,
    /// The rank that the vertex must be in, if any.
    pub end: End,
}

/// A constraint on a vertex's rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
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
    pub src: u32,
    pub dst: u32,
    /// Offset of the edge's end from the tail's centre.
    pub src_dx: f32,
    /// Offset of the edge's end from the head's centre.
    pub dst_dx: f32,
    /// Weight of the edge's length and straightness.
    pub weight: f32,
}

#[derive(Clone, Copy, Debug)]
pub struct Spacing {
    /// Between boxes of a rank.
    pub node: f32,
    /// Between an edge and its neighbours in a rank.
    pub edge: f32,
    /// Between ranks.
    pub rank: f32,
}

/// A drawing. The top left corner is the origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    pub centers: Vec<[f32; 2]>,
    pub ranks: Vec<u32>,
    /// Per edge the points it passes, tail to head, both ends on the boxes' borders. Empty for self loops.
    pub paths: Vec<Vec<[f32; 2]>>,
    /// Per edge whether it was turned to open a cycle.
    pub reversed: Vec<bool>,
    /// Width and height.
    pub size: [f32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Fails once `cancel` is set.
pub(super) fn check(cancel: &AtomicBool) -> Result<(), Cancelled> {
    if cancel.load(Ordering::Relaxed) { Err(Cancelled) } else { Ok(()) }
}
