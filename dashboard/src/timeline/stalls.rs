//! Stalls in place: a band where a worker ran nothing, its cause in words, an arrow from what is to blame.

use super::{
    paint::{self, Marks},
    picture::{fitted, label_font},
    state::{ColorBy, Command},
};
use crate::{
    format,
    theme::{Palette, metrics, mix, palette},
    widgets::with_names,
};
use egui::{Align2, Color32, Painter, Pos2, Rect, RichText, Stroke, Ui, pos2};
use profiler::{Cause, Stall, Store};

/// Whether somebody is to blame; else there simply was no work for this worker.
fn is_lost(cause: Cause) -> bool {
    !matches!(cause, Cause::NothingReady | Cause::StepBegin | Cause::StepEnd)
}

fn color(cause: Cause, p: &Palette) -> Color32 {
    if is_lost(cause) { p.error } else { mix(p.stripe, p.warning, 0.7) }
}

fn band(stall: &Stall, marks: &Marks<'_>) -> Option<Rect> {
    let view = marks.frame.view;
    if stall.end <= view.start || stall.start >= view.end {
        return None;
    }
    let rect = marks.work(stall.track.0, &(stall.start..stall.end))?;
    (rect.width() >= metrics::STALL_MIN_W).then_some(rect)
}

/// Draws the bands of the stalls that are wide enough to be seen.
pub fn bands(painter: &Painter, stalls: &[Stall], marks: &Marks<'_>, by: ColorBy, p: &Palette) {
    let mut mesh = egui::Mesh::default();
    let mut labels = Vec::new();
    for stall in stalls {
        let Some(rect) = band(stall, marks) else { continue };
        let (color, strength) = match by {
            ColorBy::Cause => (p.vivid_mark_of_name(stall.cause.name()), 0.6),
            _ => (color(stall.cause, p), if is_lost(stall.cause) { 0.28 } else { 0.14 }),
        };
        mesh.add_colored_rect(rect, color.gamma_multiply(strength));
        let line = Rect::from_min_max(rect.min, pos2(rect.right(), rect.top() + 2.0));
        mesh.add_colored_rect(line, color);
        if rect.width() >= 1.5 * metrics::LABEL_MIN_W {
            labels.push((rect, stall.cause.to_string()));
        }
    }
    painter.add(mesh);
    for (rect, text) in labels {
        if let Some(text) = fitted(painter, &text, rect.width() - 2.0 * metrics::GAP) {
            let at = pos2(rect.left() + metrics::GAP, rect.center().y);
            painter.text(at, Align2::LEFT_CENTER, text, label_font(), p.text);
        }
    }
}

/// The stall whose band is under the pointer; the shortest, where bands overlap.
pub fn under<'a>(stalls: &'a [Stall], pos: Pos2, marks: &Marks<'_>) -> Option<&'a Stall> {
    stalls.iter().rev().find(|s| band(s, marks).is_some_and(|rect| rect.contains(pos)))
}

/// Draws the arrow from the culprit to the end of the stall, and outlines both.
pub fn blame(painter: &Painter, store: &Store, stall: &Stall, marks: &Marks<'_>, p: &Palette) {
    let color = color(stall.cause, p);
    let Some(rect) = marks.work(stall.track.0, &(stall.start..stall.end)) else { return };
    painter.rect_stroke(rect, 1.0, Stroke::new(metrics::LINE, color), egui::StrokeKind::Outside);
    let culprit = stall.culprit.and_then(|id| store.slice(id));
    let Some(from) = culprit.and_then(|slice| marks.slice(&slice)) else { return };
    painter.rect_stroke(from, 1.0, Stroke::new(metrics::LINE, color), egui::StrokeKind::Outside);
    paint::arrow(painter, from.right_center(), rect.right_center(), color);
}

/// What the pointer over a band says.
pub fn tip(ui: &mut Ui, store: &Store, stall: &Stall) {
    let p = palette(ui);
    ui.set_max_width(ui.spacing().tooltip_width);
    let text = with_names(&stall.text(store), metrics::TEXT, p.text_strong);
    ui.add(egui::Label::new(text).wrap_mode(egui::TextWrapMode::Extend));
    ui.colored_label(p.text_weak, format!("stall: {}, {}", stall.cause, super::facts::exact(stall.dur())));
}

/// The selected stall in words, with where it leads.
pub fn details_ui(ui: &mut Ui, store: &Store, stall: &Stall) -> Vec<Command> {
    let mut out = Vec::new();
    let p = palette(ui);
    ui.label(with_names(&stall.text(store), metrics::TEXT_TITLE, p.text_strong));
    egui::Grid::new("stall facts").num_columns(2).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
        let name = |ui: &mut Ui, text: &str| ui.label(RichText::new(text).color(p.text_weak));
        name(ui, "Cause");
        ui.label(stall.cause.to_string());
        ui.end_row();
        name(ui, "Duration");
        ui.label(super::facts::exact(stall.dur()));
        ui.end_row();
        name(ui, "Start");
        ui.label(super::facts::exact(stall.start));
        ui.end_row();
        for (what, id) in [("Culprit", stall.culprit), ("Ran after it", stall.blocked)] {
            let Some(slice) = id.and_then(|id| store.slice(id)) else { continue };
            name(ui, what);
            if ui.link(store.slice_name(&slice)).on_hover_text("Go to that slice").clicked() {
                out.push(Command::Reveal(slice.id));
            }
            ui.end_row();
        }
    });
    out
}

/// The longest stalls as a list; gives back the one that was clicked.
pub fn list_ui<'a>(ui: &mut Ui, store: &Store, stalls: &'a [Stall], most: usize) -> Option<&'a Stall> {
    let p = palette(ui);
    let mut clicked = None;
    for stall in stalls.iter().take(most) {
        ui.horizontal(|ui| {
            let (dot, _) = ui.allocate_exact_size(egui::Vec2::splat(metrics::SWATCH), egui::Sense::hover());
            ui.painter().rect_filled(dot, 2.0, color(stall.cause, p));
            ui.label(format::duration_ns(stall.dur()));
            // What does not fit is in the tooltip.
            ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Truncate);
            let text = stall.text(store);
            let link = ui.add(egui::Link::new(with_names(&text, metrics::TEXT, ui.visuals().hyperlink_color)));
            let hint = with_names(&format!("{text}\nClick: show in Timeline"), metrics::TEXT, p.text);
            if link.on_hover_text(hint).clicked() {
                clicked = Some(stall);
            }
        });
    }
    clicked
}
