//! The range of steps on a chart: a band whose edges can be dragged. Alt + drag makes a new one.

use super::range::Steps;
use egui::{CursorIcon, Rect, Response, Stroke, Ui, pos2};
use ui::{
    chart::frame::Frame,
    theme::{metrics, palette},
};

/// The part of the band that is dragged.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Grip {
    /// An end of the range; the other end stays.
    End(usize),
    /// A new range that begins at this step.
    From(i64),
}

/// Paints the band and handles drags of it. Returns whether the pointer is busy with the band, so that other gestures
/// must not react.
pub fn ui(ui: &Ui, response: &Response, frame: &Frame, steps: &mut Steps) -> bool {
    let id = response.id.with("range");
    let inner = frame.inner;
    let x = steps.map(|step| frame.x(step as f64).clamp(inner.left(), inner.right()));
    let p = palette(ui);
    let painter = ui.painter_at(inner);
    painter.rect_filled(Rect::from_x_y_ranges(x[0]..=x[1], inner.y_range()), 0.0, p.selected);
    for x in x {
        painter.vline(x, inner.y_range(), Stroke::new(metrics::HAIRLINE, p.accent));
    }
    let near = |at: egui::Pos2| (0..2).find(|&i| (x[i] - at.x).abs() <= metrics::CLICK_SLACK);
    let step_at = |at: egui::Pos2| {
        let across = f64::from((at.x - inner.left()) / inner.width()).clamp(0.0, 1.0);
        frame.bounds.x_at(across).round() as i64
    };
    let grip: Option<Grip> = ui.data(|d| d.get_temp(id)).flatten();
    if response.drag_started()
        && let Some(origin) = ui.input(|i| i.pointer.press_origin())
    {
        let is_new = ui.input(|i| i.modifiers.alt);
        let grip = if is_new { Some(Grip::From(step_at(origin))) } else { near(origin).map(Grip::End) };
        ui.data_mut(|d| d.insert_temp(id, grip));
        return grip.is_some();
    }
    let Some(grip) = grip else {
        let is_near = response.hover_pos().and_then(near).is_some();
        if is_near {
            ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
        }
        return is_near;
    };
    if let Some(at) = response.interact_pointer_pos() {
        let fixed = match grip {
            Grip::End(i) => steps[1 - i],
            Grip::From(step) => step,
        };
        let moved = step_at(pos2(at.x, at.y));
        *steps = [fixed.min(moved), fixed.max(moved)];
        if let Grip::End(_) = grip {
            let end = usize::from(steps[1] == moved && steps[0] != moved);
            ui.data_mut(|d| d.insert_temp(id, Some(Grip::End(end))));
        }
    }
    if response.drag_stopped() {
        ui.data_mut(|d| d.insert_temp(id, None::<Grip>));
    }
    true
}
