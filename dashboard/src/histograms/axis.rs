//! Grid lines of a card, with labels below and at the right.

use egui::{Align2, FontId, Rect, Stroke, Ui, pos2};
use ui::{
    chart::ticks::Tick,
    theme::{metrics, palette},
};

/// Draws vertical grid lines; `x` returns the position of a value.
pub fn vertical_lines(ui: &Ui, inner: Rect, ticks: &[Tick], x: impl Fn(f64) -> f32) {
    for tick in ticks {
        let x = x(tick.at);
        ui.painter().vline(x, inner.y_range(), Stroke::new(metrics::HAIRLINE, palette(ui).grid));
        label(ui, pos2(x, inner.bottom() + metrics::GAP / 2.0), Align2::CENTER_TOP, tick);
    }
}

/// Draws horizontal grid lines; `y` returns the position of a value.
pub fn horizontal_lines(ui: &Ui, inner: Rect, ticks: &[Tick], y: impl Fn(f64) -> f32) {
    for tick in ticks {
        let y = y(tick.at);
        ui.painter().hline(inner.x_range(), y, Stroke::new(metrics::HAIRLINE, palette(ui).grid));
        label(ui, pos2(inner.right() + metrics::GAP, y), Align2::LEFT_CENTER, tick);
    }
}

fn label(ui: &Ui, at: egui::Pos2, align: Align2, tick: &Tick) {
    let font = FontId::proportional(metrics::TEXT_TICK);
    ui.painter().text(at, align, &tick.label, font, palette(ui).text_weak);
}
