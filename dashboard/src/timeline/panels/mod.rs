//! The panels above, below and next to the picture.

pub mod bar;
pub mod bottom;
pub mod compare;
mod compare_table;
mod details;
mod flame;
mod histogram;
pub mod log;
pub mod notes;
mod range;
pub mod stalls;

use super::model::Findings;
use crate::{Data, data::TraceData};
use std::ops::Range;
use trace_store::Store;

/// The trace that is shown, in one frame.
pub struct TraceContext<'a> {
    pub data: &'a Data,
    pub trace_idx: usize,
    pub trace: &'a TraceData,
    pub store: &'a Store,
    /// All its time.
    pub whole: &'a Range<i64>,
    /// What the analysis found out, perhaps about a moment ago.
    pub findings: Option<&'a Findings>,
    /// The frame's clock, seconds.
    pub now: f64,
}
