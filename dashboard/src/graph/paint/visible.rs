//! Paints everything in view: rounded boxes, curves and labels for up to [`MAX_DETAIL`] boxes and edges, one mesh of
//! rectangles and lines for more. Everything out of view is skipped.

use super::{
    boxes::{background, closed_box, fill, open_box, side_area},
    camera::overlaps,
    edges,
    scene::{MAX_DETAIL, Scene},
};
use egui::{Mesh, Painter, Rect, Shape};
use ui::theme::metrics::graph as m;

/// Height in points below which a box is painted as a plain rectangle.
const SMALL_BOX_H: f32 = 5.0;

/// Paints everything in view; returns the boxes in view with their rects on the screen.
pub(crate) fn paint(painter: &Painter, scene: &Scene<'_>) -> Vec<(usize, Rect)> {
    let viewport = scene.camera.visible_part(scene.view);
    let mut visible: Vec<(usize, Rect)> = Vec::new();
    for (idx, b) in scene.picture.boxes.iter().enumerate() {
        let rect = (scene.rect_of)(b);
        let [left, right] = b.has_notes.map(|has| if has { m::NOTE_W } else { 0.0 });
        if overlaps(&[rect[0] - left, rect[1], rect[2] + right, rect[3]], &viewport) {
            visible.push((idx, scene.camera.rect_to_screen(scene.view, rect)));
        }
    }
    let is_detailed = visible.len() <= MAX_DETAIL;
    let [w, h] = scene.picture.size;
    let picture_rect = scene.camera.rect_to_screen(scene.view, [0.0, 0.0, w, h]);
    side_area(painter, scene, None, picture_rect, scene.picture.side_x);
    let (mut mesh, mut small) = (Mesh::default(), Mesh::default());
    for &(idx, rect) in visible.iter().filter(|&&(idx, _)| scene.picture.boxes[idx].is_open) {
        let b = &scene.picture.boxes[idx];
        // Boxes that contain a small box are drawn before it, unless they are small themselves.
        if rect.height() < SMALL_BOX_H {
            small.add_colored_rect(rect, background(scene, b));
        } else {
            open_box(painter, scene, b, rect);
        }
    }
    painter.add(Shape::mesh(small));
    edges::paint(painter, scene, &viewport);
    for &(idx, rect) in visible.iter().filter(|&&(idx, _)| !scene.picture.boxes[idx].is_open) {
        let b = &scene.picture.boxes[idx];
        if is_detailed && rect.height() >= SMALL_BOX_H {
            closed_box(painter, scene, b, rect);
        } else {
            mesh.add_colored_rect(rect, fill(scene, b.item));
        }
    }
    painter.add(Shape::mesh(mesh));
    visible
}
