//! The slices: the picture of all visible rows, and the tooltip of the slice under the pointer.

use super::{FrameContext, Layer, Tooltip};
use crate::timeline::{
    command::Command,
    layout::{Hit, ticks},
    model::{
        cpu_runs::{cpu_run_at, is_scheduling},
        exact,
    },
    raster::{Picture, PictureKey, SourceVersion},
};
use egui::{Painter, Pos2, Ui};
use std::borrow::Cow;
use trace_model::lod::Span;
use trace_model::{SliceRef, TrackId};
use ui::{export, format, theme::metrics};

/// The slices of the visible rows, with their waits.
#[derive(Default)]
pub struct SlicesLayer {
    picture: Picture,
}

impl Layer for SlicesLayer {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let scene = ctx.scene();
        let key = PictureKey {
            source: SourceVersion {
                trace_idx: ctx.content.trace_idx,
                store: scene.store.version(),
                folding: ctx.state.folding.revision(),
            },
            frame: ctx.frame,
            body: ctx.areas.body,
            scroll: ctx.state.scroll,
            color_by: ctx.state.color_by,
            matches: scene.matches.map(|m| std::ptr::from_ref(m) as usize),
            palette: ctx.palette.id(),
            shapes_only: export::has_shapes_request(painter.ctx()),
        };
        self.picture.paint(painter, key, &scene);
    }

    fn tooltip<'a>(&self, ctx: &'a FrameContext<'_>, pos: Pos2) -> Option<Tooltip<'a>> {
        let Hit::Lane { track, lane } = ctx.row_at(pos)? else { return None };
        let Some(slice) = ctx.slice_at(pos, 1.0) else { return cpu_run_tooltip(ctx, track, pos) };
        let time = ctx.frame.scale.time_from_x(pos.x);
        match merged_at(ctx, track, lane, time) {
            Some((span, top)) => Some(Box::new(move |ui| merged_ui(ui, ctx, &span, &top))),
            None => Some(Box::new(move |ui| slice_ui(ui, ctx, &slice))),
        }
    }

    fn click(&self, ctx: &FrameContext<'_>, pos: Pos2) -> Option<Command> {
        let slice = ctx.slice_at(pos, metrics::CLICK_SLACK);
        ctx.areas.body.contains(pos).then(|| Command::Select(slice.map(|s| s.id)))
    }
}

/// The tooltip with the CPU of a thread between two waits for a CPU, where only these waits are recorded.
fn cpu_run_tooltip<'a>(ctx: &'a FrameContext<'_>, track: TrackId, pos: Pos2) -> Option<Tooltip<'a>> {
    let store = ctx.store();
    let track = store.track(track).filter(|track| is_scheduling(store, track))?;
    let (cpu, run) = cpu_run_at(store, track, ctx.frame.scale.time_from_x(pos.x), 1)?;
    Some(Box::new(move |ui| {
        ui.label(format!("Ran on CPU {cpu}"));
        ui.label(exact(run.dur()));
        ui.colored_label(ctx.palette.text_weak, format!("starts at {}", ticks::position(run.start, 1)));
    }))
}

/// The span at `time` that merges several slices, with its top slice.
fn merged_at(ctx: &FrameContext<'_>, track: TrackId, lane: u32, time: i64) -> Option<(Span, SliceRef)> {
    let lane = ctx.store().track(track)?.lanes.get(lane as usize)?;
    let slack = ctx.frame.scale.ns_of_px(1.0);
    let mut spans = Vec::new();
    lane.spans(ctx.frame.view.range(), ctx.frame.width_px(), &mut spans);
    let i = spans.partition_point(|s| s.end <= time - slack);
    let span = spans.get(i).filter(|s| s.start <= time + slack && s.count > 1)?;
    Some((*span, lane.slice(span.top)?))
}

/// Shows the tooltip of several merged slices.
fn merged_ui(ui: &mut Ui, ctx: &FrameContext<'_>, span: &Span, top: &SliceRef) {
    ui.label(format::count_of(u64::from(span.count), "slice"));
    let length = span.end - span.start;
    let share = |ns: i64| format::percent(ns as f64 / length.max(1) as f64);
    let (busy, waiting) = (share(span.busy_ns), share(span.wait_ns));
    let length = format::duration_ns(length);
    ui.label(if span.wait_ns > 0 {
        format!("{busy} busy, {waiting} waiting in {length}")
    } else {
        format!("{busy} busy in {length}")
    });
    let longest = if span.waits || span.wait_ns == 0 { "longest" } else { "longest work" };
    let top_ns = format::duration_ns(top.dur());
    let name = shortened(ctx.store().slice_name(top));
    ui.colored_label(ctx.palette.text_weak, format!("{longest}: {name}, {top_ns}"));
}

fn slice_ui(ui: &mut Ui, ctx: &FrameContext<'_>, slice: &SliceRef) {
    let (store, name) = (ctx.store(), ctx.store().slice_name(slice));
    ui.label(shortened(name).into_owned());
    ui.label(exact(slice.dur()));
    let site = store.sites().get(slice.site as usize).map_or("", |s| &s.name);
    // A slice without a node takes its site's name, which the title shows already.
    let site = if site == name { String::new() } else { format!("{site}, ") };
    ui.colored_label(ctx.palette.text_weak, format!("{site}starts at {}", ticks::position(slice.start, 1)));
}

/// A name shortened for a tooltip.
fn shortened(name: &str) -> Cow<'_, str> {
    format::shortened(name, 200)
}
