//! The common parts of charts: bounds and scales, ticks, decimation, lines as pixels, dots, areas, the frame with its
//! grid, and mouse gestures.

pub mod bounds;
pub mod decimate;
pub mod dots;
pub mod frame;
pub mod input;
pub mod orbit;
pub mod raster;
mod strip;
pub mod ticks;

pub use bounds::{Bounds, Scale, extent};
pub use decimate::{Polylines, XWindow};
pub use strip::strip;
