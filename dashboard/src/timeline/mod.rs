//! The Timeline panel: every track's slices over time, from the entire trace down to 10 ns.
//!
//! In reading order: [`model`] finds rows, slices and figures; [`layout`] places them on the screen; [`raster`] caches
//! slices as pixels; [`layers`] draws these and everything over them; [`canvas`] draws one frame. [`input`] turns
//! gestures into [`command::Command`]s, which [`state`] carries out. [`panels`] surround the canvas, [`view`] is the
//! entire panel. [`analyser`] runs in a thread what takes longer than a frame. [`shared_selection`] exchanges the
//! selection with the other panels; [`address`] writes and reads the panel's part of a deep link, [`csv`] its table;
//! [`trace_choice`] picks a trace.

mod address;
mod analyser;
mod canvas;
mod command;
mod csv;
mod input;
mod layers;
mod layout;
mod model;
mod panels;
mod raster;
mod shared_selection;
mod state;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod trace_choice;
mod view;

pub(crate) use address::accepts;
pub(crate) use layout::ticks;
pub(crate) use model::analysis;
pub(crate) use panels::stalls;
pub use view::TimelineView;
