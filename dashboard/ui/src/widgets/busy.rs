//! An animation while work is under way. It costs next to nothing: a smooth one of 60 frames per second would take a
//! core without a GPU.

use super::named;
use crate::theme::{metrics, mix, palette};
use egui::{Response, Role, Sense, Ui, Vec2};
use std::time::Duration;

/// Time between frames of the animation.
const EVERY: Duration = Duration::from_millis(250);
const DOTS: u32 = 4;

/// Shows dots that are highlighted in turn.
pub fn busy(ui: &mut Ui) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(metrics::ROW_H), Sense::hover());
    named(&response, Role::ProgressIndicator, "Working");
    let p = palette(ui);
    let turn = (ui.input(|i| i.time) / EVERY.as_secs_f64()) as u64 % u64::from(DOTS);
    for dot in 0..DOTS {
        let angle = std::f32::consts::TAU * dot as f32 / DOTS as f32;
        let at = rect.center() + Vec2::angled(angle) * rect.height() * 0.25;
        let color = if u64::from(dot) == turn { p.accent } else { mix(p.panel, p.aggregate, 0.6) };
        ui.painter().circle_filled(at, metrics::ROW_H * 0.1, color);
    }
    ui.ctx().request_repaint_after(EVERY);
    response
}
