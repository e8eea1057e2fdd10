//! Boxes of scopes and nodes.

use super::{
    notes::paint_notes,
    scene::{Scene, paint_text},
};
use crate::graph::{
    layout::BoxLayout,
    model::{ItemId, Kind},
};
use egui::{Align2, Color32, CornerRadius, FontId, Painter, Rect, Shape, Stroke, StrokeKind, pos2, vec2};
use ui::theme::{metrics, metrics::graph as m, mix, on_fill};

/// Returns the fill of a closed box.
pub(super) fn fill(scene: &Scene<'_>, item: ItemId) -> Color32 {
    let fill = scene.colors.fill(item);
    if scene.is_dimmed(item) { mix(fill, scene.palette().canvas, 0.8) } else { fill }
}

fn outline(scene: &Scene<'_>, item: ItemId, plain: Color32) -> Stroke {
    let p = scene.palette();
    if scene.selected == Some(item) {
        Stroke::new(metrics::LINE_STRONG, p.accent)
    } else if scene.hovered == Some(item) {
        Stroke::new(metrics::LINE, p.text)
    } else {
        Stroke::new(metrics::HAIRLINE, if scene.is_dimmed(item) { mix(plain, p.canvas, 0.7) } else { plain })
    }
}

fn radius(scene: &Scene<'_>, points: f32) -> CornerRadius {
    CornerRadius::same((points * scene.camera.zoom).clamp(0.0, 60.0) as u8)
}

/// Returns the fill of an open box, which is stronger at greater depth.
pub(super) fn background(scene: &Scene<'_>, box_layout: &BoxLayout) -> Color32 {
    let p = scene.palette();
    mix(p.canvas, p.aggregate, 0.07 + 0.05 * (box_layout.depth.min(4) as f32))
}

pub(super) fn open_box(painter: &Painter, scene: &Scene<'_>, box_layout: &BoxLayout, rect: Rect) {
    let p = scene.palette();
    let background = background(scene, box_layout);
    let tint = scene.colors.fill(box_layout.item);
    let border = mix(p.border, tint, 0.55);
    painter.rect(rect, radius(scene, 8.0), background, outline(scene, box_layout.item, border), StrokeKind::Inside);
    let control = scene.model.control(box_layout.item);
    if control.is_some() {
        control_frame(painter, scene, rect);
    }
    let title = Rect::from_min_size(rect.min, vec2(rect.width(), m::TITLE_H * scene.camera.zoom));
    side_area(painter, scene, Some(box_layout.item), rect, box_layout.side_x);
    let Some(font) = scene.font(m::LABEL) else { return };
    button(painter, scene, box_layout, rect);
    let nodes = ui::format::count_of(u64::from(scene.model.n_nodes(box_layout.item)), "node");
    let kind = control.map_or_else(String::new, |control| format!("  ·  {}", control.name()));
    let text = format!("{}{kind}  ·  {nodes}", scene.model.label(box_layout.item));
    let left = title.left() + (m::BUTTON + 12.0) * scene.camera.zoom;
    let room = Rect::from_min_max(pos2(left, title.top()), title.max);
    paint_text(painter, &text, font, p.text, room, Align2::LEFT_CENTER);
    paint_n_hidden(painter, scene, rect, box_layout.n_hidden);
}

/// Paints the mark of a loop or a conditional: a dashed frame within the border.
fn control_frame(painter: &Painter, scene: &Scene<'_>, rect: Rect) {
    let p = scene.palette();
    let inner = rect.shrink(m::CONTROL_FRAME * scene.camera.zoom);
    let corners = [inner.left_top(), inner.right_top(), inner.right_bottom(), inner.left_bottom(), inner.left_top()];
    let dash = 6.0 * scene.camera.zoom.max(0.5);
    // The accent colour is reserved for the selection.
    let stroke = Stroke::new(metrics::LINE, mix(p.text_weak, p.canvas, 0.25));
    painter.extend(Shape::dashed_line(&corners, stroke, dash, dash * 0.6));
}

