//! One tag of one run: its value at a step, and a slider over the steps.

use super::{decode::Shown, reader::Reader};
use crate::{
    Data, Selection, ViewKind,
    catalogue::TagRow,
    format,
    theme::{self, metrics},
    widgets::{self, CardFrame},
};
use egui::{Image, Rect, ScrollArea, Slider, TextureHandle, TextureOptions, Ui, UiBuilder, vec2};
use summaries::MediaSeries;

/// A card's place in its series, and what it shows.
#[derive(Default)]
pub struct Card {
    /// `None` follows the newest.
    row: Option<usize>,
    asked: Option<usize>,
    shown: Option<Shown>,
    textures: Vec<TextureHandle>,
}

impl Card {
    /// Takes what the reader found at `row`.
    pub fn take(&mut self, row: usize, shown: Shown) {
        if self.asked == Some(row) {
            self.shown = Some(shown);
            self.textures.clear();
        }
    }

    /// Shows the card in all of `ui`'s space; whether its width is to change.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        row: &TagRow,
        (data, reader): (&Data, &Reader),
        selection: &mut Selection,
        is_wide: bool,
    ) -> bool {
        let series = row.members.first().and_then(|m| m.series::<MediaSeries>(data, &row.tag));
        let target = row.target();
        let is_selected = row.is_selected(selection);
        let frame = CardFrame { name: &row.name, tag: &row.tag, node: target.map(|n| &**n), is_selected, is_wide };
        let at = series.map(|s| self.row.unwrap_or(usize::MAX).min(s.len().saturating_sub(1)));
        let (header, mut inner) = frame.ui(ui, |ui| {
            if let Some((series, at)) = series.zip(at).filter(|(series, _)| !series.is_empty()) {
                ui.weak(format!("{} · step {}", series.kind(), format::step(series.rows()[at].step)));
            }
        });
        if header.is_clicked {
            selection.node.set(ViewKind::Media, target.cloned());
            selection.tag.set(ViewKind::Media, Some(row.tag.clone()));
        }
        let Some((series, at)) = series.zip(at).filter(|(series, _)| !series.is_empty()) else {
            return header.is_width_toggled;
        };
        inner = inner.shrink(metrics::PAD / 2.0);
        if series.len() > 1 {
            let bar = Rect::from_min_max(egui::pos2(inner.left(), inner.bottom() - metrics::ROW_H), inner.max);
            inner.max.y = bar.top() - metrics::GAP;
            self.slider(ui, bar, series.len(), at, &row.tag);
        }
        if self.asked != Some(at) {
            self.asked = Some(at);
            reader.ask((row.key.clone(), at), series);
        }
        self.value(ui, inner, &row.tag);
        header.is_width_toggled
    }

    fn slider(&mut self, ui: &mut Ui, bar: Rect, n: usize, at: usize, tag: &str) {
        let mut chosen = at;
        ui.scope_builder(UiBuilder::new().max_rect(bar).id_salt("steps"), |ui| {
            ui.spacing_mut().slider_width = bar.width();
            let response = ui.add(Slider::new(&mut chosen, 0..=n - 1).show_value(false));
            widgets::named(&response, egui::Role::Slider, &format!("Step of {tag}"));
        });
        if chosen != at {
            self.row = (chosen + 1 < n).then_some(chosen);
        }
    }

    fn value(&mut self, ui: &mut Ui, inner: Rect, tag: &str) {
        let builder = UiBuilder::new().max_rect(inner).id_salt("value");
        ui.scope_builder(builder, |ui| match &self.shown {
            None => {}
            Some(Shown::Text(text)) => {
                ScrollArea::both().auto_shrink(false).show(ui, |ui| ui.label(text));
            }
            Some(Shown::Pictures(pictures)) => {
                if self.textures.is_empty() {
                    let texture = |picture: &super::decode::Picture| {
                        let image = theme::picture(picture.size, &picture.rgba);
                        ui.ctx().load_texture(tag, image, TextureOptions::NEAREST)
                    };
                    self.textures = pictures.iter().map(texture).collect();
                }
                let width = inner.width() / self.textures.len().max(1) as f32;
                ui.horizontal(|ui| {
                    for texture in &self.textures {
                        let size = texture.size_vec2();
                        let scale = (width / size.x).min(inner.height() / size.y);
                        let shown = vec2(size.x * scale, size.y * scale);
                        let response = ui.add(Image::new((texture.id(), size)).fit_to_exact_size(shown));
                        widgets::describe(&response, || format!("Image {tag}: {} x {} pixels", size.x, size.y));
                    }
                });
            }
        });
    }
}
