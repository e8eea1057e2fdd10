//! Images, texts and whatever else is no number: a card for each tag and run, with a slider over its steps.
//!
//! [`decode`]: what to show, without egui. [`reader`]: the thread that fetches it. [`card`]: one card.

mod card;
mod decode;
mod reader;

use crate::{
    Data, Selection, View, ViewKind,
    catalogue::Catalogue,
    filter::Filter,
    theme::metrics,
    widgets::{CardGrid, empty_state, filter_box, run_list, side_panel, toolbar},
};
use card::Card;
use egui::Ui;
use reader::Reader;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use summaries::MediaSeries;

/// The panel's state.
#[derive(Default)]
pub struct MediaView {
    filter: Filter,
    catalogue: Catalogue,
    cards: FxHashMap<Arc<str>, Card>,
    grid: CardGrid,
    reader: Option<Reader>,
    node_seen: u64,
    tag_seen: u64,
}

impl View for MediaView {
    fn kind(&self) -> ViewKind {
        ViewKind::Media
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        if self.catalogue.update::<MediaSeries>(data, &selection.runs, &self.filter) {
            self.catalogue.split_by_run();
        }
        if self.catalogue.n_tags == 0 {
            let text =
                "A run that writes images, texts, sounds, tensors or hyperparameters shows them here, step by step.";
            return empty_state(ui, "No images or texts yet", text);
        }
        side_panel(ui, "media runs", |ui| run_list(ui, &mut selection.runs));
        toolbar(ui, |ui| {
            ui.horizontal_wrapped(|ui| filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W));
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
        let reader = self.reader.get_or_insert_with(|| Reader::new(move || context.request_repaint()));
        for ((key, row), shown) in reader.answers() {
            self.cards.entry(key).or_default().take(row, shown);
        }
        let cards = &mut self.cards;
        self.grid.ui(ui, &self.catalogue, |ui, row, is_wide| {
            let card = cards.entry(row.key.clone()).or_default();
            card.ui(ui, row, (data, reader), selection, is_wide)
        });
    }
}
