//! Slices that have not ended: hatched, and fading towards the present.

use super::{FrameContext, Layer};
use crate::timeline::{model::Row, raster::label_in};
use egui::{Color32, Mesh, Painter, Rect, pos2};
use trace_store::Track;
use ui::theme::{metrics, mix, on_fill};

/// The open slices of the visible tracks.
pub struct OpenSlices;

impl Layer for OpenSlices {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let (store, p, frame, top) = (ctx.store(), ctx.palette, &ctx.frame, ctx.top());
        let now = ctx.content.trace_range.end;
        let mut mesh = Mesh::default();
        for (row, position) in ctx.layout.iter(ctx.visible_rows.clone()) {
            let Row::Track { track, lanes, .. } = row else { continue };
            let open_slices = store.track(*track).map_or(&[][..], |t: &Track| &t.open);
            for slice in open_slices.iter().filter(|o| o.start < frame.view.end && now > frame.view.start) {
                let Some(row_lane) = lanes.iter().position(|l| *l == u32::from(slice.depth)) else { continue };
                let (x0, x1) = frame.edges(slice.start, now.max(slice.start));
                let band = position.lane(row_lane);
                let y = top + band.top;
                let rect = Rect::from_min_max(pos2(x0, y), pos2(x1, y + band.height - 1.0));
                let site = store.sites().get(slice.site as usize);
                let fill = site.map_or(p.aggregate, |s| p.mark_of_name(&s.name));
                add_gradient(&mut mesh, rect, mix(p.stripe, fill, 0.8), mix(p.stripe, fill, 0.15));
                add_hatching(&mut mesh, rect, p.stripe);
                let name = store.nodes().get(slice.node as usize).map(|n| &n.name).or(site.map(|s| &s.name));
                if let Some(name) = name.filter(|_| rect.width() >= metrics::LABEL_MIN_W) {
                    painter.add(std::mem::take(&mut mesh));
                    label_in(painter, rect, name, on_fill(mix(p.stripe, fill, 0.8)));
                }
            }
        }
        painter.add(mesh);
    }
}

/// Adds a rectangle whose colour changes from left to right.
fn add_gradient(mesh: &mut Mesh, rect: Rect, from: Color32, to: Color32) {
    let first = mesh.vertices.len() as u32;
    for (corner, color) in
        [(rect.left_top(), from), (rect.right_top(), to), (rect.left_bottom(), from), (rect.right_bottom(), to)]
    {
        mesh.colored_vertex(corner, color);
    }
    mesh.add_triangle(first, first + 1, first + 2);
    mesh.add_triangle(first + 2, first + 1, first + 3);
}

/// Adds slanted stripes, at most a few hundred.
fn add_hatching(mesh: &mut Mesh, rect: Rect, color: Color32) {
    let slant = rect.height() / 2.0;
    let pitch = (rect.width() / 300.0).max(7.0);
    let mut x = rect.left() + slant;
    while x + 1.5 < rect.right() {
        let first = mesh.vertices.len() as u32;
        for (dx, y) in [(0.0, rect.top()), (1.5, rect.top()), (-slant, rect.bottom()), (1.5 - slant, rect.bottom())] {
            mesh.colored_vertex(pos2(x + dx, y), color);
        }
        mesh.add_triangle(first, first + 1, first + 2);
        mesh.add_triangle(first + 2, first + 1, first + 3);
        x += pitch;
    }
}
