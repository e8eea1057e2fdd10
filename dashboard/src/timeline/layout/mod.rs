//! Geometry: where rows, slices and times are on the screen. No egui; colours come later.
//!
//! Points are egui's logical pixels. A lane is read at the LOD level of the physical pixels, so that it has at most
//! about two bars per physical pixel, however many slices it contains.

pub mod bars;
pub mod counters;
pub mod cpu_runs;
pub mod frame;
pub mod rows;
#[cfg(test)]
mod tests;
pub mod ticks;
pub mod viewport;

pub use self::{
    bars::{Bar, LaneSpans, Slices},
    cpu_runs::CpuRuns,
    frame::{Frame, Sizes},
    rows::{Hit, LaneBand, RowLayout, RowPosition},
    viewport::{EasedViewport, Scale, Viewport},
};
