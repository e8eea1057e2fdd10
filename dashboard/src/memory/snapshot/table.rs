//! What was live at a moment, as a table.

use super::moment::{COLUMNS, LiveColumn, LiveRow};
use egui::{Color32, Label, Rect, Sense, Ui, pos2, vec2};
use egui_extras::Column as Width;
use ui::{
    theme::metrics,
    widgets::{DataTable, SortOrder, TableClicks, names_column, text_cell},
};

/// Least and greatest width of the column of shares with its bar.
const SHARE_W: std::ops::RangeInclusive<f32> = 120.0..=480.0;
/// Width of its figure.
const SHARE_TEXT_W: f32 = 52.0;

/// Shows the rows `shown` of `rows`. `color`: that of a row's area in the chart.
pub(super) fn table_ui(
    ui: &mut Ui,
    rows: &[LiveRow],
    shown: &[usize],
    order: SortOrder<LiveColumn>,
    color: impl Fn(&LiveRow) -> Color32,
    is_selected: impl Fn(&LiveRow) -> bool,
) -> TableClicks<LiveColumn> {
    let most = rows.iter().map(|row| row.share).fold(0.0, f64::max);
    let table = DataTable::new("live at a moment", &COLUMNS, rows)
        .order(shown)
        .width(0, names_column(ui, shown.iter().map(|i| &*rows[*i].title)))
        .width(1, Width::remainder().range(SHARE_W).clip(true));
    table.show(
        ui,
        |column| order.descending_by(column),
        is_selected,
        |ui, column, row, _| match column {
            LiveColumn::Place => {
                let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::SWATCH), Sense::hover());
                ui.painter().rect_filled(rect, 2.0, color(row));
                ui.add(Label::new(&row.title).truncate().selectable(false));
            }
            LiveColumn::Share => {
                let room = ui.available_rect_before_wrap();
                let part = if most > 0.0 { (row.share / most).clamp(0.0, 1.0) as f32 } else { 0.0 };
                let width = (room.width() - SHARE_TEXT_W - metrics::GAP).max(0.0) * part;
                let bar = Rect::from_min_size(pos2(room.left(), room.center().y - 4.0), vec2(width, metrics::PAD));
                ui.painter().rect_filled(bar, 2.0, color(row));
                text_cell(ui, column, row);
            }
            _ => text_cell(ui, column, row),
        },
    )
}
