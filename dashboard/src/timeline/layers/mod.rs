//! The layers of the canvas: each paints itself, has tooltips and answers clicks.

mod context;
mod counters;
mod critical_path;
mod flows;
mod instants;
mod layer;
pub mod minimap;
mod notes;
mod open_slices;
mod pointer;
mod range;
mod remark;
mod ruler;
mod selection;
mod shapes;
mod slices;
mod stack;
pub mod stalls;
mod steps;
mod tags;
pub mod track_labels;

pub use context::{Areas, Content, FrameContext, sizes};
pub use layer::{ClippedLayer, Layer, Tooltip};
pub use stack::all;
pub use tags::Tags;
