//! Scalar summaries over steps: a card for each tag, a line for each run, live.
//!
//! [`model`]: points, curves and bands, without egui. [`settings`]: the controls. [`card`]: one card, with [`paint`],
//! [`picture`], [`tooltip`] and [`range_band`]. [`range_table`]: the table below the cards.

mod card;
mod export;
mod model;
mod paint;
mod picture;
mod range_band;
mod range_table;
mod settings;
mod tooltip;

use crate::{
    Data, Selection, View, ViewKind,
    cards::{CardPage, CardPanel},
    catalogue::{Catalogue, Kind as _},
    runs::RunList,
};
use card::{Card, CardView};
use model::{
    band, curve,
    layouts::{self, Layouts},
    paired, points, range,
};
use picture::FrameBudget;
use range_table::RangeTable;
use settings::Settings;
use std::{collections::BTreeSet, sync::Arc};
use summaries::ScalarSeries;
use ui::address::{AddressState, Names, Params};
use ui::{background::Refresher, command::Entry, natural::Natural, theme};

const ENTRIES: &[Entry] = &[
    Entry::command("range", "", "Compare the runs over a range of steps"),
    Entry::gesture("Drag", "Zoom into a box (a flat one zooms x only)"),
    Entry::gesture("Shift + drag", "Move the chart"),
    Entry::gesture("Ctrl + wheel", "Zoom at the pointer"),
    Entry::gesture("Double click", "Show everything"),
    Entry::gesture("Click", "Pick the step (Timeline goes there) and the run whose curve is near"),
    Entry::gesture("Drag the range's edge, Alt + drag", "Change the range of steps; mark another one"),
];

const PAGE: CardPage = CardPage {
    kind: ViewKind::Scalars,
    runs: "scalar runs",
    empty: [
        "No scalars yet",
        "A run that writes scalar summaries shows its curves here as they grow.\n\
         Open a logdir, or start a run with: stepscope demo",
    ],
};

pub struct ScalarsView {
    settings: Settings,
    panel: CardPanel<ScalarSeries, Card>,
    table: RangeTable,
    /// The number of logdirs whose stored pins are in the catalogue.
    n_logdirs: usize,
    /// The tags of all runs, from which an x axis is chosen, and the number of series they were collected from.
    tags: (usize, Vec<Arc<str>>),
    wants_range: bool,
    layouts: CustomLayouts,
    budget: FrameBudget,
}

impl Default for ScalarsView {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            panel: CardPanel::new(&PAGE),
            table: RangeTable::default(),
            n_logdirs: 0,
            tags: (0, Vec::new()),
            wants_range: false,
            layouts: CustomLayouts::default(),
            budget: FrameBudget::default(),
        }
    }
}

/// The runs' custom layouts, and the page of their charts.
#[derive(Default)]
struct CustomLayouts {
    /// Reads layouts; the key is the number of their values.
    reader: Refresher<usize, Vec<layouts::Source>, Layouts>,
    /// The number of the runs' layout values, and the versions of the logdirs in which they were counted.
    n_values: (Vec<u64>, usize),
    page: Catalogue,
    /// The layouts and the catalogue's revision from which the page was made.
    of: Option<(Arc<Layouts>, u64)>,
}

impl CustomLayouts {
    /// Reads new layouts and rebuilds the page; returns whether there are layouts. `revision`: that of the catalogue of
    /// all tags.
    fn update(&mut self, ui: &egui::Ui, data: &Data, runs: &RunList, revision: u64) -> bool {
        let versions: Vec<u64> = data.logdirs.iter().map(|logdir| logdir.runs.version).collect();
        if self.n_values.0 != versions {
            self.n_values = (versions, layouts::n_values(data));
        }
        let n_values = self.n_values.1;
        if n_values == 0 {
            return false;
        }
        let reader = ("layouts", layouts::read as fn(_) -> _);
        let answer = self.reader.ask(ui.ctx(), reader, 0.0, n_values, |_, _| layouts::sources(data));
        let Some(answer) = answer else { return false };
        let has_some = !answer.is_empty() || !answer.trouble.is_empty();
        if !self.of.as_ref().is_some_and(|(known, of)| Arc::ptr_eq(known, &answer) && *of == revision) {
            self.page.groups = answer.groups(data, runs);
            self.page.revision = revision;
            self.of = Some((answer, revision));
        }
        has_some
    }
}

