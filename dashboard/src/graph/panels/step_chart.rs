//! The time of the selected item in each step, as bars.

use crate::graph::analysis::{StepCost, step_summary};
use egui::{Mesh, Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use ui::{
    format,
    theme::{metrics, palette},
    widgets::describe,
};

/// Shows the bars; returns the step that was clicked.
pub(super) fn chart_ui<'a>(ui: &mut Ui, steps: &'a [StepCost]) -> Option<&'a StepCost> {
    let p = palette(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), metrics::graph::STEPS_H), Sense::click());
    describe(&response, || step_summary(steps));
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, f32::from(metrics::RADIUS), p.canvas);
    let max_ns = steps.iter().map(|s| s.total_ns).max().unwrap_or(0).max(1);
    let width = rect.width() / steps.len().max(1) as f32;
    let bar = |i: usize, share: f64| {
        let (left, top) = (rect.left() + i as f32 * width, rect.bottom() - rect.height() * share as f32);
        Rect::from_min_max(pos2(left, top), pos2(left + width, rect.bottom()))
    };
    let mut mesh = Mesh::default();
    for (i, step) in steps.iter().enumerate() {
        mesh.add_colored_rect(bar(i, step.total_ns as f64 / max_ns as f64), p.series(0));
    }
    painter.add(mesh);
    let hovered_idx = response.hover_pos().map(|at| ((at.x - rect.left()) / width) as usize);
    let (i, step) = hovered_idx.and_then(|i| Some((i, steps.get(i)?)))?;
    painter.rect_stroke(bar(i, 1.0), 0.0, Stroke::new(metrics::HAIRLINE, p.highlight), StrokeKind::Inside);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(format!("{}: {}", step.name, format::duration_ns(step.total_ns)));
        ui.weak("Click to show in Timeline");
    });
    response.clicked().then_some(step)
}
