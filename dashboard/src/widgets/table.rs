//! Columns of tables. A figure is never cut: its column is as wide as it needs, and where that is more than there is room for, the
//! table scrolls across.

use super::scroll_area;
use crate::theme::metrics;
use egui::{FontId, Ui};
use egui_extras::Column;

/// A column of figures: as wide as its heading, with the mark of the order, and as every figure that is shown.
pub fn figure_column(ui: &Ui, heading: &str) -> Column {
    let font = FontId::proportional(metrics::TEXT);
    let heading = ui.painter().layout_no_wrap(heading.to_owned(), font, egui::Color32::PLACEHOLDER).size().x;
    let width = (heading + 2.0 * metrics::PAD).ceil();
    Column::initial(width).at_least(width)
}

/// A column of words: the user makes it wider and narrower.
pub fn word_column(width: f32) -> Column {
    Column::initial(width).at_least(metrics::VALUE_W).resizable(true).clip(true)
}

/// Room for a table that may be wider than `ui`.
pub fn wide_table<R>(ui: &mut Ui, table: impl FnOnce(&mut Ui) -> R) -> R {
    let height = ui.available_height();
    scroll_area(ui, [true, false], height).auto_shrink([false, false]).show(ui, table).inner
}
