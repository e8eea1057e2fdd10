//! Distributions of histogram summaries over steps: a card for each tag and run.
//!
//! [`model`] computes ridges and bands, without egui; [`settings`] are the controls; [`card`] shows a card, and
//! [`distribution`] its bands.

mod axis;
mod card;
mod distribution;
mod export;
mod model;
mod settings;

use crate::{
    Data, Selection, View, ViewKind,
    cards::{CardPage, CardPanel},
};
use card::Card;
use egui::Ui;
use model::{bands, bins};
use settings::Settings;
use summaries::HistogramSeries;
use ui::address::{AddressState, Names, Params};
use ui::command::Entry;

const ENTRIES: &[Entry] = &[Entry::gesture("Click a histogram", "Pick its step in every panel")];

const PAGE: CardPage = CardPage {
    kind: ViewKind::Histograms,
    runs: "histogram runs",
    empty: [
        "No histograms yet",
        "A run that writes histogram summaries (weights, gradients) shows here how they change.\n\
         Open a logdir, or start a run with: stepscope demo",
    ],
};

/// The panel's state.
pub struct HistogramsView {
    settings: Settings,
    panel: CardPanel<HistogramSeries, Card>,
}

impl Default for HistogramsView {
    fn default() -> Self {
        Self { settings: Settings::default(), panel: CardPanel::new(&PAGE) }
    }
}

impl View for HistogramsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Histograms
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn address(&self, _data: &Data) -> Params {
        self.settings.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.set_params(params);
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        Some(export::csv(&self.panel.catalogue, data))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        let (panel, settings) = (&mut self.panel, &mut self.settings);
        if panel.update(data, selection, &settings.filter) {
            panel.catalogue.split_by_run(|_| true);
        }
        if panel.frame_ui(ui, selection, |ui, _| settings.ui(ui)) && panel.has_matches(ui, selection) {
            panel.cards_ui(ui, None, |ui, card, row, is_wide| card.ui(ui, row, data, settings, selection, is_wide));
        }
    }
}

/// The parameters of this panel in addresses.
pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
