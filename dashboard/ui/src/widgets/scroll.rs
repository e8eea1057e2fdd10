//! Scrolling areas whose bar is seen wherever there is more.

use egui::{ScrollArea, Ui, style::ScrollStyle};

/// Scrolls across and down as `directions` say, within `height`. It takes what room its contents need, as far as there is some.
pub fn scroll_area(ui: &mut Ui, directions: [bool; 2], height: f32) -> ScrollArea {
    // Thin, and of the colour of letters: seen, and no more than that until the pointer comes.
    ui.spacing_mut().scroll = ScrollStyle {
        foreground_color: true,
        dormant_background_opacity: 0.0,
        dormant_handle_opacity: 0.4,
        active_background_opacity: 0.0,
        active_handle_opacity: 0.5,
        ..ScrollStyle::thin()
    };
    ScrollArea::new(directions).max_height(height).min_scrolled_height(height)
}
