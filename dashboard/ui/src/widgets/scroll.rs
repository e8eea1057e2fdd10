//! Scroll areas with a visible bar wherever the contents are larger.

use egui::{ScrollArea, Ui, style::ScrollStyle};

/// A scroll area that scrolls in these directions (across, down), is at most `height` high and shrinks to its
/// contents.
pub fn scroll_area(ui: &mut Ui, directions: [bool; 2], height: f32) -> ScrollArea {
    // A thin bar in the colour of text: visible, but not prominent until the pointer reaches it.
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
