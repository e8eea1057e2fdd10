//! What scrolls and tells so: a bar is seen wherever there is more.

use egui::{ScrollArea, Ui, style::ScrollStyle};

/// Scrolls across and down as `directions` say, within `height`. It takes what room its contents need, as far as there is some.
pub fn scroll_area(ui: &mut Ui, directions: [bool; 2], height: f32) -> ScrollArea {
    ui.spacing_mut().scroll = ScrollStyle { foreground_color: true, ..ScrollStyle::thin() };
    ScrollArea::new(directions).max_height(height).min_scrolled_height(height)
}
