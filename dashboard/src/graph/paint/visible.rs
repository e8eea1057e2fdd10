//! Everything in view. Far out: one mesh of rectangles and lines. Near: rounded boxes, curves, labels. What is out of
//! view is skipped; labels and curves appear below about a thousand visible boxes and edges.

use super::{
    boxes::{background, closed_box, fill, open_box, side_area},
    camera::meets,
    edges,
    scene::{DETAIL_MAX, Scene},
};
use egui::{Mesh, Painter, Rect, Shape};
use ui::theme::metrics::graph as m;

/// Points of height below which a box is a plain rectangle.
const SMALL: f32 = 5.0;

/// Paints everything in view; returns the boxes in view with their rects on the screen.
pub(crate) fn paint(painter: &Painter, scene: &Scene<'_>) -> Vec<(usize, Rect)> {
    let seen = scene.camera.visible_part(scene.view);
    let mut visible: Vec<(usize, Rect)> = Vec::new();
    for (idx, b) in scene.picture.boxes.iter().enumerate() {
        let rect = (scene.rect_of)(b);
        let [left, right] = b.has_notes.map(|has| if has { m::NOTE_W } else { 0.0 });
        if meets(&[rect[0] - left, rect[1], rect[2] + right, rect[3]], &seen) {
            visible.push((idx, scene.camera.rect_to_screen(scene.view, rect)));
        }
    }
    let detailed = visible.len() <= DETAIL_MAX;
    let [w, h] = scene.picture.size;
    let whole = scene.camera.rect_to_screen(scene.view, [0.0, 0.0, w, h]);
    side_area(painter, scene, None, whole, scene.picture.side_x);
    let (mut mesh, mut small) = (Mesh::default(), Mesh::default());
    for &(idx, rect) in visible.iter().filter(|&&(idx, _)| scene.picture.boxes[idx].open) {
        let b = &scene.picture.boxes[idx];
        // Boxes that contain a small box are drawn before it, unless they are small themselves.
        if rect.height() < SMALL {
            small.add_colored_rect(rect, background(scene, b));
        } else {
            open_box(painter, scene, b, rect);
        }
    }
    painter.add(Shape::mesh(small));
    edges::paint(painter, scene, &seen);
    for &(idx, rect) in visible.iter().filter(|&&(idx, _)| !scene.picture.boxes[idx].open) {
        let b = &scene.picture.boxes[idx];
        if detailed && rect.height() >= SMALL {
            closed_box(painter, scene, b, rect);
        } else {
            mesh.add_colored_rect(rect, fill(scene, b.item));
        }
    }
    painter.add(Shape::mesh(mesh));
    visible
}