/// Paints the line and the title of a side area, which holds bookkeeping and hubs.
pub(super) fn side_area(painter: &Painter, scene: &Scene<'_>, scope: Option<ItemId>, rect: Rect, side_x: Option<f32>) {
    let Some(side_x) = side_x else { return };
    let p = scene.palette();
    let moved_dx = scope.and_then(|s| scene.picture.find(s)).map_or(0.0, |b| (scene.rect_of)(b)[0] - b.rect[0]);
    let x = scene.camera.to_screen(scene.view, [side_x + moved_dx, 0.0]).x;
    let top = rect.top() + if scope.is_some() { m::TITLE_H * scene.camera.zoom } else { 0.0 };
    let line = [pos2(x, top), pos2(x, rect.bottom() - 6.0 * scene.camera.zoom)];
    painter.add(Shape::dashed_line(&line, Stroke::new(metrics::HAIRLINE, p.border), 4.0, 4.0));
    if let Some(font) = scene.font(m::LABEL_SMALL) {
        painter.text(pos2(x + 6.0 * scene.camera.zoom, top), Align2::LEFT_TOP, "Auxiliary nodes", font, p.text_weak);
    }
}

/// Paints "and N more" at the bottom of a scope.
fn paint_n_hidden(painter: &Painter, scene: &Scene<'_>, rect: Rect, n_hidden: u32) {
    if n_hidden > 0
        && let Some(font) = scene.font(m::LABEL)
    {
        let text = format!("and {} more (M shows all)", ui::format::count(u64::from(n_hidden)));
        let at = pos2(rect.center().x, rect.bottom() - m::MORE_H * scene.camera.zoom / 2.0);
        painter.text(at, Align2::CENTER_CENTER, text, font, scene.palette().text_weak);
    }
}

pub(super) fn closed_box(painter: &Painter, scene: &Scene<'_>, box_layout: &BoxLayout, rect: Rect) {
    let p = scene.palette();
    let fill = fill(scene, box_layout.item);
    let stroke = outline(scene, box_layout.item, mix(fill, p.text_weak, 0.5));
    let zoom = scene.camera.zoom;
    let text = if scene.is_dimmed(box_layout.item) { p.text_weak } else { on_fill(fill) };
    match scene.model.kind(box_layout.item) {
        Kind::Op => {
            painter.rect(
                rect,
                CornerRadius::same((rect.height() / 2.0).min(100.0) as u8),
                fill,
                stroke,
                StrokeKind::Inside,
            );
            op_name(painter, scene, box_layout, rect, text);
        }
        kind => {
            let corner = radius(scene, 6.0);
            if kind == Kind::Series {
                for offset in [4.0, 2.0] {
                    painter.rect(
                        rect.translate(vec2(offset, -offset) * zoom),
                        corner,
                        mix(fill, p.canvas, 0.3),
                        stroke,
                        StrokeKind::Inside,
                    );
                }
            }
            painter.rect(rect, corner, fill, stroke, StrokeKind::Inside);
            if scene.model.control(box_layout.item).is_some() {
                control_frame(painter, scene, rect);
            }
            mix_bar(painter, scene, box_layout.item, rect);
            closed_scope_label(painter, scene, box_layout, rect, text);
        }
    }
    paint_notes(painter, scene, box_layout, rect);
}

/// Paints an op's name, at a low zoom in a smaller font if only that fits.
fn op_name(painter: &Painter, scene: &Scene<'_>, box_layout: &BoxLayout, rect: Rect, color: Color32) {
    let Some(font) = scene.name_font(m::LABEL - 1.0, rect) else { return };
    let label = scene.model.label(box_layout.item);
    let room = rect.shrink2(vec2(4.0 * scene.camera.zoom, 0.0));
    let exact = scene.font(m::LABEL - 1.0).filter(|exact| exact.size < font.size);
    let fits = |font: &FontId| painter.layout_no_wrap(label.to_string(), font.clone(), color).size().x <= room.width();
    let font = exact.filter(|_| !fits(&font)).unwrap_or(font);
    paint_text(painter, &label, font, color, room, Align2::CENTER_CENTER);
}

