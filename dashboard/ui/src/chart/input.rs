//! Mouse gestures of a chart: drag a box to zoom, Shift or the middle button to move, Ctrl and the wheel to zoom at the
//! pointer, double click to fit. The bare wheel is left to the page.

use super::{Bounds, frame::Frame};
use crate::theme::{metrics, palette};
use egui::{PointerButton, Pos2, Rect, Response, Stroke, StrokeKind, Ui};

/// The command of a gesture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Shows these bounds.
    Show(Bounds),
    /// Fits all data, also data that arrives later.
    Fit,
}

/// Reads this frame's gestures on `response`, which covers the chart, and draws the zoom box being dragged.
pub fn gestures(ui: &Ui, response: &Response, frame: &Frame) -> Option<Command> {
    if response.double_clicked() {
        return Some(Command::Fit);
    }
    let inner = frame.inner;
    let (shift, zoom) = ui.input(|i| (i.modifiers.shift, i.zoom_delta()));
    if let (true, Some(at)) = (zoom != 1.0, response.hover_pos()) {
        let across = f64::from((at.x - inner.left()) / inner.width());
        let up = f64::from((inner.bottom() - at.y) / inner.height());
        return Some(Command::Show(frame.bounds.zoomed([f64::from(zoom); 2], across, up)));
    }
    let is_pan = response.dragged_by(PointerButton::Middle) || (shift && response.dragged_by(PointerButton::Primary));
    if is_pan {
        let delta = response.drag_delta();
        let moved = frame.bounds.moved(f64::from(-delta.x / inner.width()), f64::from(delta.y / inner.height()));
        return Some(Command::Show(moved));
    }
    zoom_box(ui, response, frame, shift)
}

/// Handles the drag of a zoom box and paints the box; returns the bounds to show at its end.
fn zoom_box(ui: &Ui, response: &Response, frame: &Frame, shift: bool) -> Option<Command> {
    let start_id = response.id.with("zoom box");
    if response.drag_started_by(PointerButton::Primary) && !shift {
        let start = ui.input(|i| i.pointer.press_origin())?;
        ui.data_mut(|d| d.insert_temp(start_id, start));
    }
    let start = ui.data(|d| d.get_temp::<Pos2>(start_id))?;
    let pointer = response.interact_pointer_pos().or_else(|| ui.input(|i| i.pointer.latest_pos()))?;
    let mut rect = Rect::from_two_pos(start, pointer).intersect(frame.inner);
    let is_flat = rect.height() < metrics::ZOOM_BOX_MIN;
    if is_flat {
        (rect.min.y, rect.max.y) = (frame.inner.top(), frame.inner.bottom());
    }
    if response.drag_stopped() {
        ui.data_mut(|d| d.remove::<Pos2>(start_id));
        return (rect.width() >= metrics::ZOOM_BOX_MIN).then(|| Command::Show(bounds_of(frame, rect, is_flat)));
    }
    let p = palette(ui);
    let painter = ui.painter_at(frame.inner);
    painter.rect_filled(rect, 0.0, p.selected);
    painter.rect_stroke(rect, 0.0, Stroke::new(metrics::HAIRLINE, p.accent), StrokeKind::Inside);
    None
}

/// The bounds of a zoom box; a flat box zooms only x.
fn bounds_of(frame: &Frame, rect: Rect, is_flat: bool) -> Bounds {
    let inner = frame.inner;
    let plot_x = |x: f32| frame.bounds.x_at(f64::from((x - inner.left()) / inner.width()));
    let plot_y = |y: f32| frame.bounds.y_at(f64::from((inner.bottom() - y) / inner.height()));
    let y = if is_flat { frame.bounds.y } else { [plot_y(rect.bottom()), plot_y(rect.top())] };
    let bounds = Bounds { x: [plot_x(rect.left()), plot_x(rect.right())], y };
    if bounds.is_usable() { bounds } else { frame.bounds }
}
