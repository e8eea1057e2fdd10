//! What to draw: points, curves, bands, figures of a range, and the layouts of runs. No egui here.

pub mod against;
pub mod band;
pub mod curve;
pub mod layouts;
pub mod points;
pub mod range;
pub mod smooth;
