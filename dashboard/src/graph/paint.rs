//! The picture as shapes. Far out: one mesh of rectangles and lines. Near: rounded boxes, curves, labels. What is out
//! of view is skipped; labels and curves appear below about a thousand visible boxes and edges.

use super::{
    camera::{Camera, meets},
    colour::Colours,
    edges,
    layout::{Note, NoteKind, PicBox, Picture},
    model::{ItemId, Kind, Model},
};
use crate::theme::{Palette, metrics, metrics::graph as m, mix, on_fill};
use egui::{Align2, Color32, CornerRadius, FontId, Mesh, Painter, Pos2, Rect, Shape, Stroke, StrokeKind, pos2, vec2};
use rustc_hash::FxHashSet;

/// Boxes or edges in view above which there are neither labels nor curves.
pub(super) const DETAIL_MAX: usize = 1_000;
/// Points of height below which a box is a plain rectangle.
const SMALL: f32 = 5.0;

/// What a frame shows.
pub(super) struct Scene<'a> {
    pub model: &'a Model,
    pub picture: &'a Picture,
    pub colours: &'a Colours<'a>,
    pub camera: Camera,
    pub view: Rect,
    pub selected: Option<ItemId>,
    pub hovered: Option<ItemId>,
    /// Items on the traced way; everything else stands back.
    pub traced: Option<&'a FxHashSet<ItemId>>,
    /// How far edges are faded in, 0..=1.
    pub fade: f32,
    /// Rects of boxes on their way between two pictures.
    pub rect_of: &'a dyn Fn(&PicBox) -> [f32; 4],
}

impl Scene<'_> {
    pub fn palette(&self) -> &'static Palette {
        self.colours.palette
    }

    pub fn is_dimmed(&self, item: ItemId) -> bool {
        self.traced.is_some_and(|traced| !traced.contains(&item))
    }

    /// A font for the zoom, in half points so that the atlas holds few sizes; `None` when illegible.
    pub fn font(&self, size: f32) -> Option<FontId> {
        let size = (size * self.camera.zoom * 2.0).round() / 2.0;
        (size >= 6.5).then(|| FontId::proportional(size.min(24.0)))
    }

    /// The font of a box's name: as `font`, but where that is illegible the smallest legible one, if the box is high enough.
    fn name_font(&self, size: f32, rect: Rect) -> Option<FontId> {
        let least = FontId::proportional(metrics::TEXT_TICK);
        self.font(size).filter(|f| f.size >= least.size).or((rect.height() >= least.size).then_some(least))
    }
}

