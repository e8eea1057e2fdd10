//! The table, with a bar for the share and a swatch for the op.

use super::model::{Column, Grouping, Heading, Row};
use crate::Selection;
use egui::{Rect, Sense, Ui, vec2};
use egui_extras::Column as Width;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{DataTable, SortOrder, TableClicks, names_column, text_cell, word_column},
};

/// Least width of the column of shares with its bar.
const SHARE_W: f32 = 96.0;

/// Shows the rows `shown` of `rows`.
pub fn table_ui(
    ui: &mut Ui,
    rows: &[Row],
    shown: &[usize],
    grouping: Grouping,
    order: SortOrder<Column>,
    selection: &Selection,
) -> TableClicks<Heading> {
    let columns: Vec<Heading> =
        Column::for_grouping(grouping).iter().map(|column| Heading(*column, grouping)).collect();
    let most_share = shown.iter().map(|i| rows[*i].figures.share).fold(0.0, f64::max);
    // A separate id where figures are shorter, so that the widths are not shared.
    let id = (grouping == Grouping::Op, format::is_exact());
    let table = DataTable::new(id, &columns, rows)
        .order(shown)
        .width(0, names_column(ui, shown.iter().map(|i| &*rows[*i].name)))
        .width(1, word_column(metrics::VALUE_W))
        // Clipped, so that the column can shrink again; its figure always fits.
        .width(columns.len() - 1, Width::remainder().at_least(SHARE_W).clip(true));
    let is_selected = |row: &Row| match grouping {
        Grouping::Op => selection.op.get().is_some_and(|op| **op == *row.name),
        Grouping::Node => selection.covers_node(&row.name),
    };
    table.show(
        ui,
        |column| order.descending_by(&column.0),
        is_selected,
        |ui, column, row, _| cell_ui(ui, row, *column, most_share),
    )
}

/// `most_share`: the share whose bar fills the column.
fn cell_ui(ui: &mut Ui, row: &Row, column: Heading, most_share: f64) {
    let p = palette(ui);
    match column.0 {
        Column::Name => {
            let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::SWATCH), Sense::hover());
            ui.painter().rect_filled(rect, 2.0, p.mark_of_name(&row.op));
            let response = ui.add(egui::Label::new(&row.name).truncate().selectable(false));
            if !row.device.is_empty() {
                response.on_hover_text(format!("{}\n{}", row.name, row.device));
            }
        }
        Column::Share => {
            // Space for the scroll bar.
            ui.add_space(metrics::PAD);
            text_cell(ui, &column, row);
            let room = ui.available_rect_before_wrap();
            let part = if most_share > 0.0 { (row.figures.share / most_share).clamp(0.0, 1.0) as f32 } else { 0.0 };
            let width = (room.width() - metrics::PAD).max(0.0) * part;
            let bar = Rect::from_min_size(room.left_center() - vec2(0.0, 4.0), vec2(width, metrics::PAD));
            ui.painter().rect_filled(bar, 2.0, p.mark_of_name(&row.op));
        }
        _ => text_cell(ui, &column, row),
    }
}
