//! A stall: a part of a gap, with its cause.

use super::cause::Cause;
use std::ops::Range;
use trace_model::{SliceId, TrackId};

/// A part of a gap, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Where.
    pub track: TrackId,
    /// The step's id, where the track works in steps.
    pub step_id: Option<u32>,
    /// The gap of which this is a part.
    pub gap: Range<i64>,
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Why.
    pub cause: Cause,
    /// The slice that is to blame: draw an arrow from it.
    pub culprit: Option<SliceId>,
    /// What ran after the gap: the arrow's head.
    pub blocked: Option<SliceId>,
}

impl Stall {
    /// How long.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}
