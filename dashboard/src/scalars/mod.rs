//! Curves of scalar summaries: a card for each tag, a line for each run, live.
//!
//! [`points`], [`smooth`], [`curve`]: what to draw, without egui. [`settings`]: the controls. [`card`]: one card;
//! [`tooltip`]: what it says under the pointer.

mod card;
mod curve;
mod export;
mod points;
mod settings;
mod smooth;
mod tooltip;

pub use points::XAxis;
pub use settings::axis_buttons;

use crate::{
    Data, Selection, View, ViewKind,
    address::Params,
    catalogue::Catalogue,
    chart,
    command::Entry,
    widgets::{CardGrid, empty_state, run_list, side_panel, toolbar},
};
use card::Card;
use rustc_hash::FxHashMap;
use settings::Settings;
use std::sync::Arc;
use summaries::ScalarSeries;

/// The panel's state.
#[derive(Default)]
pub struct ScalarsView {
    settings: Settings,
    catalogue: Catalogue,
    cards: FxHashMap<Arc<str>, Card>,
    grid: CardGrid,
    node_seen: u64,
    tag_seen: u64,
}

impl View for ScalarsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Scalars
    }

    fn entries(&self) -> &'static [Entry] {
        chart::input::ENTRIES
    }

    fn address(&self, _data: &Data) -> Params {
        self.settings.address()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.go_to(params);
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        Some(export::csv(&self.catalogue, data))
    }

    fn ui(&mut self, ui: &mut egui::Ui, data: &Data, selection: &mut Selection) {
        self.catalogue.update::<ScalarSeries>(data, &selection.runs, &self.settings.filter);
        if self.catalogue.n_tags == 0 {
            let text = "A run that writes scalar summaries shows its curves here as they grow.\n\
                        Open a logdir, or start a run with: stepscope demo";
            return empty_state(ui, "No scalars yet", text);
        }
        side_panel(ui, "scalar runs", |ui| run_list(ui, &mut selection.runs));
        toolbar(ui, |ui| self.settings.ui(ui));
        if self.catalogue.groups.is_empty() {
            return empty_state(ui, "Nothing passes the filters", "Change the filter of tags or of runs.");
        }
        if let Some(node) = selection.node.news(ViewKind::Scalars, &mut self.node_seen) {
            self.grid.reveal(&self.catalogue, |row| row.belongs_to(node));
        }
        if let Some(tag) = selection.tag.news(ViewKind::Scalars, &mut self.tag_seen) {
            self.grid.reveal(&self.catalogue, |row| row.tag == *tag);
        }
        let pointed = selection.pointed_step.take();
        let (view, cards) = ((self.settings.curve, pointed), &mut self.cards);
        self.grid.ui(ui, &self.catalogue, |ui, row, is_wide| {
            let card = cards.entry(row.tag.clone()).or_default();
            card.ui(ui, row, data, view, selection, is_wide)
        });
        if selection.pointed_step != pointed {
            // The cards above the pointer's drew before it was known.
            ui.ctx().request_repaint();
        }
    }
}