/// Paints everything in view; returns the boxes in view with their rects on the screen.
pub(super) fn paint(painter: &Painter, scene: &Scene<'_>) -> Vec<(usize, Rect)> {
    let seen = scene.camera.seen(scene.view);
    let mut visible: Vec<(usize, Rect)> = Vec::new();
    for (idx, b) in scene.picture.boxes.iter().enumerate() {
        let rect = (scene.rect_of)(b);
        let [left, right] = b.has_notes.map(|has| if has { m::NOTE_W } else { 0.0 });
        if meets(&[rect[0] - left, rect[1], rect[2] + right, rect[3]], &seen) {
            visible.push((idx, scene.camera.rect_to_screen(scene.view, rect)));
        }
    }
    let detailed = visible.len() <= DETAIL_MAX;
    side_area(
        painter,
        scene,
        None,
        Rect::from_min_max(
            scene.camera.to_screen(scene.view, [0.0, 0.0]),
            scene.camera.to_screen(scene.view, scene.picture.size),
        ),
        scene.picture.side_x,
    );
    let mut mesh = Mesh::default();
    let mut small = Mesh::default();
    for &(idx, rect) in visible.iter().filter(|&&(idx, _)| scene.picture.boxes[idx].open) {
        let b = &scene.picture.boxes[idx];
        // What holds a small box is drawn before it, if it is not small itself.
        if rect.height() < SMALL {
            small.add_colored_rect(rect, ground(scene, b));
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

fn fill(scene: &Scene<'_>, item: ItemId) -> Color32 {
    let fill = scene.colours.fill(item);
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

/// What an open box is filled with: stronger the deeper it lies.
fn ground(scene: &Scene<'_>, b: &PicBox) -> Color32 {
    let p = scene.palette();
    mix(p.canvas, p.aggregate, 0.07 + 0.05 * (b.depth.min(4) as f32))
}

fn open_box(painter: &Painter, scene: &Scene<'_>, b: &PicBox, rect: Rect) {
    let p = scene.palette();
    let ground = ground(scene, b);
    let tint = scene.colours.fill(b.item);
    let border = mix(p.border, tint, 0.55);
    painter.rect(rect, radius(scene, 8.0), ground, outline(scene, b.item, border), StrokeKind::Inside);
    let control = scene.model.control(b.item);
    if control.is_some() {
        frame(painter, scene, rect);
    }
    let title = Rect::from_min_size(rect.min, vec2(rect.width(), m::TITLE_H * scene.camera.zoom));
    side_area(painter, scene, Some(b.item), rect, b.side_x);
    let Some(font) = scene.font(m::LABEL) else { return };
    button(painter, scene, b, rect);
    let nodes = crate::format::counted(u64::from(scene.model.n_nodes(b.item)), "node");
    let what = control.map_or_else(String::new, |control| format!("  ·  {}", control.name()));
    let text = format!("{}{what}  ·  {nodes}", scene.model.label(b.item));
    let left = title.left() + (m::BUTTON + 12.0) * scene.camera.zoom;
    text_in(painter, &text, font, p.text, Rect::from_min_max(pos2(left, title.top()), title.max), Align2::LEFT_CENTER);
    more(painter, scene, rect, b.n_more);
}

/// Marks a loop or a conditional: a dashed frame within its border.
fn frame(painter: &Painter, scene: &Scene<'_>, rect: Rect) {
    let p = scene.palette();
    let inner = rect.shrink(m::CONTROL_FRAME * scene.camera.zoom);
    let corners = [inner.left_top(), inner.right_top(), inner.right_bottom(), inner.left_bottom(), inner.left_top()];
    let dash = 6.0 * scene.camera.zoom.max(0.5);
    // Not the accent: that is what is selected.
    let stroke = Stroke::new(metrics::LINE, mix(p.text_weak, p.canvas, 0.25));
    painter.extend(Shape::dashed_line(&corners, stroke, dash, dash * 0.6));
}

/// The line beside bookkeeping and hubs.
fn side_area(painter: &Painter, scene: &Scene<'_>, scope: Option<ItemId>, rect: Rect, side_x: Option<f32>) {
    let Some(side_x) = side_x else { return };
    let p = scene.palette();
    let moved = scope.and_then(|s| scene.picture.find(s)).map_or(0.0, |b| (scene.rect_of)(b)[0] - b.rect[0]);
    let x = scene.camera.to_screen(scene.view, [side_x + moved, 0.0]).x;
    let top = rect.top() + if scope.is_some() { m::TITLE_H * scene.camera.zoom } else { 0.0 };
    let line = [pos2(x, top), pos2(x, rect.bottom() - 6.0 * scene.camera.zoom)];
    painter.add(Shape::dashed_line(&line, Stroke::new(metrics::HAIRLINE, p.border), 4.0, 4.0));
    if let Some(font) = scene.font(m::LABEL_SMALL) {
        painter.text(pos2(x + 6.0 * scene.camera.zoom, top), Align2::LEFT_TOP, "set aside", font, p.text_weak);
    }
}

/// "and N more" at the bottom of a scope.
fn more(painter: &Painter, scene: &Scene<'_>, rect: Rect, n_more: u32) {
    if n_more > 0
        && let Some(font) = scene.font(m::LABEL)
    {
        let text = format!("and {} more (m shows all)", crate::format::count(u64::from(n_more)));
        let at = pos2(rect.center().x, rect.bottom() - m::MORE_H * scene.camera.zoom / 2.0);
        painter.text(at, Align2::CENTER_CENTER, text, font, scene.palette().text_weak);
    }
}

fn closed_box(painter: &Painter, scene: &Scene<'_>, b: &PicBox, rect: Rect) {
    let p = scene.palette();
    let fill = fill(scene, b.item);
    let stroke = outline(scene, b.item, mix(fill, p.text_weak, 0.5));
    let zoom = scene.camera.zoom;
    let text = if scene.is_dimmed(b.item) { p.text_weak } else { on_fill(fill) };
    match scene.model.kind(b.item) {
        Kind::Op => {
            painter.rect(
                rect,
                CornerRadius::same((rect.height() / 2.0).min(100.0) as u8),
                fill,
                stroke,
                StrokeKind::Inside,
            );
            op_name(painter, scene, b, rect, text);
        }
        kind => {
            let corner = radius(scene, 6.0);
            if kind == Kind::Series {
                for back in [4.0, 2.0] {
                    painter.rect(
                        rect.translate(vec2(back, -back) * zoom),
                        corner,
                        mix(fill, p.canvas, 0.3),
                        stroke,
                        StrokeKind::Inside,
                    );
                }
            }
            painter.rect(rect, corner, fill, stroke, StrokeKind::Inside);
            if scene.model.control(b.item).is_some() {
                frame(painter, scene, rect);
            }
            mix_bar(painter, scene, b.item, rect);
            closed_scope_label(painter, scene, b, rect, text);
        }
    }
    notes(painter, scene, b, rect);
}

/// An op's name: far out smaller than others where only that shows it whole.
fn op_name(painter: &Painter, scene: &Scene<'_>, b: &PicBox, rect: Rect, color: Color32) {
    let Some(font) = scene.name_font(m::LABEL - 1.0, rect) else { return };
    let label = scene.model.label(b.item);
    let room = rect.shrink2(vec2(4.0 * scene.camera.zoom, 0.0));
    let exact = scene.font(m::LABEL - 1.0).filter(|exact| exact.size < font.size);
    let fits = |font: &FontId| painter.layout_no_wrap(label.to_string(), font.clone(), color).size().x <= room.width();
    let font = exact.filter(|_| !fits(&font)).unwrap_or(font);
    text_in(painter, &label, font, color, room, Align2::CENTER_CENTER);
}

fn closed_scope_label(painter: &Painter, scene: &Scene<'_>, b: &PicBox, rect: Rect, text: Color32) {
    let zoom = scene.camera.zoom;
    let Some(font) = scene.font(m::LABEL).filter(|f| f.size >= metrics::TEXT_TICK) else {
        // Far out a name is worth more than its button and its count.
        if let Some(font) = scene.name_font(m::LABEL, rect) {
            text_in(painter, &scene.model.label(b.item), font, text, rect.shrink(1.0), Align2::CENTER_CENTER);
        }
        return;
    };
    button(painter, scene, b, rect);
    let inside =
        Rect::from_min_max(pos2(rect.left() + (m::BUTTON + 10.0) * zoom, rect.top()), rect.max - vec2(6.0, 0.0) * zoom);
    let count = crate::format::count(u64::from(scene.model.n_nodes(b.item)));
    let tall = rect.height() > 34.0 * zoom;
    if let (true, Some(small)) = (tall, scene.font(m::LABEL_SMALL)) {
        let middle = inside.center().y;
        let upper = Rect::from_min_max(inside.min, pos2(inside.right(), middle + 3.0 * zoom));
        let lower = Rect::from_min_max(pos2(inside.left(), middle + 1.0 * zoom), inside.max);
        text_in(painter, &scene.model.label(b.item), font, text, upper, Align2::LEFT_CENTER);
        text_in(painter, &format!("{count} nodes"), small, text.gamma_multiply(0.85), lower, Align2::LEFT_CENTER);
        return;
    }
    let Some(small) = scene.font(m::LABEL_SMALL) else {
        text_in(painter, &scene.model.label(b.item), font, text, inside, Align2::LEFT_CENTER);
        return;
    };
    let w = count.len() as f32 * 6.0 * zoom;
    let right = Rect::from_min_max(pos2(inside.right() - w, inside.top()), inside.max);
    text_in(painter, &count, small, text.gamma_multiply(0.85), right, Align2::RIGHT_CENTER);
    let left = Rect::from_min_max(inside.min, pos2(inside.right() - w - 3.0 * zoom, inside.bottom()));
    text_in(painter, &scene.model.label(b.item), font, text, left, Align2::LEFT_CENTER);
}

/// Shares of ops or devices along the lower border.
fn mix_bar(painter: &Painter, scene: &Scene<'_>, item: ItemId, rect: Rect) {
    let mut x = rect.left() + 3.0 * scene.camera.zoom;
    let width = rect.width() - 6.0 * scene.camera.zoom;
    let height = (5.0 * scene.camera.zoom).min(rect.height() / 3.0);
    for (color, share) in scene.colours.mix_of(item) {
        let part = Rect::from_min_size(pos2(x, rect.bottom() - height - 1.0), vec2(width * share, height));
        painter.rect_filled(
            part,
            0,
            if scene.is_dimmed(item) { mix(color, scene.palette().canvas, 0.8) } else { color },
        );
        x += width * share;
    }
}

/// Where the button that opens and closes a scope is.
pub(super) fn button_rect(scene: &Scene<'_>, b: &PicBox, rect: Rect) -> Rect {
    let zoom = scene.camera.zoom;
    let height = if b.open { m::TITLE_H * zoom } else { rect.height() };
    let center = pos2(rect.left() + (m::BUTTON / 2.0 + 6.0) * zoom, rect.top() + height / 2.0);
    Rect::from_center_size(center, vec2(m::BUTTON, m::BUTTON) * zoom)
}

fn button(painter: &Painter, scene: &Scene<'_>, b: &PicBox, rect: Rect) {
    let at = button_rect(scene, b, rect);
    let p = scene.palette();
    let ground = if b.open { p.raised } else { fill(scene, b.item) };
    let ink = if b.open { p.text_weak } else { on_fill(ground) };
    let stroke = Stroke::new(metrics::HAIRLINE.max(scene.camera.zoom), ink.gamma_multiply(0.8));
    painter.rect_stroke(at.shrink(1.0), radius(scene, 3.0), stroke, StrokeKind::Inside);
    let (c, r) = (at.center(), at.width() * 0.24);
    painter.line_segment([c - vec2(r, 0.0), c + vec2(r, 0.0)], stroke);
    if !b.open {
        painter.line_segment([c - vec2(0.0, r), c + vec2(0.0, r)], stroke);
    }
}

/// Text on one line, cut with an ellipsis where it does not fit.
pub(super) fn text_in(painter: &Painter, text: &str, font: FontId, color: Color32, rect: Rect, align: Align2) {
    if rect.width() < font.size {
        return;
    }
    let mut job = egui::text::LayoutJob::simple_singleline(text.to_owned(), font, color);
    job.wrap = egui::text::TextWrapping::truncate_at_width(rect.width());
    let galley = painter.layout_job(job);
    let at = align.align_size_within_rect(galley.size(), rect).min;
    painter.galley(at, galley, color);
}

fn notes(painter: &Painter, scene: &Scene<'_>, b: &PicBox, rect: Rect) {
    let Some(font) = scene.font(m::LABEL_SMALL) else { return };
    for (list, left) in scene.picture.notes(b).into_iter().zip([true, false]) {
        let height = m::NOTE_H * scene.camera.zoom;
        let mut y = rect.center().y - height * (list.len() as f32 - 1.0) / 2.0;
        for note in list {
            note_mark(painter, scene, note, &font, pos2(if left { rect.left() } else { rect.right() }, y), rect, left);
            y += height;
        }
    }
}

fn note_mark(painter: &Painter, scene: &Scene<'_>, note: &Note, font: &FontId, at: Pos2, rect: Rect, left: bool) {
    let (p, zoom) = (scene.palette(), scene.camera.zoom);
    let dimmed = scene.traced.is_some();
    let ink = if dimmed { mix(p.text_weak, p.canvas, 0.7) } else { p.text_weak };
    let out = if left { -1.0 } else { 1.0 };
    let mark = pos2(at.x + out * 12.0 * zoom, at.y);
    let line = [pos2(at.x, rect.center().y + (at.y - rect.center().y) * 0.4), mark];
    let stroke = Stroke::new(metrics::HAIRLINE, mix(ink, p.canvas, 0.3));
    match note.kind {
        NoteKind::Control => painter.extend(Shape::dashed_line(&line, stroke, 2.0, 2.0)),
        NoteKind::More(_) => {}
        _ => {
            painter.line_segment(line, stroke);
        }
    }
    match note.kind {
        NoteKind::Constant => {
            painter.circle(mark, 3.0 * zoom, p.raised, Stroke::new(metrics::HAIRLINE, ink));
        }
        NoteKind::Summary => {
            let bar = |dx: f32, h: f32| {
                Rect::from_min_max(mark + vec2(dx, 3.0 - h) * zoom, mark + vec2(dx + 1.6, 3.0) * zoom)
            };
            for (dx, h) in [(-3.0, 3.0), (-0.8, 6.0), (1.4, 4.5)] {
                painter.rect_filled(bar(dx, h), 0, p.accent);
            }
        }
        _ => {}
    }
    let text = match note.kind {
        NoteKind::More(n) => format!("{n} more"),
        _ => scene.model.label(note.item).into_owned(),
    };
    let (near, far) = (mark.x + out * 6.0 * zoom, at.x + out * m::NOTE_W * zoom);
    let room = Rect::from_min_max(pos2(near.min(far), at.y - 7.0 * zoom), pos2(near.max(far), at.y + 7.0 * zoom));
    let align = if left { Align2::RIGHT_CENTER } else { Align2::LEFT_CENTER };
    text_in(painter, &text, font.clone(), ink, room, align);
}
