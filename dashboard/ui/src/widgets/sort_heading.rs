//! A table's heading that sorts by its column.

use super::named;
use crate::theme::{metrics, palette};
use egui::{Align, Layout, Sense, Ui, vec2};

/// Which column a table is sorted by, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sorting<C> {
    /// The column.
    pub column: C,
    /// The greatest first.
    pub descending: bool,
}

impl<C: PartialEq> Sorting<C> {
    /// After a click on the heading of `column`: that one, or the other way around. `begins_descending` for figures.
    pub fn click(&mut self, column: C, begins_descending: bool) {
        if self.column == column {
            self.descending ^= true;
        } else {
            *self = Self { column, descending: begins_descending };
        }
    }
}

/// A heading; whether it was clicked. `sorted`: by this column, and whether the greatest come first.
pub fn sort_heading(ui: &mut Ui, title: &str, help: &str, is_text: bool, sorted: Option<bool>) -> bool {
    aligned_cell(ui, is_text, |ui| {
        if let Some(descending) = sorted {
            sort_mark(ui, descending);
        }
        let button = egui::Button::new(title).frame(false).selected(sorted.is_some()).truncate();
        let response = ui.add(button).on_hover_text(help);
        let how = match sorted {
            None => "",
            Some(true) => ", sorted, highest first",
            Some(false) => ", sorted, lowest first",
        };
        named(&response, egui::Role::Button, &format!("Sort by {title}{how}"));
        response.clicked()
    })
}

/// What is in a table's cell: words at its left, figures at its right. (A cell whose own layout is from the right
/// takes clicks beyond its left edge.)
pub fn aligned_cell<R>(ui: &mut Ui, is_text: bool, contents: impl FnOnce(&mut Ui) -> R) -> R {
    let layout = if is_text { Layout::left_to_right(Align::Center) } else { Layout::right_to_left(Align::Center) };
    ui.with_layout(layout, contents).inner
}

/// A triangle that points the way the column grows.
fn sort_mark(ui: &mut Ui, descending: bool) {
    let (rect, _) = ui.allocate_exact_size(vec2(metrics::PAD, metrics::PAD), Sense::hover());
    let (c, r) = (rect.center(), metrics::GAP * 0.75);
    let dy = if descending { r } else { -r };
    let points = vec![c + vec2(-r, -dy * 0.6), c + vec2(r, -dy * 0.6), c + vec2(0.0, dy)];
    ui.painter().add(egui::Shape::convex_polygon(points, palette(ui).text_weak, egui::Stroke::NONE));
}
