//! The memory of a trace's devices: a chart of each, and what was live at its peak.

mod analysis;
mod page;

pub(super) use page::TracePage;
