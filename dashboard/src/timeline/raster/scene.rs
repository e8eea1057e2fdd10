//! The input of a picture.

use crate::timeline::{layout::RowLayout, model::Matches};
use trace_store::Store;
use ui::theme::Palette;

/// A trace's rows with their colours.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub store: &'a Store,
    pub layout: &'a RowLayout,
    /// The highlighted slices; `None` where nothing is dimmed.
    pub matches: Option<&'a Matches>,
    pub palette: &'a Palette,
}
