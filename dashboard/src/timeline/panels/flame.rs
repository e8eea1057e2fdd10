//! Shows a flame graph, from top to bottom.

use crate::timeline::{model::FlameBox, raster::label_in};
use egui::{Mesh, Rect, Sense, Ui, pos2, vec2};
use ui::{
    format,
    theme::{metrics, on_fill, palette},
    widgets::describe,
};

/// Shows the boxes. `contents`: `slices` or `samples`, for assistive technology. `weight` formats a weight.
pub fn flame_ui(ui: &mut Ui, contents: &str, boxes: &[FlameBox], weight: impl Fn(u64) -> String) {
    let p = palette(ui);
    let depth = boxes.iter().map(|b| b.depth + 1).max().unwrap_or(0);
    let size = vec2(ui.available_width(), depth as f32 * metrics::LANE_H);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    describe(&response, || {
        let top = boxes.iter().filter(|b| b.depth == 0).max_by_key(|b| b.total);
        let top = top.map_or_else(String::new, |b| format!(", most in {}: {}", b.name, weight(b.total)));
        format!("Flame graph of {contents}: {}{top}", format::count_of_irregular(boxes.len() as u64, "box", "boxes"))
    });
    let rect_of = |b: &FlameBox| {
        let x = |share: f64| rect.left() + (share * f64::from(rect.width())) as f32;
        let y = rect.top() + b.depth as f32 * metrics::LANE_H;
        Rect::from_min_max(pos2(x(b.start), y), pos2(x(b.start + b.width), y + metrics::LANE_H - 1.0))
    };
    let painter = ui.painter_at(rect);
    let mut mesh = Mesh::default();
    let pixel = 1.0 / ui.pixels_per_point();
    let mut labels = Vec::new();
    for b in boxes {
        let box_rect = rect_of(b);
        if box_rect.width() < pixel || !ui.is_rect_visible(box_rect) {
            continue;
        }
        let gap = if box_rect.width() > 3.0 { pixel } else { 0.0 };
        let fill = p.mark_of_name(&b.name);
        mesh.add_colored_rect(Rect::from_min_max(box_rect.min, pos2(box_rect.right() - gap, box_rect.bottom())), fill);
        if box_rect.width() >= metrics::LABEL_MIN_W {
            labels.push((box_rect, &b.name, fill));
        }
    }
    painter.add(mesh);
    for (box_rect, name, fill) in labels {
        label_in(&painter, box_rect, name, on_fill(fill));
    }
    let Some(pos) = response.hover_pos() else { return };
    let Some(hovered) = boxes.iter().find(|b| rect_of(b).contains(pos)) else { return };
    response.on_hover_ui_at_pointer(|ui| {
        ui.label(&hovered.name);
        ui.label(format!("{} ({})", weight(hovered.total), format::percent(hovered.width)));
        ui.colored_label(palette(ui).text_weak, format!("{} in itself", weight(hovered.self_weight)));
        if hovered.count > 0 {
            ui.colored_label(palette(ui).text_weak, format::count_of(hovered.count, "slice"));
        }
    });
}
