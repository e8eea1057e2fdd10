//! The input of an analysis in a frame.

use crate::{Data, graph::model::Model};
use egui::Context;
use std::sync::Arc;

/// A shared value that equals only itself.
pub(crate) struct Same<T>(pub Arc<T>);

impl<T> Clone for Same<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for Same<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The graph and what is open in a frame.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub ctx: &'a Context,
    pub model: &'a Arc<Model>,
    pub data: &'a Data,
}
