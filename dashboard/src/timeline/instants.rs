//! Instants: small marks at the top of their track's outermost lane.

use super::{model::Row, paint::Marks, picture::Scene};
use crate::theme::metrics;
use egui::{Mesh, Painter, Pos2, pos2};
use profiler::{Category, InstantEvent, Store, Track, TrackId};
use std::ops::Range;

/// The instants of a track in a range of time.
fn in_range<'a>(track: &'a Track, range: &Range<i64>) -> &'a [InstantEvent] {
    let from = track.instants.partition_point(|i| i.time < range.start);
    let to = track.instants.partition_point(|i| i.time < range.end);
    &track.instants[from..to.max(from)]
}

/// Stamps of transfers are arrows, not marks; that a node's values are finite is no event.
fn is_shown(store: &Store, instant: &InstantEvent) -> bool {
    store.sites().get(instant.site as usize).is_none_or(|s| match s.category {
        Category::Transfer | Category::RemoteTransfer => false,
        Category::Numerics => instant.arg != 0,
        _ => true,
    })
}

/// Draws the instants of the visible rows, one mark per physical pixel at most.
pub fn paint(painter: &Painter, scene: &Scene<'_>, visible: Range<usize>, marks: &Marks<'_>) {
    let frame = marks.frame;
    let pixel_ns = frame.scale.ns_of_px(1.0 / frame.pixels_per_point).max(1);
    let mut mesh = Mesh::default();
    for i in visible {
        let Row::Track { track, .. } = &scene.rows.rows[i] else { continue };
        let Some(t) = scene.store.track(*track) else { continue };
        let y = marks.top + scene.places[i].top;
        let mut drawn_to = i64::MIN;
        for instant in in_range(t, &frame.view.range()) {
            if instant.time < drawn_to || !is_shown(scene.store, instant) {
                continue;
            }
            drawn_to = instant.time.saturating_add(pixel_ns);
            let x = frame.scale.x_from_time(instant.time);
            let first = mesh.vertices.len() as u32;
            for corner in [pos2(x - metrics::MARK, y), pos2(x + metrics::MARK, y), pos2(x, y + 1.5 * metrics::MARK)] {
                mesh.colored_vertex(corner, scene.palette.highlight);
            }
            mesh.add_triangle(first, first + 1, first + 2);
        }
    }
    painter.add(mesh);
}

/// The instant whose mark is under the pointer, on this track.
pub fn under<'a>(store: &'a Store, track: TrackId, pos: Pos2, marks: &Marks<'_>) -> Option<&'a InstantEvent> {
    let t = store.track(track)?;
    let rect = marks.rect(track.0, 0, &marks.frame.view.range())?;
    if pos.y > rect.top() + 1.5 * metrics::MARK {
        return None;
    }
    let (time, slack) = (marks.frame.scale.time_from_x(pos.x), marks.frame.scale.ns_of_px(metrics::MARK).max(1));
    let near = in_range(t, &(time.saturating_sub(slack)..time.saturating_add(slack)));
    near.iter().filter(|i| is_shown(store, i)).min_by_key(|i| (i.time - time).abs())
}
