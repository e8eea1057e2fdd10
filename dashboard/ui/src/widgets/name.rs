//! Names and roles for assistive technology (AccessKit) and for the window tests that read the same tree.

use egui::{Response, Role, WidgetInfo};

/// Gives a control that paints itself a role and a name.
pub fn named(response: &Response, role: Role, label: &str) {
    response.widget_info(|| WidgetInfo::labeled(role, response.enabled(), label));
}

/// Gives a chart or picture a text that says what it shows: `loss: 2 runs, last 0.0312 at step 1,200`.
/// The text is built only while somebody reads the tree.
pub fn describe(response: &Response, text: impl Fn() -> String) {
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, text()));
}
