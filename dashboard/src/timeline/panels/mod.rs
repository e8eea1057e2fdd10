//! The parts of the panel around the canvas: the toolbar above it, details below, the log at its right.

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
pub mod toolbar;

use super::model::Findings;
use crate::{Data, data::TraceData};
use std::ops::Range;
use trace_store::Store;

/// The input of the panels in a frame: the trace with its findings.
pub struct TraceContext<'a> {
    pub data: &'a Data,
    pub trace_idx: usize,
    pub trace: &'a TraceData,
    pub store: &'a Store,
    /// From the trace's start to its end; a live trace ends now.
    pub trace_range: &'a Range<i64>,
    /// The latest results of the analysis, which may be of an earlier view or version of the trace.
    pub findings: Option<&'a Findings>,
    /// Time on the frame's clock, seconds.
    pub now: f64,
}
