//! The table: headings that sort, rows that select, a bar for the share. Only the rows on the screen are built.

use super::model::{Column, Grouping, Order, Row, cell};
use crate::{
    Selection, format,
    theme::{metrics, palette},
    widgets::{beside, figure_column, sort_heading, word_column},
};
use egui::{Align, Layout, Rect, Sense, Ui, vec2};
use egui_extras::{Column as Width, TableBuilder};

/// The share's number and its bar, at least.
const SHARE_W: f32 = 96.0;

/// What was clicked.
#[derive(Default)]
pub struct Acts {
    /// A heading.
    pub order_by: Option<Column>,
    /// A row, by its index.
    pub picked: Option<usize>,
    /// Whether to show the pick in the timeline: a double click.
    pub show: bool,
}

/// Shows the rows `shown` of `rows`.
pub fn table_ui(
    ui: &mut Ui,
    rows: &[Row],
    shown: &[usize],
    grouping: Grouping,
    order: Order,
    selection: &Selection,
) -> Acts {
    let mut acts = Acts::default();
    let columns = Column::of(grouping);
    let names = longest_name(ui, rows, shown);
    let widths: Vec<Width> = columns.iter().map(|column| width(ui, *column, grouping, names)).collect();
    let most_share = shown.iter().map(|i| rows[*i].figures.share).fold(0.0, f64::max);
    let mut table = TableBuilder::new(ui)
        // Columns of shorter figures are narrower.
        .id_salt((grouping == Grouping::Op, format::is_exact()))
        .striped(true)
        .sense(Sense::click())
        .cell_layout(Layout::left_to_right(Align::Center));
    for width in widths {
        table = table.column(width);
    }
    let header = |mut row: egui_extras::TableRow<'_, '_>| {
        for column in columns {
            row.col(|ui| {
                let sorted = (order.column == *column).then_some(order.descending);
                if sort_heading(ui, column.title(grouping), column.help(), column.is_text(), sorted) {
                    acts.order_by = Some(*column);
                }
            });
        }
    };
    let body = table.header(metrics::ROW_H, header);
    body.body(|body| {
        body.rows(metrics::ROW_H, shown.len(), |mut line| {
            let idx = shown[line.index()];
            let row = &rows[idx];
            let picked = match grouping {
                Grouping::Op => selection.op.get().is_some_and(|op| **op == *row.name),
                Grouping::Node => selection.covers_node(&row.name),
            };
            line.set_selected(picked);
            for column in columns {
                line.col(|ui| beside(ui, column.is_text(), |ui| cell_ui(ui, row, *column, most_share)));
            }
            let response = line.response();
            if response.clicked() {
                acts.picked = Some(idx);
                acts.show = response.double_clicked();
            }
        });
    });
    acts
}

/// `most_share` fills the column of shares.
fn cell_ui(ui: &mut Ui, row: &Row, column: Column, most_share: f64) {
    let p = palette(ui);
    match column {
        Column::Name => {
            let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::SWATCH), Sense::hover());
            ui.painter().rect_filled(rect, 2.0, p.mark_of_name(&row.op));
            let response = ui.add(egui::Label::new(&row.name).truncate().selectable(false));
            if !row.device.is_empty() {
                response.on_hover_text(format!("{}\n{}", row.name, row.device));
            }
        }
        Column::Op | Column::Category => {
            ui.add(egui::Label::new(cell(row, column)).truncate().selectable(false));
        }
        Column::Share => {
            // Beside the bar that scrolls.
            ui.add_space(metrics::PAD);
            ui.add(egui::Label::new(cell(row, column)).selectable(false));
            let room = ui.available_rect_before_wrap();
            let part = if most_share > 0.0 { (row.figures.share / most_share).clamp(0.0, 1.0) as f32 } else { 0.0 };
            let width = (room.width() - metrics::PAD).max(0.0) * part;
            let bar = Rect::from_min_size(room.left_center() - vec2(0.0, 4.0), vec2(width, metrics::PAD));
            ui.painter().rect_filled(bar, 2.0, p.mark_of_name(&row.op));
        }
        _ => {
            ui.add(egui::Label::new(cell(row, column)).selectable(false));
        }
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

fn width(ui: &Ui, column: Column, grouping: Grouping, names: f32) -> Width {
    match column {
        Column::Name => word_column(names),
        Column::Op | Column::Category => word_column(metrics::VALUE_W),
        // Clipped: else it would keep what room it once had when others need more. Its figure always fits.
        Column::Share => Width::remainder().at_least(SHARE_W).clip(true),
        figures => figure_column(ui, figures.title(grouping)),
    }
}
