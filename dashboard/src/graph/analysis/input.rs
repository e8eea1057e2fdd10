//! The input of an analysis in a frame.

use crate::{Data, graph::model::Model};
use egui::Context;
use std::sync::Arc;

/// The graph and what is open in a frame.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub ctx: &'a Context,
    pub model: &'a Arc<Model>,
    pub data: &'a Data,
    /// The time of the frame, seconds.
    pub now: f64,
}
