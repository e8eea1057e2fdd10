//! The picture: a dot or an image for each vector, and lines from the picked vector to its neighbours.

use super::{
    model::{self, Coloring},
    state::{EmbeddingsView, Picture, Texture},
};
use egui::{Align2, Color32, FontId, Mesh, Pos2, Rect, Sense, Shape, Stroke, TextureOptions, Ui, pos2, vec2};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use summaries::{Embedding, projection::Position};
use ui::{
    address::Choice as _,
    chart::dots,
    format,
    theme::{self, Palette, metrics, mix, palette},
    widgets,
};

/// Labels of vectors that stand out, at most.
const MAX_LABELS: usize = 60;

impl EmbeddingsView {
    /// Shows the picture and handles the pointer; returns the vector that was picked.
    pub(super) fn canvas_ui(&mut self, ui: &mut Ui, embedding: &Embedding) -> Option<usize> {
        let p = palette(ui);
        let rect = ui.available_rect_before_wrap();
        let response = ui.allocate_rect(rect, Sense::click_and_drag());
        self.load_sprites(ui);
        widgets::describe(&response, || {
            let n_vectors = self.places.len();
            let n = format::count_of(n_vectors as u64, "vector");
            let picked =
                self.choices.picked.map_or_else(String::new, |i| format!(", picked {}", self.label(embedding, i)));
            let sheet = self.texture.sheet.iter().filter(|_| !self.choices.has_dots && self.texture.handle.is_some());
            let n_images: usize =
                sheet.map(|sheet| (0..n_vectors).filter(|i| sheet.uv_rect(*i).is_some()).count()).sum();
            let images = if n_images > 0 { format!(", {n_images} of them as images") } else { String::new() };
            format!("Embedding by {}: {n}{images}{picked}", self.choices.method.title())
        });
        let painter = ui.painter_at(rect);
        painter.rect_filled(rect, 0.0, p.canvas);
        let is_flat = self.choices.is_flat();
        self.orbit.input(ui, &response, is_flat);
        let corners = [rect.min.x, rect.min.y, rect.max.x, rect.max.y].map(f32::to_bits);
        let key = (self.revision, self.orbit, corners, p.id(), self.choices.has_dots);
        if self.picture.key != Some(key) {
            let placed: Vec<(Pos2, f32)> =
                self.places.iter().map(|place| self.orbit.project(rect, *place, is_flat)).collect();
            let (dots, images) = self.meshes(&placed, rect, p);
            self.picture = Picture { key: Some(key), dots: Arc::new(dots), images: Arc::new(images), placed };
        }
        painter.add(Shape::Mesh(Arc::clone(&self.picture.dots)));
        painter.add(Shape::Mesh(Arc::clone(&self.picture.images)));
        self.paint_highlights(ui, embedding, rect);
        self.paint_legend(ui, rect);
        let pointer = response.hover_pos().filter(|_| !response.dragged())?;
        let distances = self.picture.placed.iter().enumerate().map(|(i, (pos, _))| (i, pos.distance_sq(pointer)));
        let nearest = distances.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, d)| *d <= metrics::PICK_SLACK.powi(2));
        let Some((i, _)) = nearest else {
            if response.clicked() {
                self.choices.picked = None;
            }
            return None;
        };
        painter.circle_stroke(self.picture.placed[i].0, 2.0 * metrics::DOT, Stroke::new(metrics::LINE, p.highlight));
        response.show_tooltip_ui(|ui| tooltip(ui, embedding, i));
        response.clicked().then_some(i)
    }

    /// Loads the sheet of images as a texture, if the graphics supports its size.
    fn load_sprites(&mut self, ui: &Ui) {
        let loaded = self.read.as_ref().and_then(|read| read.1.as_ref().ok());
        let sheet = loaded.and_then(|loaded| loaded.sheet.as_ref()?.as_ref().ok());
        let is_loaded = match (&self.texture.sheet, sheet) {
            (Some(texture_sheet), Some(sheet)) => Arc::ptr_eq(texture_sheet, sheet),
            (None, None) => true,
            _ => false,
        };
        if is_loaded {
            return;
        }
        let max_side = ui.input(|i| i.max_texture_side);
        let handle = sheet.filter(|sheet| sheet.picture.size.iter().all(|side| *side <= max_side)).map(|sheet| {
            let image = theme::picture(sheet.picture.size, &sheet.picture.rgba);
            ui.ctx().load_texture("sprites", image, TextureOptions::LINEAR)
        });
        self.texture = Texture { sheet: sheet.cloned(), handle };
        self.revision += 1;
    }

    /// Returns dots and images, the farthest first. During a search, vectors that do not match are muted.
    fn meshes(&self, placed: &[(Pos2, f32)], rect: Rect, p: &Palette) -> (Mesh, Mesh) {
        let sprites = self.texture.sheet.as_ref().zip(self.texture.handle.as_ref()).filter(|_| !self.choices.has_dots);
        let mut images = sprites.map_or_else(Mesh::default, |(_, handle)| Mesh::with_texture(handle.id()));
        let matches: FxHashSet<usize> = self.matches.iter().copied().collect();
        let mut order: Vec<usize> = (0..placed.len()).filter(|i| rect.contains(placed[*i].0)).collect();
        let draw_order = |i: &usize| (matches.contains(i), -placed[*i].1);
        order.sort_by(|a, b| draw_order(a).0.cmp(&draw_order(b).0).then(draw_order(a).1.total_cmp(&draw_order(b).1)));
        let mut mesh = Mesh::default();
        let radius = if placed.len() > 5_000 { 0.6 * metrics::DOT } else { metrics::DOT };
        for i in order {
            let (pos, depth) = placed[i];
            let is_muted = !matches.is_empty() && !matches.contains(&i);
            let color = if is_muted { mix(p.canvas, p.aggregate, 0.5) } else { self.color(i, p) };
            // Dots fade with depth, but the farthest still stand out from the canvas.
            let depth_color = mix(p.canvas, color, 1.0 - 0.2 * (depth.clamp(-0.6, 1.0) + 0.6) / 1.6);
            let size = 1.0 - 0.25 * depth.clamp(-1.0, 1.0);
            match sprites.and_then(|(sheet, _)| Some((sheet.uv_rect(i)?, sheet.aspect()))) {
                Some(([from, to], aspect)) => {
                    let width = metrics::SPRITE * size * self.orbit.zoom.clamp(1.0, metrics::SPRITE_ZOOM);
                    let uv = Rect::from_min_max(pos2(from[0], from[1]), pos2(to[0], to[1]));
                    // The colours of dots, paler, so that the images stay recognisable.
                    let tint = if self.coloring == Coloring::Plain && !is_muted {
                        theme::UNTINTED
                    } else {
                        mix(theme::UNTINTED, color, 0.4)
                    };
                    images.add_rect_with_uv(Rect::from_center_size(pos, vec2(width, width * aspect)), uv, tint);
                }
                None => dots::add(&mut mesh, pos, radius * size, depth_color),
            }
        }
        (mesh, images)
    }

    fn color(&self, i: usize, p: &Palette) -> Color32 {
        match &self.coloring {
            Coloring::Plain => p.mark(0),
            Coloring::Numbers { shares, .. } => p.ramp(shares.get(i).copied().unwrap_or(f64::NAN)),
            Coloring::Words { groups, .. } => groups.get(i).map_or(p.aggregate, |group| group_color(*group, p)),
        }
    }

    /// Paints lines from the picked vector to its neighbours, and the names of vectors that stand out.
    fn paint_highlights(&self, ui: &Ui, embedding: &Embedding, rect: Rect) {
        let p = palette(ui);
        let painter = ui.painter_at(rect);
        let pos = |i: usize| self.picture.placed.get(i).map(|(pos, _)| *pos);
        if let Some(from) = self.choices.picked.and_then(pos) {
            for to in self.neighbours.iter().filter_map(|(i, _)| pos(*i)) {
                painter.line_segment([from, to], Stroke::new(metrics::HAIRLINE, p.accent));
            }
        }
        let neighbours = self.neighbours.iter().map(|(i, _)| *i);
        let named = self.choices.picked.into_iter().chain(neighbours).chain(self.matches.iter().copied());
        for i in named.take(MAX_LABELS) {
            let Some(pos) = pos(i).filter(|pos| rect.contains(*pos)) else { continue };
            let is_picked = self.choices.picked == Some(i);
            let (color, width) =
                if is_picked { (p.highlight, metrics::LINE_STRONG) } else { (p.accent, metrics::LINE) };
            painter.circle_stroke(pos, 1.6 * metrics::DOT, Stroke::new(width, color));
            let text: String = self.label(embedding, i).chars().take(40).collect();
            let galley = painter.layout_no_wrap(text, FontId::proportional(metrics::TEXT_SMALL), p.text_strong);
            let label_pos = pos + vec2(2.0 * metrics::DOT, -galley.size().y / 2.0);
            let background = Rect::from_min_size(label_pos, galley.size()).expand2(vec2(2.0, 0.0));
            painter.rect_filled(background, 2.0, p.canvas.gamma_multiply(0.75));
            painter.galley(label_pos, galley, p.text_strong);
        }
    }

    /// Paints the legend of the colours.
    fn paint_legend(&self, ui: &Ui, rect: Rect) {
        let p = palette(ui);
        let painter = ui.painter_at(rect);
        let mut entry_pos = rect.left_top() + vec2(metrics::PAD, metrics::PAD);
        let mut line = |color: Color32, text: &str| {
            painter.circle_filled(
                entry_pos + vec2(metrics::SWATCH / 2.0, metrics::ROW_H / 2.0),
                metrics::SWATCH / 2.0,
                color,
            );
            let left = entry_pos + vec2(metrics::SWATCH + metrics::GAP, metrics::ROW_H / 2.0);
            let text: String = text.chars().take(32).collect();
            painter.text(left, Align2::LEFT_CENTER, text, FontId::proportional(metrics::TEXT_SMALL), p.text);
            entry_pos.y += metrics::ROW_H - metrics::GAP;
        };
        match &self.coloring {
            Coloring::Plain => {}
            Coloring::Numbers { extent: [lo, hi], .. } => {
                for share in [1.0, 0.75, 0.5, 0.25, 0.0] {
                    line(p.ramp(share), &format::value(lo + share * (hi - lo)));
                }
            }
            Coloring::Words { words, n_unlisted, .. } => {
                for (i, word) in words.iter().enumerate() {
                    line(group_color(i, p), if word.is_empty() { "(empty)" } else { word });
                }
                if *n_unlisted > 0 {
                    line(p.aggregate, &format!("{n_unlisted} more"));
                }
            }
        }
    }

    pub(super) fn label(&self, embedding: &Embedding, i: usize) -> String {
        model::label(embedding, self.choices.label, i)
    }

    /// Takes over the places of a layout.
    pub(super) fn take_places(&mut self, places: &[Position]) {
        self.places = model::scaled(places);
        self.revision += 1;
    }
}

/// Returns the colour of the `i`-th word.
fn group_color(i: usize, p: &Palette) -> Color32 {
    if i < model::MAX_GROUPS { p.mark(i) } else { p.aggregate }
}

fn tooltip(ui: &mut Ui, embedding: &Embedding, i: usize) {
    let Some(row) = embedding.metadata.get(i) else {
        ui.label(format!("vector {i}"));
        return;
    };
    let cells = embedding.columns.iter().cloned().zip(row.iter().cloned());
    widgets::pairs_grid(ui, "metadata", cells.take(metrics::TOOLTIP_ROWS));
}
