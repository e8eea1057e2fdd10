//! A table heading that sorts by its column.

use super::named;
use crate::theme::{metrics, palette};
use egui::{Align, Layout, Sense, Ui, vec2};

/// The column by which a table is sorted, and the direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortOrder<C> {
    /// The column by which the rows are sorted.
    pub column: C,
    /// Whether the greatest value comes first.
    pub descending: bool,
}

impl<C: PartialEq> SortOrder<C> {
    /// Handles a click on the heading of `column`: sorts by it, or reverses the order. `begins_descending`: the first
    /// order, as for figures.
    pub fn click(&mut self, column: C, begins_descending: bool) {
        if self.column == column {
            self.descending ^= true;
        } else {
            *self = Self { column, descending: begins_descending };
        }
    }
}

/// Shows a heading; returns whether it was clicked. `sorted`: whether the rows descend, if they are sorted by this
/// column.
pub fn sort_heading(ui: &mut Ui, title: &str, help: &str, is_text: bool, sorted: Option<bool>) -> bool {
    aligned_cell(ui, is_text, |ui| {
        if let Some(descending) = sorted {
            sort_mark(ui, descending);
        }
        let button = egui::Button::new(title).frame(false).selected(sorted.is_some()).truncate();
        let response = ui.add(button).on_hover_text(help);
        let direction = match sorted {
            None => "",
            Some(true) => ", sorted, highest first",
            Some(false) => ", sorted, lowest first",
        };
        named(&response, egui::Role::Button, &format!("Sort by {title}{direction}"));
        response.clicked()
    })
}

/// Shows the contents of a cell: words at the left, figures at the right. (A cell with a right-to-left layout would
/// also take clicks beyond its left edge.)
pub fn aligned_cell<R>(ui: &mut Ui, is_text: bool, contents: impl FnOnce(&mut Ui) -> R) -> R {
    let layout = if is_text { Layout::left_to_right(Align::Center) } else { Layout::right_to_left(Align::Center) };
    ui.with_layout(layout, contents).inner
}

/// Paints a triangle that points in the direction in which the column increases.
fn sort_mark(ui: &mut Ui, descending: bool) {
    let (rect, _) = ui.allocate_exact_size(vec2(metrics::PAD, metrics::PAD), Sense::hover());
    let (center, radius) = (rect.center(), metrics::GAP * 0.75);
    let dy = if descending { radius } else { -radius };
    let points = vec![center + vec2(-radius, -dy * 0.6), center + vec2(radius, -dy * 0.6), center + vec2(0.0, dy)];
    ui.painter().add(egui::Shape::convex_polygon(points, palette(ui).text_weak, egui::Stroke::NONE));
}
