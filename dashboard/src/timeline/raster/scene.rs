//! What a picture is made from.

use crate::{
    theme::Palette,
    timeline::{layout::rows::RowLayout, model::find::Matches},
};
use profiler::Store;

/// A trace's rows with their colours.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The trace.
    pub store: &'a Store,
    /// Its rows.
    pub rows: &'a RowLayout,
    /// What stands out, if anything does.
    pub matches: Option<&'a Matches>,
    /// Colours.
    pub palette: &'a Palette,
}
