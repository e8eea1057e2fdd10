//! What a picture is made from.

use crate::timeline::{layout::RowLayout, model::Matches};
use trace_store::Store;
use ui::theme::Palette;

/// A trace's rows with their colours.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub store: &'a Store,
    pub rows: &'a RowLayout,
    /// What stands out, if anything does.
    pub matches: Option<&'a Matches>,
    pub palette: &'a Palette,
}
