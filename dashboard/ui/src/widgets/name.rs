//! Names and roles for assistive technology (AccessKit), and for window tests, which read the same tree.

use egui::{Response, Role, WidgetInfo};

/// Gives a custom-painted control a role and a name.
pub fn named(response: &Response, role: Role, label: &str) {
    response.widget_info(|| WidgetInfo::labeled(role, response.enabled(), label));
}

/// Gives a chart or picture a description: `loss: 2 runs, last 0.0312 at step 1,200`. The text is built only while
/// somebody reads the tree.
pub fn describe(response: &Response, text: impl Fn() -> String) {
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, text()));
}
