//! An animation while work is under way, of four frames per second: a smooth one would take a core without a GPU.

use super::named;
use crate::theme::{metrics, mix, palette};
use egui::{Response, Role, Sense, Ui, Vec2};
use std::time::Duration;

/// Time between frames of the animation.
const FRAME_INTERVAL: Duration = Duration::from_millis(250);
const N_DOTS: u32 = 4;

/// Shows dots that are highlighted in turn.
pub fn busy(ui: &mut Ui) -> Response {
    let (rect, response) = ui.allocate_exact_size(Vec2::splat(metrics::ROW_H), Sense::hover());
    named(&response, Role::ProgressIndicator, "Working");
    let p = palette(ui);
    let highlighted_dot = (ui.input(|i| i.time) / FRAME_INTERVAL.as_secs_f64()) as u64 % u64::from(N_DOTS);
    for dot in 0..N_DOTS {
        let angle = std::f32::consts::TAU * dot as f32 / N_DOTS as f32;
        let center = rect.center() + Vec2::angled(angle) * rect.height() * 0.25;
        let color = if u64::from(dot) == highlighted_dot { p.accent } else { mix(p.panel, p.aggregate, 0.6) };
        ui.painter().circle_filled(center, metrics::ROW_H * 0.1, color);
    }
    ui.ctx().request_repaint_after(FRAME_INTERVAL);
    response
}
