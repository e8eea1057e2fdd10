//! The track labels: names of processes, tracks and counters, how busy each track is, and the triangles that fold them.

use super::FrameContext;
use crate::timeline::{command::Command, model::Row};
use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Response, Role, Sense, Shape, Stroke, Ui, Vec2, pos2, vec2};
use trace_analysis::stats::TrackUse;
use trace_store::Track;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{named, text_elided},
};

/// Size of the bar below a track's percentage.
const BUSY_BAR: Vec2 = vec2(44.0, 2.0);

/// Shows the labels of the visible rows; returns the commands of clicks.
pub fn track_labels_ui(ui: &mut Ui, ctx: &FrameContext<'_>) -> Vec<Command> {
    let (area, top, store) = (ctx.areas.labels, ctx.top(), ctx.store());
    let track_uses = ctx.content.findings.map_or(&[][..], |f| &f.track_use);
    let mut out = Vec::new();
    let mut labels_ui = ui.new_child(egui::UiBuilder::new().max_rect(area));
    labels_ui.set_clip_rect(area.intersect(ui.clip_rect()));
    for (row, position) in ctx.layout.iter(ctx.visible_rows.clone()) {
        let rect = Rect::from_min_size(pos2(area.left(), top + position.top), vec2(area.width(), position.height));
        match row {
            Row::Process { process, title, n_tracks, folded } => {
                let description = format!("{title}, {}", format::count_of(*n_tracks as u64, "track"));
                let response = heading(&mut labels_ui, rect, title, *folded, &description);
                if response.clicked() {
                    out.push(Command::ToggleProcess(*process));
                }
            }
            Row::Pins => plain_heading(&labels_ui, rect, "Pinned"),
            Row::Host { host, n_processes, folded } => {
                let description =
                    format!("host {host}, {}", format::count_of_irregular(*n_processes as u64, "process", "processes"));
                if heading(&mut labels_ui, rect, host, *folded, &description).clicked() {
                    out.push(Command::ToggleHost(host.clone()));
                }
            }
            Row::Track { track, folded, foldable, pinned, .. } => {
                let Some(info) = store.track(*track) else { continue };
                let track_use = track_uses.iter().find(|u| u.track == *track);
                let response =
                    track_name(&mut labels_ui, rect, position.lane_h, info, track_use, foldable.then_some(*folded));
                if response.clicked() && *foldable {
                    out.push(Command::ToggleTrack(track.0));
                }
                let entries = menu_entries(track.0, *foldable, *folded, *pinned);
                response.context_menu(|ui| {
                    for (text, command) in &entries {
                        if ui.button(*text).clicked() {
                            out.push(command.clone());
                            ui.close();
                        }
                    }
                });
            }
            Row::Counter { title, .. } => counter_name(&labels_ui, rect, title),
        }
    }
    out
}

/// The entries of a track's menu.
fn menu_entries(track: u32, foldable: bool, folded: bool, pinned: bool) -> Vec<(&'static str, Command)> {
    let fold = foldable.then_some((if folded { "Unfold" } else { "Fold" }, Command::ToggleTrack(track)));
    let fixed = [
        (if pinned { "Unpin" } else { "Pin to the top" }, Command::TogglePin(track)),
        ("Move up", Command::MoveTrack { track, up: true }),
        ("Move down", Command::MoveTrack { track, up: false }),
        ("Taller lanes", Command::ResizeTrack { track, taller: true }),
        ("Shorter lanes", Command::ResizeTrack { track, taller: false }),
        ("Hide track", Command::HideTrack(track)),
    ];
    fold.into_iter().chain(fixed).collect()
}

/// Paints a heading that cannot be folded.
fn plain_heading(ui: &Ui, rect: Rect, title: &str) {
    let p = palette(ui);
    let font = FontId::proportional(metrics::TEXT);
    let pos = pos2(rect.left() + metrics::GAP_WIDE + metrics::PAD, rect.center().y);
    ui.painter().text(pos, Align2::LEFT_CENTER, title, font, p.text_strong);
}

/// Paints the triangle that shows whether a row is folded, around `pos`.
fn fold_marker(painter: &Painter, pos: Pos2, folded: bool, color: Color32) {
    let radius = metrics::GAP;
    let points = if folded {
        vec![pos + vec2(-radius * 0.6, -radius), pos + vec2(radius, 0.0), pos + vec2(-radius * 0.6, radius)]
    } else {
        vec![pos + vec2(-radius, -radius * 0.6), pos + vec2(radius, -radius * 0.6), pos + vec2(0.0, radius)]
    };
    painter.add(Shape::convex_polygon(points, color, Stroke::NONE));
}

