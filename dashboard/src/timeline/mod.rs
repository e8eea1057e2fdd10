//! The Timeline panel (the EEG of a run): every track's slices over time, from the whole trace down to 10 ns.
//!
//! In reading order: [`model`] finds what to show; [`layout`] says where it is; [`raster`] turns slices into
//! cached pixels; [`layers`] draws them and everything over them; [`canvas`] puts one frame together. [`input`] turns gestures
//! into [`command::Command`]s, which [`state`] carries out; [`panels`] are around the picture; [`view`] is the whole.
//! [`analyser`] computes off the UI thread what takes longer than a frame.

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