impl View for ScalarsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Scalars
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, _id: &'static str) {
        self.wants_range = true;
    }

    fn address(&self, _data: &Data) -> Params {
        self.settings.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.go_to(params);
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        Some(match self.settings.range {
            Some(steps) => self.table.csv(steps),
            None => export::csv(&self.panel.catalogue, data),
        })
    }

    fn ui(&mut self, ui: &mut egui::Ui, data: &Data, selection: &mut Selection) {
        self.remembered_pins(data, selection);
        self.panel.catalogue.pins.clone_from(&self.settings.pins);
        self.panel.update(data, selection, &self.settings.filter);
        self.update_tags(data);
        if self.panel.catalogue.n_tags > 0 && std::mem::take(&mut self.wants_range) {
            self.settings.toggle_range(all_steps(data));
        }
        let has_layouts = self.layouts.update(ui, data, &selection.runs, self.panel.catalogue.revision);
        let (settings, tags) = (&mut self.settings, &self.tags.1);
        let controls = |ui: &mut egui::Ui, _: &Catalogue| settings.ui(ui, tags, || all_steps(data), has_layouts);
        if !self.panel.frame_ui(ui, selection, controls) {
            return;
        }
        if self.settings.by_layout && has_layouts {
            for trouble in self.layouts.of.iter().flat_map(|(layouts, _)| &layouts.trouble) {
                ui.colored_label(theme::palette(ui).warning, trouble);
            }
            return self.cards_ui(ui, data, selection);
        }
        if let Some(steps) = self.settings.range.filter(|_| !self.panel.catalogue.groups.is_empty()) {
            self.table.ui(ui, &self.panel.catalogue, data, steps, selection);
        }
        if self.panel.has_matches(ui, selection) {
            self.cards_ui(ui, data, selection);
        }
    }
}

impl ScalarsView {
    fn cards_ui(&mut self, ui: &mut egui::Ui, data: &Data, selection: &mut Selection) {
        let pointed = selection.pointed_step.take();
        let linked_x = self.settings.linked_x;
        let mut view = CardView {
            curve: self.settings.curve,
            x_tag: self.settings.x_tag.as_deref(),
            group: self.settings.group.regex(),
            pointed,
            range: self.settings.range,
            linked_x: self.settings.links_zoom.then_some(self.settings.linked_x),
            order: self.settings.order,
            budget: self.budget.next(),
        };
        let pins = &self.settings.pins;
        let mut toggled = None;
        let custom = Some(&self.layouts.page).filter(|page| self.settings.by_layout && !page.groups.is_empty());
        self.panel.cards_ui(ui, custom, |ui, card, row, is_wide| {
            let pin = custom.is_none().then(|| pins.contains(&row.tag));
            let header = card.ui(ui, row, data, &mut view, selection, (is_wide, pin));
            if header.is_pin_toggled {
                toggled = Some(row.tag.clone());
            }
            header.is_width_toggled
        });
        (self.settings.range, self.budget) = (view.range, view.budget);
        self.settings.linked_x = view.linked_x.flatten();
        if self.settings.linked_x != linked_x {
            // The cards above drew before the zoom changed.
            ui.ctx().request_repaint();
        }
        let frame_nr = ui.ctx().cumulative_frame_nr();
        self.panel.cards_mut().for_each(|card| card.forget_unseen(frame_nr));
        if let Some(tag) = toggled {
            self.toggle_pin(&tag, data, selection);
        }
        if selection.pointed_step != pointed {
            // The cards above drew before the pointed step changed.
            ui.ctx().request_repaint();
        }
    }

    /// Adds the stored pins of new logdirs to the catalogue.
    fn remembered_pins(&mut self, data: &Data, selection: &Selection) {
        for logdir in data.logdirs.iter().skip(self.n_logdirs) {
            for tag in selection.pins.get(&logdir.path) {
                if !self.settings.pins.iter().any(|pin| **pin == **tag) {
                    self.settings.pins.push(tag.as_str().into());
                }
            }
        }
        self.n_logdirs = data.logdirs.len();
    }

    /// Pins or unpins a tag, and stores this for the logdirs with the tag. Pins of a link are not stored.
    fn toggle_pin(&mut self, tag: &Arc<str>, data: &Data, selection: &mut Selection) {
        let pins = &mut self.settings.pins;
        let is_pinned = !pins.contains(tag);
        pins.retain(|pin| pin != tag);
        if is_pinned {
            pins.push(tag.clone());
        }
        for logdir in &data.logdirs {
            let mut remembered = selection.pins.get(&logdir.path).to_vec();
            remembered.retain(|pin| **pin != **tag);
            if is_pinned && logdir.runs.by_name.values().any(|run| run.series.contains_key(&**tag)) {
                remembered.push(tag.to_string());
            }
            selection.pins.set(&logdir.path, remembered);
        }
    }

    fn update_tags(&mut self, data: &Data) {
        let n_series = data.runs().map(|run| run.run.series.len()).sum();
        if self.tags.0 != n_series {
            let all = data.runs().flat_map(|run| &run.run.series);
            let scalars = all.filter(|(_, series)| ScalarSeries::from_series(series).is_some());
            let names: BTreeSet<Natural<&str>> = scalars.map(|(tag, _)| Natural(&**tag)).collect();
            self.tags = (n_series, names.into_iter().map(|name| name.0.into()).collect());
        }
    }
}

/// The least and the greatest step of all scalars.
fn all_steps(data: &Data) -> range::Steps {
    let scalars = data.runs().flat_map(|run| run.run.series.values()).filter_map(ScalarSeries::from_series);
    let ends = scalars.flat_map(|s| s.pieces().flat_map(|piece| [s.step(piece.start), s.step(piece.end - 1)]));
    let (lo, hi) = ends.fold((i64::MAX, i64::MIN), |(lo, hi), step| (lo.min(step), hi.max(step)));
    if lo <= hi { [lo, hi] } else { [0, 0] }
}

pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
