//! Distributions of histogram summaries over steps: a card for each tag and run.
//!
//! [`bins`], [`bands`]: what to draw, without egui. [`card`]: one card, [`distribution`]: its bands.

mod bands;
mod bins;
mod card;
mod distribution;
mod export;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    cards::{CardGrid, run_list},
    catalogue::Catalogue,
    command::Entry,
    filter::Filter,
    scalars::{XAxis, axis_buttons},
    theme::metrics,
    widgets::{empty_state, filter_box, named, side_panel, together, toolbar},
};
use card::Card;
use egui::{Role, Ui};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use summaries::HistogramSeries;

/// How the histograms of a series stand to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One behind the other, the newest in front.
    #[default]
    Offset,
    /// All on the same ground.
    Overlay,
    /// Bands of quantiles over steps.
    Distribution,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Offset, Self::Overlay, Self::Distribution];

    fn name(self) -> &'static str {
        match self {
            Self::Offset => "Offset",
            Self::Overlay => "Overlay",
            Self::Distribution => "Distribution",
        }
    }

    /// Its name in addresses.
    fn key(self) -> &'static str {
        match self {
            Self::Offset => "offset",
            Self::Overlay => "overlay",
            Self::Distribution => "distribution",
        }
    }
}

/// What can be done in the panel.
const ENTRIES: &[Entry] = &[Entry::gesture("Click a histogram", "Pick its step in every panel")];

/// The panel's state.
#[derive(Default)]
pub struct HistogramsView {
    mode: Mode,
    axis: XAxis,
    filter: Filter,
    catalogue: Catalogue,
    cards: FxHashMap<Arc<str>, Card>,
    grid: CardGrid,
    node_seen: u64,
    tag_seen: u64,
}

impl View for HistogramsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Histograms
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn address(&self, _data: &Data) -> Params {
        let mut out = Params::default();
        out.set_some("filter", Some(self.filter.text()).filter(|t| !t.is_empty()));
        out.set_some("mode", (self.mode != Mode::default()).then(|| self.mode.key()));
        out.set_some("x", (self.axis != XAxis::default()).then(|| self.axis.name()));
        out
    }

    fn go_to(&mut self, params: &Params) {
        self.filter.set(params.get("filter").unwrap_or_default());
        self.mode = Mode::ALL.into_iter().find(|m| Some(m.key()) == params.get("mode")).unwrap_or_default();
        self.axis = XAxis::ALL.into_iter().find(|a| Some(a.name()) == params.get("x")).unwrap_or_default();
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        Some(export::csv(&self.catalogue, data))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        if self.catalogue.update::<HistogramSeries>(data, &selection.runs, &self.filter) {
            self.catalogue.split_by_run(|_| true);
        }
        if self.catalogue.n_tags == 0 {
            let text = "A run that writes histogram summaries (weights, gradients) shows here how they change.\n\
                        Open a logdir, or start a run with: stepscope demo";
            return empty_state(ui, "No histograms yet", text);
        }
        side_panel(ui, "histogram runs", |ui| run_list(ui, &mut selection.runs, selection.run.get()));
        let mut choice = (self.mode, self.axis);
        toolbar(ui, |ui| controls(ui, &mut self.filter, &mut choice));
        (self.mode, self.axis) = choice;
        if self.catalogue.groups.is_empty() {
            return empty_state(ui, "Nothing passes the filters", "Change the filter of tags or of runs.");
        }
        if let Some(node) = selection.node.news(ViewKind::Histograms, &mut self.node_seen) {
            self.grid.reveal(&self.catalogue, |row| row.belongs_to(node));
        }
        if let Some(tag) = selection.tag.news(ViewKind::Histograms, &mut self.tag_seen) {
            self.grid.reveal(&self.catalogue, |row| row.tag == *tag);
        }
        let cards = &mut self.cards;
        self.grid.ui(ui, &self.catalogue, |ui, row, is_wide| {
            let card = cards.entry(row.key.clone()).or_default();
            card.ui(ui, row, data, choice, selection, is_wide)
        });
    }
}

fn controls(ui: &mut Ui, filter: &mut Filter, (mode, axis): &mut (Mode, XAxis)) {
    ui.horizontal_wrapped(|ui| {
        filter_box(ui, filter, "Filter tags (regex)", metrics::FILTER_W);
        together(ui, "mode", |ui| {
            for choice in Mode::ALL {
                let response = ui.selectable_value(mode, choice, choice.name());
                named(&response, Role::RadioButton, &format!("Mode: {}", choice.name()));
            }
        });
        together(ui, "x axis", |ui| *axis = axis_buttons(ui, Some(*axis)).unwrap_or(*axis));
    });
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("filter", Accepts::Text),
        ("mode", Accepts::Words(Mode::ALL.iter().map(|mode| mode.key()).collect())),
        ("x", Accepts::Words(XAxis::ALL.iter().map(|axis| axis.name()).collect())),
    ]
}
