//! The card of one tag: its value at a step, and a slider over the steps.

use super::{
    cache::MediaCache,
    decode::MediaValue,
    images::{ImageCard, Tone},
    mesh::{MeshCard, PartState as MeshPartState},
    pr,
    rows::{Meshes, RunValue, cache_key, row_of_part},
    sounds::SoundCard,
    steps::SliderStops,
    texts::TextCard,
};
use crate::{
    Data, Selection, ViewKind,
    cards::card_frame,
    catalogue::{Member, TagRow},
};
use egui::{Label, Rect, RichText, Slider, Ui, UiBuilder};
use std::sync::Arc;
use summaries::MediaSeries;
use ui::{
    format,
    theme::metrics,
    widgets::{self, CardClicks},
};

/// The position of a card in its series, and the state of its contents.
#[derive(Default)]
pub struct Card {
    stops: SliderStops,
    /// The chosen stop of the slider; `None` follows the newest.
    stop: Option<usize>,
    images: ImageCard,
    text: TextCard,
    sound: SoundCard,
    mesh: MeshCard,
}

/// The state that all cards share in a frame.
pub struct CardView<'a> {
    pub data: &'a Data,
    pub cache: &'a mut MediaCache,
    /// The meshes and their tags.
    pub meshes: &'a Meshes,
    /// Whether all cards show the same step.
    pub is_linked: bool,
    pub tone: Tone,
    /// A file to save, with its suggested name.
    pub save: &'a mut Option<(String, Vec<u8>)>,
}

impl Card {
    /// Shows the card in all of `ui`'s space; returns the clicks in its title.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        row: &TagRow,
        view: &mut CardView<'_>,
        selection: &mut Selection,
        is_wide: bool,
    ) -> CardClicks {
        let data = view.data;
        let series_of = |member: &Member| member.series::<MediaSeries>(data, &row.tag).filter(|s| !s.is_empty());
        let members: Vec<(&Member, &MediaSeries)> =
            row.members.iter().filter_map(|member| Some((member, series_of(member)?))).collect();
        let series: Vec<&MediaSeries> = members.iter().map(|(_, series)| *series).collect();
        self.stops.update(&series);
        let newest = self.stops.len().saturating_sub(1);
        let linked = selection.step.get().filter(|_| view.is_linked).map(|step| self.stops.at(*step));
        let stop = linked.or(self.stop).unwrap_or(newest).min(newest);
        let owner = (ViewKind::Media, row);
        let (header, mut inner) = card_frame(ui, owner, (is_wide, None), selection, |ui, _| {
            if let (Some(series), Some(step)) = (series.first(), self.stops.step(stop)) {
                ui.weak(format!("{} · step {}", series.kind(), format::step(step)));
            }
        });
        if members.is_empty() {
            ui.put(inner, Label::new(RichText::new("no values yet").weak()));
            return header;
        }
        inner = inner.shrink(metrics::PAD / 2.0);
        if self.stops.len() > 1 {
            let bar = Rect::from_min_max(egui::pos2(inner.left(), inner.bottom() - metrics::ROW_H), inner.max);
            inner.max.y = bar.top() - metrics::GAP;
            if let Some(chosen) = slider(ui, bar, self.stops.len(), stop, &row.tag) {
                self.stop = (chosen < newest).then_some(chosen);
                if view.is_linked {
                    selection.step.set(ViewKind::Media, self.stops.step(chosen));
                }
            }
        }
        let mut values = Vec::new();
        for (member, series) in &members {
            let row_idx = self.stops.row(series, stop);
            let shown = row_idx.and_then(|idx| view.cache.value(&cache_key(&row.tag, member), series, idx));
            values.extend(shown.map(|shown| RunValue { member, shown }));
        }
        let builder = UiBuilder::new().max_rect(inner).id_salt("value");
        ui.scope_builder(builder, |ui| self.value(ui, row, &values, stop, view));
        header
    }

    fn value(&mut self, ui: &mut Ui, row: &TagRow, values: &[RunValue<'_>], stop: usize, view: &mut CardView<'_>) {
        let Some(first) = values.first() else { return };
        match &*first.shown {
            MediaValue::Pictures(pictures) => self.images.ui(ui, &row.tag, &first.shown, pictures, view.tone),
            MediaValue::Text(text) => self.text.plain(ui, text),
            MediaValue::Markdown { n_columns, cells } => self.text.markdown(ui, *n_columns, cells),
            MediaValue::Sounds(sounds) => {
                self.sound.ui(ui, &row.tag, &first.shown, sounds, first.member.color_idx, view.save);
            }
            MediaValue::PrCurve(_) => pr::ui(ui, &row.tag, values),
            MediaValue::Mesh(_) => self.mesh(ui, row, first.member, stop, view),
        }
    }

    /// Shows the mesh whose first part is the row's tag.
    fn mesh(&mut self, ui: &mut Ui, row: &TagRow, member: &Member, stop: usize, view: &mut CardView<'_>) {
        let (data, own_tag) = (view.data, [Some(row.tag.clone()), None, None]);
        let tags = view.meshes.get(&row.key).unwrap_or(&own_tag);
        let series_of = |tag: &str| member.series::<MediaSeries>(data, tag);
        let first = series_of(&row.tag);
        let mut part = |tag: &Option<Arc<str>>| {
            let Some((tag, series, first)) = tag.as_ref().and_then(|tag| Some((tag, series_of(tag)?, first?))) else {
                return MeshPartState::Missing;
            };
            let row_idx = if **tag == *row.tag { Some(stop) } else { row_of_part(first, stop, series) };
            match row_idx.filter(|idx| *idx < series.len()) {
                Some(idx) => view.cache.value(&cache_key(tag, member), series, idx).into(),
                None => MeshPartState::Missing,
            }
        };
        let parts = [part(&tags[0]), part(&tags[1]), part(&tags[2])];
        self.mesh.ui(ui, &row.name, parts);
    }
}

/// Shows the slider; returns the stop that was chosen.
fn slider(ui: &mut Ui, bar: Rect, n: usize, at: usize, tag: &str) -> Option<usize> {
    let mut chosen = at;
    ui.scope_builder(UiBuilder::new().max_rect(bar).id_salt("steps"), |ui| {
        ui.spacing_mut().slider_width = bar.width();
        let response = ui.add(Slider::new(&mut chosen, 0..=n - 1).show_value(false));
        widgets::named(&response, egui::Role::Slider, &format!("Step of {tag}"));
    });
    (chosen != at).then_some(chosen)
}
