//! The tree as a table: names indented by their depth, with a triangle that folds and unfolds.

use super::model::{Column, Folding, Heading, Module, Tree, columns_of};
use egui::{Color32, Painter, Rect, Sense, Shape, Stroke, Ui, pos2, vec2};
use egui_extras::Column as Width;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{DataTable, SortOrder, TableClicks, named, text_cell, word_column},
};

/// Least and greatest width of the column of shares with its bar.
const SHARE_W: std::ops::RangeInclusive<f32> = 104.0..=400.0;
/// Width of its figure.
const SHARE_TEXT_W: f32 = 52.0;
/// Width by which a level is indented.
const INDENT_W: f32 = 14.0;
/// Width of the names by default.
const MODULE_W: f32 = 216.0;

/// The clicks in the tree.
pub(super) struct TreeClicks {
    pub table: TableClicks<Heading>,
    /// The module that was folded or unfolded.
    pub toggled: Option<usize>,
}

/// The rows of the tree that are shown, and how.
pub(super) struct TreeTable<'a> {
    pub tree: &'a Tree,
    pub shown: &'a [usize],
    pub folding: &'a Folding,
    pub order: SortOrder<Column>,
    pub selected: Option<&'a str>,
    /// Whether the selected row is scrolled to.
    pub follows: bool,
}

impl TreeTable<'_> {
    pub(super) fn ui(&self, ui: &mut Ui) -> TreeClicks {
        let columns = columns_of(self.tree);
        let most = self.tree.modules.iter().map(|module| module.share).fold(0.0, f64::max);
        let position = |path: &str| self.shown.iter().position(|i| *self.tree.modules[*i].path == *path);
        let mut toggled = None;
        let table = DataTable::new(("modules", format::is_exact()), &columns, &self.tree.modules)
            .order(self.shown)
            .width(0, word_column(MODULE_W))
            .width(1, Width::remainder().range(SHARE_W).clip(true))
            .scroll_to(self.selected.filter(|_| self.follows).and_then(position));
        let table = table.show(
            ui,
            |column| self.order.descending_by(&column.0),
            |module| self.selected == Some(&*module.path),
            |ui, column, module, i| match column.0 {
                Column::Module => {
                    if self.name_ui(ui, module) {
                        toggled = Some(i);
                    }
                }
                Column::Share => share_ui(ui, module, most),
                _ => text_cell(ui, column, module),
            },
        );
        TreeClicks { table, toggled }
    }

    /// Shows a module's name; returns whether it was folded or unfolded.
    fn name_ui(&self, ui: &mut Ui, module: &Module) -> bool {
        ui.add_space(module.row.depth as f32 * INDENT_W);
        let mut is_toggled = false;
        let size = vec2(INDENT_W, metrics::ROW_H);
        if module.children.is_empty() {
            ui.allocate_exact_size(size, Sense::hover());
        } else {
            let (rect, response) = ui.allocate_exact_size(size, Sense::click());
            let is_open = self.tree.is_open(module, self.folding);
            let what = if is_open { "Fold" } else { "Unfold" };
            named(&response, egui::Role::Button, &format!("{what} {}", module.path));
            let p = palette(ui);
            let color = if response.hovered() || response.has_focus() { p.text_strong } else { p.text_weak };
            triangle(ui.painter(), rect, is_open, color);
            is_toggled = response.clicked();
        }
        let p = palette(ui);
        let text = egui::RichText::new(module.title());
        let text = if module.is_outside() { text.color(p.text_weak) } else { text };
        ui.add(egui::Label::new(text).truncate().selectable(false));
        is_toggled
    }
}

/// Paints a triangle to the right, or down where the row is unfolded.
fn triangle(painter: &Painter, rect: Rect, is_open: bool, color: Color32) {
    let (center, r) = (rect.center(), metrics::GAP);
    let points = match is_open {
        true => [(-r, -0.6 * r), (r, -0.6 * r), (0.0, 0.8 * r)],
        false => [(-0.6 * r, -r), (0.8 * r, 0.0), (-0.6 * r, r)],
    };
    let points = points.map(|(x, y)| pos2(center.x + x, center.y + y)).to_vec();
    painter.add(Shape::convex_polygon(points, color, Stroke::NONE));
}

/// Shows a share as a figure and a bar; `most`: the share whose bar fills the column.
fn share_ui(ui: &mut Ui, module: &Module, most: f64) {
    let p = palette(ui);
    let room = ui.available_rect_before_wrap();
    let part = if most > 0.0 { (module.share / most).clamp(0.0, 1.0) as f32 } else { 0.0 };
    let width = (room.width() - SHARE_TEXT_W - metrics::GAP).max(0.0);
    let bar = Rect::from_min_size(pos2(room.left(), room.center().y - 4.0), vec2(width * part, metrics::PAD));
    let color = if module.is_outside() { p.aggregate } else { p.mark_of_name(class_of(module.title())) };
    ui.painter().rect_filled(bar, 2.0, color);
    text_cell(ui, &Heading(Column::Share), module);
}

/// The class of a module, by which bars are coloured: its name without its number; of a path its last part.
fn class_of(name: &str) -> &str {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_')
}

#[cfg(test)]
mod tests {
    use super::class_of;

    #[test]
    fn modules_of_a_class_have_one_color() {
        assert_eq!(["Linear_16", "Conv2d_0", "blocks.0.up", "blocks.0"].map(class_of), ["Linear", "Conv2d", "up", ""]);
    }
}
