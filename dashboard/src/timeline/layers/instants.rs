//! Instants: small marks at the top of their track's outermost lane.

use super::{FrameContext, Layer, Tooltip};
use crate::timeline::{
    layout::{Hit, ticks},
    model::Row,
};
use egui::{Mesh, Painter, Pos2, pos2};
use std::ops::Range;
use trace_model::{Category, InstantEvent};
use trace_store::{Store, Track};
use ui::theme::metrics;

/// The instants of a track in a time range.
fn instants_in<'a>(track: &'a Track, range: &Range<i64>) -> &'a [InstantEvent] {
    let from = track.instants.partition_point(|i| i.time < range.start);
    let to = track.instants.partition_point(|i| i.time < range.end);
    &track.instants[from..to.max(from)]
}

/// Whether an instant has a mark: stamps of transfers are arrows instead, and a node's finite values are no event.
fn is_shown(store: &Store, instant: &InstantEvent) -> bool {
    store.sites().get(instant.site as usize).is_none_or(|s| match s.category {
        Category::Transfer | Category::RemoteTransfer => false,
        Category::Numerics => instant.arg != 0,
        _ => true,
    })
}

/// The instants of the visible tracks, at most one mark per physical pixel.
pub struct Instants;

impl Layer for Instants {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let frame = &ctx.frame;
        let pixel_ns = frame.scale.ns_of_px(1.0 / frame.pixels_per_point).max(1);
        let mut mesh = Mesh::default();
        for (row, position) in ctx.layout.iter(ctx.visible_rows.clone()) {
            let Row::Track { track, .. } = row else { continue };
            let Some(track_data) = ctx.store().track(*track) else { continue };
            let y = ctx.top() + position.top;
            let mut next_time = i64::MIN;
            for instant in instants_in(track_data, &frame.view.range()) {
                if instant.time < next_time || !is_shown(ctx.store(), instant) {
                    continue;
                }
                next_time = instant.time.saturating_add(pixel_ns);
                let x = frame.scale.x_from_time(instant.time);
                let first = mesh.vertices.len() as u32;
                for corner in [pos2(x - metrics::MARK, y), pos2(x + metrics::MARK, y), pos2(x, y + 1.5 * metrics::MARK)]
                {
                    mesh.colored_vertex(corner, ctx.palette.highlight);
                }
                mesh.add_triangle(first, first + 1, first + 2);
            }
        }
        painter.add(mesh);
    }

    fn tooltip<'a>(&self, ctx: &'a FrameContext<'_>, pos: Pos2) -> Option<Tooltip<'a>> {
        let instant = instant_at(ctx, pos)?;
        let site = ctx.store().sites().get(instant.site as usize);
        Some(Box::new(move |ui| {
            ui.label(site.map_or("?", |s| &s.name));
            let category = site.map_or("", |s| &s.category_name);
            let text = format!("{category} at {}", ticks::position(instant.time, 1));
            ui.colored_label(ctx.palette.text_weak, text);
        }))
    }
}

/// The instant whose mark is at a point.
fn instant_at<'a>(ctx: &FrameContext<'a>, pos: Pos2) -> Option<&'a InstantEvent> {
    let Hit::Lane { track, .. } = ctx.row_at(pos)? else { return None };
    let (store, scale) = (ctx.store(), &ctx.frame.scale);
    let rect = ctx.rect(track.0, 0, &ctx.frame.view.range())?;
    if pos.y > rect.top() + 1.5 * metrics::MARK {
        return None;
    }
    let (time, slack) = (scale.time_from_x(pos.x), scale.ns_of_px(metrics::MARK).max(1));
    let near = instants_in(store.track(track)?, &(time.saturating_sub(slack)..time.saturating_add(slack)));
    near.iter().filter(|i| is_shown(store, i)).min_by_key(|i| (i.time - time).abs())
}
