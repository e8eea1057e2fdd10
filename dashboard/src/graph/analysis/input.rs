//! The input of the analyses.

use crate::{Data, graph::model::Model};
use egui::Context;
use std::sync::Arc;

/// A shared value compared by its address.
pub(crate) struct PtrEq<T>(pub Arc<T>);

impl<T> Clone for PtrEq<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for PtrEq<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The graph and the open data of a frame.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub ctx: &'a Context,
    pub model: &'a Arc<Model>,
    pub data: &'a Data,
}
