//! The times of steps as stacked bars of their parts.

use super::model::{PARTS, Part, StepBar, step_times};
use egui::{Align2, Color32, FontId, Mesh, Rect, Sense, Ui, pos2, vec2};
use ui::{
    format,
    theme::{Palette, metrics, palette},
    widgets::describe,
};

fn color(part: &Part, p: &Palette) -> Color32 {
    part.color_idx.map_or(p.aggregate, |idx| p.mark(idx))
}

/// Shows the bars; returns the index of the step that was clicked.
pub(super) fn chart_ui(ui: &mut Ui, steps: &[StepBar]) -> Option<usize> {
    let p = palette(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), metrics::CARD_CHART_H[0]), Sense::click());
    describe(&response, || summary(steps));
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, f32::from(metrics::RADIUS), p.canvas);
    let inner = Rect::from_min_max(
        rect.min + vec2(metrics::AXIS_LABEL_W, metrics::PAD),
        rect.max - vec2(metrics::PAD, metrics::PAD),
    );
    let max_ns = steps.iter().map(|s| s.times.total_ns()).max().unwrap_or(0).max(1);
    let y = |ns: i64| inner.bottom() - (ns as f64 / max_ns as f64) as f32 * inner.height();
    let font = FontId::proportional(metrics::TEXT_TICK);
    for ns in [0, max_ns / 2, max_ns] {
        painter.hline(inner.x_range(), y(ns), egui::Stroke::new(metrics::HAIRLINE, p.grid));
        let at = pos2(inner.left() - metrics::GAP, y(ns));
        painter.text(at, Align2::RIGHT_CENTER, format::duration_ns(ns), font.clone(), p.text_weak);
    }
    let width = inner.width() / steps.len().max(1) as f32;
    let gap = if width > 4.0 { 1.0 } else { 0.0 };
    let mut mesh = Mesh::default();
    for (i, step) in steps.iter().enumerate() {
        let left = inner.left() + i as f32 * width;
        let mut stacked_ns = 0;
        for part in &PARTS {
            let ns = (part.ns)(&step.times);
            let bar = Rect::from_min_max(pos2(left, y(stacked_ns + ns)), pos2(left + width - gap, y(stacked_ns)));
            mesh.add_colored_rect(bar, color(part, p));
            stacked_ns += ns;
        }
    }
    painter.add(mesh);
    let hovered_idx =
        response.hover_pos().filter(|at| inner.contains(*at)).map(|at| ((at.x - inner.left()) / width) as usize);
    let hovered_idx = hovered_idx.filter(|i| *i < steps.len());
    if let Some(i) = hovered_idx {
        let left = inner.left() + i as f32 * width;
        let bar = Rect::from_min_max(pos2(left, inner.top()), pos2(left + width, inner.bottom()));
        painter.rect_stroke(bar, 0.0, egui::Stroke::new(metrics::HAIRLINE, p.highlight), egui::StrokeKind::Outside);
        let step = &steps[i];
        response.clone().on_hover_ui_at_pointer(|ui| {
            ui.label(format!("{}: {}", step.name, format::duration_ns(step.times.total_ns())));
            for (name, ns) in PARTS.iter().map(|part| (part.name, (part.ns)(&step.times))).filter(|part| part.1 > 0) {
                let share = format::percent(ns as f64 / step.times.total_ns().max(1) as f64);
                ui.label(format!("{name}: {} ({share})", format::duration_ns(ns)));
            }
            ui.weak("click: show in Timeline");
        });
    }
    hovered_idx.filter(|_| response.clicked())
}

/// Returns the chart in one sentence.
pub(super) fn summary(steps: &[StepBar]) -> String {
    let Some((mean, median)) = step_times(steps) else { return "Step times: no steps".to_owned() };
    let parts: Vec<String> =
        shares(steps).filter(|(_, share)| *share > 0.0).map(|(part, share)| part_text(part, share)).collect();
    let n = format::count_of(steps.len() as u64, "step");
    let (mean, median) = (format::duration_ns(mean), format::duration_ns(median));
    format!("Step times: {n}, mean {mean}, median {median}: {}", parts.join(", "))
}

/// Returns the share of each part in the time of all steps.
fn shares(steps: &[StepBar]) -> impl Iterator<Item = (&'static Part, f64)> {
    let total_ns: i64 = steps.iter().map(|s| s.times.total_ns()).sum();
    PARTS.iter().map(move |part| {
        let ns: i64 = steps.iter().map(|s| (part.ns)(&s.times)).sum();
        (part, ns as f64 / total_ns.max(1) as f64)
    })
}

fn part_text(part: &Part, share: f64) -> String {
    format!("{} {}", part.name, format::percent(share))
}

/// Shows the legend of the parts, each with its share of all steps' time.
pub(super) fn legend_ui(ui: &mut Ui, steps: &[StepBar]) {
    let p = palette(ui);
    ui.horizontal_wrapped(|ui| {
        for (part, share) in shares(steps) {
            let (swatch, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::ROW_H), Sense::hover());
            let square = Rect::from_center_size(swatch.center(), vec2(metrics::SWATCH, metrics::SWATCH));
            ui.painter().rect_filled(square, 2.0, color(part, p));
            ui.label(part_text(part, share));
        }
    });
}
