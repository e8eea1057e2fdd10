//! The table: a bar for the share, a swatch for the op.

use super::model::{Column, Grouping, Heading, Row};
use crate::Selection;
use egui::{Rect, Sense, Ui, vec2};
use egui_extras::Column as Width;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{DataTable, Sorting, TableClicks, text_cell, word_column},
};

/// The share's number and its bar, at least.
const SHARE_W: f32 = 96.0;

/// Shows the rows `shown` of `rows`.
pub fn table_ui(
    ui: &mut Ui,
    rows: &[Row],
    shown: &[usize],
    grouping: Grouping,
    order: Sorting<Column>,
    selection: &Selection,
) -> TableClicks<Heading> {
    let columns: Vec<Heading> = Column::of(grouping).iter().map(|column| Heading(*column, grouping)).collect();
    let names = longest_name(ui, rows, shown);
    let most_share = shown.iter().map(|i| rows[*i].figures.share).fold(0.0, f64::max);
    // Columns of shorter figures are narrower.
    let id = (grouping == Grouping::Op, format::is_exact());
    let table = DataTable::new(id, &columns, rows)
        .order(shown)
        .width(0, word_column(names))
        .width(1, word_column(metrics::VALUE_W))
        // Clipped: else it would keep what room it once had when others need more. Its figure always fits.
        .width(columns.len() - 1, Width::remainder().at_least(SHARE_W).clip(true));
    let is_selected = |row: &Row| match grouping {
        Grouping::Op => selection.op.get().is_some_and(|op| **op == *row.name),
        Grouping::Node => selection.covers_node(&row.name),
    };
    table.show(
        ui,
        |column| order.of(&column.0),
        is_selected,
        |ui, column, row, _| cell_ui(ui, row, *column, most_share),
    )
}

/// `most_share` fills the column of shares.
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
            // Next to the scroll bar.
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

/// How wide the column of names is at first: as its longest one, but never more than a share of the room.
fn longest_name(ui: &Ui, rows: &[Row], shown: &[usize]) -> f32 {
    let longest = shown.iter().map(|i| &rows[*i].name).max_by_key(|name| name.chars().count());
    let font = egui::FontId::proportional(metrics::TEXT);
    let text = |name: &String| ui.painter().layout_no_wrap(name.clone(), font.clone(), egui::Color32::PLACEHOLDER);
    let width = longest.map_or(0.0, |name| text(name).size().x + metrics::SWATCH + 3.0 * metrics::PAD);
    width.clamp(metrics::NAME_W, metrics::NAME_W.max(ui.available_width() * metrics::NAMES_SHARE))
}
