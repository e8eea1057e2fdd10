//! The widgets around the picture: `toolbar` above it with `search`, `details` of the selection with `step_chart` to
//! its right.

pub(super) mod details;
mod search;
mod step_chart;
pub(super) mod toolbar;

pub(super) use search::Search;
