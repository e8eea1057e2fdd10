//! Images, sounds, texts, precision-recall curves, meshes and tensors: a card for each tag and run, with a slider over
//! its steps.
//!
//! [`decode`], [`wav`]: what to show; [`rows`], [`steps`]: which cards and stops there are; [`shelf`]: the thread that
//! fetches; all without egui. [`card`]: one card; [`images`], [`texts`], [`sounds`], [`pr`], [`mesh`]: what is on it; [`player`]: sounds
//! aloud; [`markdown`]: texts as they are meant to look.

mod card;
pub(crate) mod decode;
mod images;
mod markdown;
mod mesh;
mod player;
mod pr;
mod rows;
mod shelf;
mod sounds;
mod steps;
mod texts;
mod wav;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    cards::{CardGrid, run_list},
    catalogue::Catalogue,
    chart::orbit,
    command::Entry,
    filter::Filter,
    shell::SaveDialog,
    theme::metrics,
    widgets::{empty_state, filter_box, side_panel, together, toolbar},
};
use card::{Card, CardView};
use egui::Ui;
use images::Tone;
use rows::Meshes;
use rustc_hash::FxHashMap;
use shelf::Shelf;
use std::sync::Arc;
use summaries::MediaSeries;

/// What can be done in the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("link", "", "One step for all cards, or for each its own"),
    Entry::gesture("Drag a slider, arrows", "Another step"),
    Entry::gesture("Ctrl + wheel, drag, double click (image)", "Come closer; move; all of it"),
    Entry::gesture("Click a sound's curve", "Go there"),
    orbit::GESTURES[0],
    orbit::GESTURES[1],
    orbit::GESTURES[2],
];

/// The panel's state.
#[derive(Default)]
pub struct MediaView {
    filter: Filter,
    is_linked: bool,
    tone: Tone,
    catalogue: Catalogue,
    meshes: Meshes,
    cards: FxHashMap<Arc<str>, Card>,
    grid: CardGrid,
    shelf: Option<Shelf>,
    save: SaveDialog,
    node_seen: u64,
    tag_seen: u64,
}

impl View for MediaView {
    fn kind(&self) -> ViewKind {
        ViewKind::Media
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, _id: &'static str) {
        self.is_linked ^= true;
    }

    fn address(&self, _data: &Data) -> Params {
        let mut out = Params::default();
        out.set_some("filter", Some(self.filter.text()).filter(|t| !t.is_empty()));
        out.set_some("linked", self.is_linked.then_some(1));
        let (tone, usual) = (self.tone, Tone::default());
        out.set_some("brightness", (tone.brightness != usual.brightness).then_some(tone.brightness));
        out.set_some("contrast", (tone.contrast != usual.contrast).then_some(tone.contrast));
        out
    }

    fn go_to(&mut self, params: &Params) {
        self.filter.set(params.get("filter").unwrap_or_default());
        self.is_linked = params.get("linked") == Some("1");
        let percent = |name: &str| params.read::<u32>(name).unwrap_or(100).min(400);
        self.tone = Tone { brightness: percent("brightness"), contrast: percent("contrast") };
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        if self.catalogue.update::<MediaSeries>(data, &selection.runs, &self.filter) {
            self.meshes = rows::arrange(&mut self.catalogue, data);
        }
        if self.catalogue.n_tags == 0 {
            let text = "A run that writes images, sounds, texts, precision-recall curves, meshes or tensors shows them here,\n\
                        step by step.";
            return empty_state(ui, "No images or texts yet", text);
        }
        side_panel(ui, "media runs", |ui| run_list(ui, &mut selection.runs, selection.run.get()));
        let mut rows = self.catalogue.groups.iter().flat_map(|group| &group.rows);
        let has_images = rows.any(|row| {
            row.members.iter().any(|m| m.series::<MediaSeries>(data, &row.tag).is_some_and(|s| s.kind() == "images"))
        });
        toolbar(ui, |ui| {
            ui.horizontal_wrapped(|ui| {
                filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W);
                let hint = "One slider moves all; a step picked in Scalars or Histograms is shown here";
                together(ui, "steps", |ui| ui.checkbox(&mut self.is_linked, "Link steps").on_hover_text(hint));
                if has_images {
                    self.tone.ui(ui);
                }
            });
        });
        if self.catalogue.groups.is_empty() {
            return empty_state(ui, "Nothing passes the filters", "Change the filter of tags or of runs.");
        }
        if let Some(node) = selection.node.news(ViewKind::Media, &mut self.node_seen) {
            self.grid.reveal(&self.catalogue, |row| row.belongs_to(node));
        }
        if let Some(tag) = selection.tag.news(ViewKind::Media, &mut self.tag_seen) {
            self.grid.reveal(&self.catalogue, |row| row.tag == *tag);
        }
        let context = ui.ctx().clone();
        let shelf = self.shelf.get_or_insert_with(|| Shelf::new(move || context.request_repaint()));
        shelf.update();
        let mut save = None;
        let (meshes, is_linked, tone) = (&self.meshes, self.is_linked, self.tone);
        let mut view = CardView { data, shelf, meshes, is_linked, tone, save: &mut save };
        let cards = &mut self.cards;
        self.grid.ui(ui, &self.catalogue, |ui, row, is_wide| {
            let card = cards.entry(row.key.clone()).or_default();
            card.ui(ui, row, &mut view, selection, is_wide).is_width_toggled
        });
        if let Some((name, bytes)) = save {
            self.save.open("Save the sound", &name, bytes);
        }
        self.save.ui(ui.ctx());
    }
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("filter", Accepts::Text),
        ("linked", Accepts::Flag),
        ("brightness", Accepts::Number),
        ("contrast", Accepts::Number),
    ]
}