/// Shows a heading that folds on a click.
fn heading(ui: &mut Ui, rect: Rect, title: &str, folded: bool, description: &str) -> Response {
    let p = palette(ui);
    let id = ui.scope_id().with(("process", title));
    let response = ui.interact(rect, id, Sense::click());
    named(&response, Role::Button, &format!("{description}, {}", if folded { "folded" } else { "unfolded" }));
    if response.hovered() {
        ui.painter().rect_filled(rect, 0.0, p.hovered);
    }
    let font = FontId::proportional(metrics::TEXT);
    let pos = pos2(rect.left() + metrics::GAP_WIDE, rect.center().y);
    fold_marker(ui.painter(), pos, folded, p.text_weak);
    let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
    painter.text(pos + vec2(metrics::PAD, 0.0), Align2::LEFT_CENTER, title, font, p.text_strong);
    response.on_hover_text(description)
}

/// Shows a track's name with a bar and the percentage of its busy time in the view. `folded`: `None` where the track
/// has a single lane.
fn track_name(
    ui: &mut Ui,
    rect: Rect,
    lane_h: f32,
    track: &Track,
    track_use: Option<&TrackUse>,
    folded: Option<bool>,
) -> Response {
    let p = palette(ui);
    let id = ui.scope_id().with(("track", track.id));
    let response = ui.interact(rect, id, Sense::click());
    let busy = track_use.map(|u| format::percent(u.utilisation));
    let fold_text = folded.map_or("", |f| if f { ", folded" } else { ", unfolded" });
    let dropped_text =
        if track.dropped > 0 { format!(", {} events dropped", format::count(track.dropped)) } else { String::new() };
    let busy_text = busy.as_ref().map(|b| format!(", {b} busy")).unwrap_or_default();
    named(&response, Role::Button, &format!("Track {}{busy_text}{dropped_text}{fold_text}", track.name));
    if response.hovered() && folded.is_some() {
        ui.painter().rect_filled(rect, 0.0, p.hovered);
    }
    let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
    let middle = rect.top() + lane_h / 2.0;
    let left = rect.left() + metrics::GAP_WIDE;
    if let Some(folded) = folded {
        fold_marker(&painter, pos2(left + metrics::GAP, middle), folded, p.text_weak);
    }
    let right = rect.right() - metrics::PAD;
    let name_right = if track_use.is_some() { right - metrics::USE_W } else { right };
    let row = Rect::from_min_size(rect.min, vec2(rect.width(), lane_h));
    text_elided(
        ui,
        &track.name,
        row.intersect(Rect::everything_right_of(left + metrics::GAP_WIDE))
            .intersect(Rect::everything_left_of(name_right)),
        p.text,
    );
    if let (Some(u), Some(busy)) = (track_use, busy) {
        let font = FontId::proportional(metrics::TEXT_SMALL);
        painter.text(pos2(right, middle), Align2::RIGHT_CENTER, busy, font, p.text_weak);
        let bar = Rect::from_min_size(pos2(right, rect.top() + lane_h) - BUSY_BAR, BUSY_BAR);
        painter.rect_filled(bar, 0.0, p.border);
        let busy_size = vec2(bar.width() * u.utilisation.clamp(0.0, 1.0) as f32, bar.height());
        painter.rect_filled(Rect::from_min_size(bar.min, busy_size), 0.0, p.accent);
    }
    if track.dropped > 0 {
        let font = FontId::proportional(metrics::TEXT_SMALL);
        let text = format!("{} dropped", format::count(track.dropped));
        painter.text(pos2(left + metrics::GAP_WIDE, middle + lane_h), Align2::LEFT_CENTER, text, font, p.warning);
    }
    let tid = track.tid;
    response.on_hover_ui(|ui| {
        ui.weak("Click: fold; right-click: pin, move, height, hide");
        ui.label(if tid > 0 { format!("{} (thread {tid})", track.name) } else { track.name.clone() });
        ui.label(format::count_of(track.n_slices() as u64, "slice"));
        if let Some(u) = track_use {
            let (busy, wait) = (format::duration_ns(u.busy_ns), format::duration_ns(u.wait_ns));
            ui.label(format!("in view: {busy} in ops, {wait} waiting"));
        }
        if track.overlapped > 0 {
            ui.label(format!(
                "{} overlap others and have a lane of their own",
                format::count_of(track.overlapped, "slice")
            ));
        }
        if track.dropped > 0 {
            ui.label(format!("{} not recorded: its buffer was full", format::count_of(track.dropped, "event")));
        }
    })
}

fn counter_name(ui: &Ui, rect: Rect, title: &str) {
    let p = palette(ui);
    let row = Rect::from_min_size(rect.min, vec2(rect.width(), metrics::LANE_H));
    let text_rect = Rect::from_min_max(row.min + vec2(2.0 * metrics::GAP_WIDE, 0.0), row.max - vec2(metrics::PAD, 0.0));
    text_elided(ui, title, text_rect, p.text);
}
