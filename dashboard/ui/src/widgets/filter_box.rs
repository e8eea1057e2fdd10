//! A text field with a regular expression.

use crate::{filter::Filter, theme::palette};
use egui::{Response, TextEdit, Ui};

/// Shows a field that edits `filter`. `name`: its accessible name (`Filter runs`). An invalid expression turns red; the
/// tooltip has its error.
pub fn filter_box(ui: &mut Ui, filter: &mut Filter, name: &str, width: f32) -> Response {
    let mut text = filter.text().to_owned();
    let mut field = TextEdit::singleline(&mut text).hint_text(name).desired_width(width);
    if filter.error().is_some() {
        field = field.text_color(palette(ui).error);
    }
    let response = ui.add(field);
    response.widget_info(|| egui::WidgetInfo {
        current_text_value: Some(filter.text().to_owned()),
        ..egui::WidgetInfo::labeled(egui::Role::TextInput, true, name)
    });
    filter.set(&text);
    match filter.error() {
        Some(error) => response.on_hover_text(format!("Not a regular expression, taken literally: {error}")),
        None => response,
    }
}