fn closed_scope_label(painter: &Painter, scene: &Scene<'_>, box_layout: &BoxLayout, rect: Rect, text: Color32) {
    let zoom = scene.camera.zoom;
    let Some(font) = scene.font(m::LABEL).filter(|f| f.size >= metrics::TEXT_TICK) else {
        // At a low zoom the name is more useful than the button and the count.
        if let Some(font) = scene.name_font(m::LABEL, rect) {
            paint_text(
                painter,
                &scene.model.label(box_layout.item),
                font,
                text,
                rect.shrink(1.0),
                Align2::CENTER_CENTER,
            );
        }
        return;
    };
    button(painter, scene, box_layout, rect);
    let inside =
        Rect::from_min_max(pos2(rect.left() + (m::BUTTON + 10.0) * zoom, rect.top()), rect.max - vec2(6.0, 0.0) * zoom);
    let count = ui::format::count(u64::from(scene.model.n_nodes(box_layout.item)));
    let is_tall = rect.height() > 34.0 * zoom;
    if let (true, Some(small)) = (is_tall, scene.font(m::LABEL_SMALL)) {
        let middle = inside.center().y;
        let upper = Rect::from_min_max(inside.min, pos2(inside.right(), middle + 3.0 * zoom));
        let lower = Rect::from_min_max(pos2(inside.left(), middle + 1.0 * zoom), inside.max);
        paint_text(painter, &scene.model.label(box_layout.item), font, text, upper, Align2::LEFT_CENTER);
        paint_text(painter, &format!("{count} nodes"), small, text.gamma_multiply(0.85), lower, Align2::LEFT_CENTER);
        return;
    }
    let Some(small) = scene.font(m::LABEL_SMALL) else {
        paint_text(painter, &scene.model.label(box_layout.item), font, text, inside, Align2::LEFT_CENTER);
        return;
    };
    let count_w = count.len() as f32 * 6.0 * zoom;
    let right = Rect::from_min_max(pos2(inside.right() - count_w, inside.top()), inside.max);
    paint_text(painter, &count, small, text.gamma_multiply(0.85), right, Align2::RIGHT_CENTER);
    let left = Rect::from_min_max(inside.min, pos2(inside.right() - count_w - 3.0 * zoom, inside.bottom()));
    paint_text(painter, &scene.model.label(box_layout.item), font, text, left, Align2::LEFT_CENTER);
}

/// Paints the shares of ops or devices along the lower border.
fn mix_bar(painter: &Painter, scene: &Scene<'_>, item: ItemId, rect: Rect) {
    let mut x = rect.left() + 3.0 * scene.camera.zoom;
    let width = rect.width() - 6.0 * scene.camera.zoom;
    let height = (5.0 * scene.camera.zoom).min(rect.height() / 3.0);
    for (color, share) in scene.colors.mix_of(item) {
        let part = Rect::from_min_size(pos2(x, rect.bottom() - height - 1.0), vec2(width * share, height));
        painter.rect_filled(
            part,
            0,
            if scene.is_dimmed(item) { mix(color, scene.palette().canvas, 0.8) } else { color },
        );
        x += width * share;
    }
}

/// Returns the rect of the button that expands and collapses a scope.
pub(crate) fn button_rect(scene: &Scene<'_>, box_layout: &BoxLayout, rect: Rect) -> Rect {
    let zoom = scene.camera.zoom;
    let height = if box_layout.is_open { m::TITLE_H * zoom } else { rect.height() };
    let center = pos2(rect.left() + (m::BUTTON / 2.0 + 6.0) * zoom, rect.top() + height / 2.0);
    Rect::from_center_size(center, vec2(m::BUTTON, m::BUTTON) * zoom)
}

fn button(painter: &Painter, scene: &Scene<'_>, box_layout: &BoxLayout, rect: Rect) {
    let button = button_rect(scene, box_layout, rect);
    let p = scene.palette();
    let color = if box_layout.is_open { p.text_weak } else { on_fill(fill(scene, box_layout.item)) };
    let stroke = Stroke::new(metrics::HAIRLINE.max(scene.camera.zoom), color.gamma_multiply(0.8));
    painter.rect_stroke(button.shrink(1.0), radius(scene, 3.0), stroke, StrokeKind::Inside);
    let (center, arm) = (button.center(), button.width() * 0.24);
    painter.line_segment([center - vec2(arm, 0.0), center + vec2(arm, 0.0)], stroke);
    if !box_layout.is_open {
        painter.line_segment([center - vec2(0.0, arm), center + vec2(0.0, arm)], stroke);
    }
}
