//! Texts: formatted Markdown, in a table where there are several.

use super::markdown::{Block, blocks_ui, parse};
use egui::{Frame, Grid, Label, ScrollArea, Stroke, Ui, vec2};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use ui::theme::{metrics, palette};

/// Bytes of a card that are formatted as Markdown, at most; longer texts are shown as written.
const MAX_MARKDOWN: usize = 64 << 10;
/// Bytes of plain text that are laid out, at most.
const MAX_PLAIN: usize = 1 << 20;
/// Rows of a table that are shown, at most.
const MAX_ROWS: usize = 200;

/// The cached state of a card.
#[derive(Default)]
pub struct TextCard {
    /// The parsed cells, with the hash of their texts.
    parsed: (u64, Vec<Vec<Block>>),
}

impl TextCard {
    /// Shows a plain text.
    pub fn plain(&mut self, ui: &mut Ui, text: &str) {
        let end = text.floor_char_boundary(MAX_PLAIN);
        ScrollArea::both().auto_shrink(false).show(ui, |ui| {
            ui.add(Label::new(&text[..end]));
            if end < text.len() {
                ui.weak(format!("and {} more", ui::format::bytes((text.len() - end) as u64)));
            }
        });
    }

    /// Shows a Markdown text, or a table of them.
    pub fn markdown(&mut self, ui: &mut Ui, n_columns: usize, cells: &[String]) {
        let n_bytes: usize = cells.iter().map(String::len).sum();
        if n_bytes > MAX_MARKDOWN {
            let rows: Vec<String> = cells.chunks(n_columns).map(|row| row.join("\t")).collect();
            return self.plain(ui, &rows.join("\n"));
        }
        let hash = FxBuildHasher.hash_one(cells);
        if self.parsed.0 != hash || self.parsed.1.is_empty() {
            let shown = cells.iter().take(MAX_ROWS.saturating_mul(n_columns));
            self.parsed = (hash, shown.map(|cell| parse(cell)).collect());
        }
        match &self.parsed.1[..] {
            [] => _ = ui.weak("A text without contents."),
            [only] => {
                ScrollArea::vertical().auto_shrink(false).show(ui, |ui| blocks_ui(ui, only));
            }
            parsed => table(ui, n_columns, parsed, cells.len()),
        }
    }
}

/// Shows a table. `n_cells`: the number of cells including those that are not shown.
fn table(ui: &mut Ui, n_columns: usize, cells: &[Vec<Block>], n_cells: usize) {
    let width = (ui.available_width() / n_columns as f32 - metrics::GAP_WIDE).max(metrics::VALUE_W);
    ScrollArea::both().auto_shrink(false).show(ui, |ui| {
        let grid = Grid::new("cells").num_columns(n_columns).striped(true).spacing(vec2(1.0, 1.0));
        grid.show(ui, |ui| {
            for (nth, row) in cells.chunks(n_columns).enumerate() {
                for (column, cell) in row.iter().enumerate() {
                    let stroke = Stroke::new(metrics::HAIRLINE, palette(ui).border);
                    let frame = Frame::new().stroke(stroke).inner_margin(metrics::GAP);
                    let contents = |ui: &mut Ui| {
                        ui.set_max_width(width);
                        ui.set_min_width(width.min(metrics::VALUE_W));
                        blocks_ui(ui, cell);
                    };
                    // Cells of a row are aligned at their top.
                    ui.push_id((nth, column), |ui| ui.vertical(|ui| frame.show(ui, contents)));
                }
                ui.end_row();
            }
        });
        let n_rows = n_cells.div_ceil(n_columns);
        if n_rows > MAX_ROWS {
            ui.weak(format!("and {} more rows", n_rows - MAX_ROWS));
        }
    });
}
