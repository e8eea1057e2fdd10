//! The minimap: the entire picture in a corner, with a frame around the part in view; a click or drag moves there.

use super::{
    camera::Camera,
    scene::{Scene, paint_overlay},
};
use egui::{Mesh, Rect, Role, Sense, Shape, Stroke, StrokeKind, Ui, pos2, vec2};
use ui::{
    theme::{metrics, metrics::graph as m, mix},
    widgets::named,
};

/// Boxes drawn at most; outer ones come first.
const MAX_BOXES: usize = 4_000;

/// Paints the minimap over the lower right corner; returns the camera centre that a click or drag asks for.
pub(crate) fn minimap_ui(ui: &mut Ui, scene: &Scene<'_>) -> Option<egui::Vec2> {
    let [w, h] = scene.picture.size;
    let viewport = scene.camera.visible_part(scene.view);
    let is_all_in_view = viewport[0] <= 0.0 && viewport[1] <= 0.0 && viewport[2] >= w && viewport[3] >= h;
    if is_all_in_view || w < 1.0 || h < 1.0 || scene.view.width() < 2.5 * m::MINIMAP_W {
        return None;
    }
    let scale = (m::MINIMAP_W / w).min(m::MINIMAP_H / h);
    let size = vec2((w * scale).max(24.0), (h * scale).max(24.0));
    let frame = Rect::from_min_size(
        scene.view.right_bottom() - size - vec2(2.0, 2.0) * metrics::PAD,
        size + vec2(1.0, 1.0) * metrics::PAD,
    );
    let area = frame.shrink(metrics::PAD / 2.0);
    let response = ui.interact(frame, ui.scope_id().with("minimap"), Sense::click_and_drag());
    named(&response, Role::Image, "Overview of the whole graph");
    let p = scene.palette();
    let painter = ui.painter().with_clip_rect(scene.view);
    paint_overlay(&painter, scene, frame);
    let center = vec2(w, h) / 2.0;
    let minimap_camera = Camera { center, zoom: scale };
    let mut mesh = Mesh::default();
    for b in scene.picture.boxes.iter().take(MAX_BOXES) {
        let color =
            if b.is_open { mix(p.canvas, p.aggregate, 0.2) } else { mix(scene.colors.fill(b.item), p.aggregate, 0.3) };
        let rect = minimap_camera.rect_to_screen(area, b.rect);
        mesh.add_colored_rect(Rect::from_min_max(rect.min, rect.max.max(rect.min + vec2(1.0, 1.0))), color);
    }
    painter.add(Shape::mesh(mesh));
    let view_frame = minimap_camera.rect_to_screen(area, viewport).intersect(frame);
    let fill = p.accent.gamma_multiply(0.12);
    painter.rect(view_frame, 2, fill, Stroke::new(metrics::LINE, p.accent), StrokeKind::Inside);
    let pointer = response.interact_pointer_pos().filter(|_| response.dragged() || response.clicked())?;
    let [x, y] = minimap_camera.to_picture(area, pointer);
    Some(pos2(x, y).to_vec2())
}
