//! Columns of tables. Figures are never cut: a column is as wide as its figures, and a table that is wider than the
//! available width scrolls.

use super::scroll_area;
use crate::theme::metrics;
use egui::{FontId, Ui};
use egui_extras::Column;

/// A column of figures: at least as wide as its heading with the sort mark and as every figure shown so far; the user
/// can widen it.
pub fn figure_column(ui: &Ui, heading: &str) -> Column {
    let font = FontId::proportional(metrics::TEXT);
    let heading_w = ui.painter().layout_no_wrap(heading.to_owned(), font, egui::Color32::PLACEHOLDER).size().x;
    let width = (heading_w + 2.0 * metrics::PAD).ceil();
    // Unclipped contents widen a column, and the table remembers the width of resizable columns.
    Column::initial(width).at_least(width).resizable(true)
}

/// A column of words, which the user can resize.
pub fn word_column(width: f32) -> Column {
    Column::initial(width).at_least(metrics::VALUE_W).resizable(true).clip(true)
}

/// A column of names, each after a swatch: by default as wide as the longest name, at most a share of `ui`'s width.
pub fn names_column<'a>(ui: &Ui, names: impl Iterator<Item = &'a str>) -> Column {
    let longest = names.max_by_key(|name| name.chars().count()).unwrap_or_default();
    let font = FontId::proportional(metrics::TEXT);
    let galley = ui.painter().layout_no_wrap(longest.to_owned(), font, egui::Color32::PLACEHOLDER);
    let width = galley.size().x + metrics::SWATCH + 3.0 * metrics::PAD;
    word_column(width.clamp(metrics::NAME_W, metrics::NAME_W.max(ui.available_width() * metrics::NAMES_SHARE)))
}

/// Shows a table that may be wider than `ui`.
pub fn wide_table<R>(ui: &mut Ui, table: impl FnOnce(&mut Ui) -> R) -> R {
    let height = ui.available_height();
    scroll_area(ui, [true, false], height).auto_shrink([false, false]).show(ui, table).inner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::widgets::{aligned_cell, sort_heading};
    use egui::{Align, Label, Layout, Sense};
    use egui_extras::TableBuilder;
    use egui_kittest::{Harness, kittest::Queryable as _};

    /// Two columns of figures that are far longer than their headings; the column whose heading's cell was clicked.
    fn table(ui: &mut Ui, clicked: &mut Option<usize>) {
        let widths = ["a", "b"].map(|heading| figure_column(ui, heading));
        wide_table(ui, |ui| {
            let cells = Layout::left_to_right(Align::Center);
            let table = TableBuilder::new(ui).sense(Sense::click()).cell_layout(cells);
            let table = widths.into_iter().fold(table, TableBuilder::column);
            let table = table.header(metrics::ROW_H, |mut line| {
                for (i, heading) in ["a", "b"].into_iter().enumerate() {
                    let (_, cell) = line.col(|ui| _ = sort_heading(ui, heading, "", false, None));
                    if cell.contains_pointer() && cell.ctx.input(|input| input.pointer.primary_clicked()) {
                        assert_eq!(*clicked, None, "two cells in one place");
                        *clicked = Some(i);
                    }
                }
            });
            table.body(|body| {
                body.rows(metrics::ROW_H, 1, |mut line| {
                    for figure in ["16,098,123,456 ns", "161,000,123,456 ns"] {
                        line.col(|ui| _ = aligned_cell(ui, false, |ui| ui.add(Label::new(figure).selectable(false))));
                    }
                });
            });
        });
    }

    #[test]
    fn figures_are_whole_and_headings_take_their_own_clicks() {
        for width in [80.0, 600.0] {
            let mut harness = Harness::builder().with_size([width, 120.0]).build_ui_state(table, None);
            harness.run_steps(4);
            let [first, second] =
                ["16,098,123,456 ns", "161,000,123,456 ns"].map(|figure| harness.get_by_label(figure).rect());
            assert!(first.width() > 80.0 && first.right() < second.left(), "{first:?} {second:?}");
            let heading = harness.get_by_label("Sort by a").rect();
            assert!((heading.right() - first.right()).abs() < 1.0, "{heading:?} over {first:?}");
        }
        let mut harness = Harness::builder().with_size([600.0, 120.0]).build_ui_state(table, None);
        harness.run_steps(4);
        harness.get_by_label("Sort by a").click();
        harness.run_steps(4);
        assert_eq!(*harness.state(), Some(0));
    }
}
