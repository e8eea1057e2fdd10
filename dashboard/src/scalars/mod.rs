//! Curves of scalar summaries: a card for each tag, a line for each run, live.
//!
//! [`points`], [`against`], [`smooth`], [`curve`], [`band`], [`range`], [`layouts`]: what to draw, without egui. [`settings`]: the
//! controls. [`card`]: one card; [`paint`], [`picture`], [`tooltip`], [`range_band`]: what is on it; [`range_table`]: what is below the cards.

mod against;
mod band;
mod card;
mod curve;
mod export;
mod layouts;
mod paint;
mod picture;
mod points;
mod range;
mod range_band;
mod range_table;
mod settings;
mod smooth;
mod tooltip;

pub use points::XAxis;
pub use settings::axis_buttons;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    cards::{CardGrid, run_list},
    catalogue::Catalogue,
    command::Entry,
    natural::Natural,
    runs::RunList,
    timeline::background::Background,
    widgets::{empty_state, side_panel, toolbar},
};
use card::{Card, CardView};
use layouts::Layouts;
use picture::Turn;
use range_table::RangeTable;
use rustc_hash::FxHashMap;
use settings::Settings;
use std::{collections::BTreeSet, sync::Arc};
use summaries::{ScalarSeries, Series};

/// What can be done in the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("range", "", "Compare the runs over a range of steps"),
    Entry::gesture("Drag", "Zoom into a box (a flat one zooms x only)"),
    Entry::gesture("Shift + drag", "Move the chart"),
    Entry::gesture("Ctrl + wheel", "Zoom at the pointer"),
    Entry::gesture("Double click", "Show everything"),
    Entry::gesture("Click", "Pick the step (Timeline goes there) and the run whose curve is near"),
    Entry::gesture("Drag the range's edge, Alt + drag", "Change the range of steps; mark another one"),
];

/// The panel's state.
#[derive(Default)]
pub struct ScalarsView {
    settings: Settings,
    catalogue: Catalogue,
    cards: FxHashMap<Arc<str>, Card>,
    grid: CardGrid,
    table: RangeTable,
    /// Logdirs whose remembered pins are in the catalogue.
    n_logdirs: usize,
    /// Tags of all runs: what can be an x axis. As of a number of series.
    tags: (usize, Vec<Arc<str>>),
    wants_range: bool,
    layouts: Custom,
    node_seen: u64,
    tag_seen: u64,
    turn: Turn,
}

/// Reads layouts; a question and its answer carry how many there were.
type LayoutReader = Background<(usize, Vec<layouts::Source>), (usize, Layouts)>;

/// The runs' layouts, and the page of their charts.
#[derive(Default)]
struct Custom {
    reader: Option<LayoutReader>,
    /// How many values the runs have of layouts, as of these versions of the logdirs.
    n_values: (Vec<u64>, usize),
    asked: usize,
    page: Catalogue,
    /// What the page was made from: layouts and the catalogue's revision.
    of: Option<(usize, u64)>,
    trouble: Vec<String>,
}

impl Custom {
    /// Reads what is new, and makes the page of it; whether there are layouts. `revision` is the catalogue's of all tags.
    fn update(&mut self, ui: &egui::Ui, data: &Data, runs: &RunList, revision: u64) -> bool {
        let versions: Vec<u64> = data.logdirs.iter().map(|logdir| logdir.runs.version).collect();
        if self.n_values.0 != versions {
            self.n_values = (versions, layouts::n_values(data));
        }
        let n_values = self.n_values.1;
        if n_values == 0 {
            return false;
        }
        let ctx = ui.ctx().clone();
        let read = |(n, sources)| (n, layouts::read(sources));
        let reader =
            self.reader.get_or_insert_with(|| Background::start("layouts", read, move || ctx.request_repaint()));
        if self.asked != n_values && !reader.is_busy() {
            self.asked = n_values;
            reader.request((n_values, layouts::sources(data)));
        }
        let Some(answer) = reader.result() else { return false };
        let of = Some((answer.0, revision));
        if self.of != of {
            self.of = of;
            self.page.groups = answer.1.groups(data, runs);
            self.page.revision = revision;
            self.trouble.clone_from(&answer.1.trouble);
        }
        !answer.1.is_empty() || !self.trouble.is_empty()
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
        let mut out = self.settings.address();
        self.catalogue.pins.iter().for_each(|pin| out.set("pin", pin));
        out
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.go_to(params);
        self.catalogue.pins = params.all("pin").map(Into::into).collect();
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        Some(match self.settings.range {
            Some(steps) => self.table.csv(steps),
            None => export::csv(&self.catalogue, data),
        })
    }

    fn ui(&mut self, ui: &mut egui::Ui, data: &Data, selection: &mut Selection) {
        self.remembered_pins(data, selection);
        self.catalogue.update::<ScalarSeries>(data, &selection.runs, &self.settings.filter);
        if self.catalogue.n_tags == 0 {
            let text = "A run that writes scalar summaries shows its curves here as they grow.\n\
                        Open a logdir, or start a run with: stepscope demo";
            return empty_state(ui, "No scalars yet", text);
        }
        self.update_tags(data);
        if std::mem::take(&mut self.wants_range) {
            self.settings.toggle_range(all_steps(data));
        }
        side_panel(ui, "scalar runs", |ui| run_list(ui, &mut selection.runs, selection.run.get()));
        let has_layouts = self.layouts.update(ui, data, &selection.runs, self.catalogue.revision);
        toolbar(ui, |ui| self.settings.ui(ui, &self.tags.1, || all_steps(data), has_layouts));
        if self.settings.by_layout && has_layouts {
            for trouble in &self.layouts.trouble {
                ui.colored_label(crate::theme::palette(ui).warning, trouble);
            }
            return self.cards_ui(ui, data, selection);
        }
        if self.catalogue.groups.is_empty() {
            return empty_state(ui, "Nothing passes the filters", "Change the filter of tags or of runs.");
        }
        if let Some(steps) = self.settings.range {
            self.table.ui(ui, &self.catalogue, data, steps, selection);
        }
        if let Some(node) = selection.node.news(ViewKind::Scalars, &mut self.node_seen) {
            self.grid.reveal(&self.catalogue, |row| row.belongs_to(node));
        }
        if let Some(tag) = selection.tag.news(ViewKind::Scalars, &mut self.tag_seen) {
            self.grid.reveal(&self.catalogue, |row| row.tag == *tag);
        }
        self.cards_ui(ui, data, selection);
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
            turn: self.turn.next(),
        };
        let (cards, pins) = (&mut self.cards, &self.catalogue.pins);
        let mut toggled = None;
        let is_custom = self.settings.by_layout && !self.layouts.page.groups.is_empty();
        let page = if is_custom { &self.layouts.page } else { &self.catalogue };
        self.grid.ui(ui, page, |ui, row, is_wide| {
            let card = cards.entry(row.key.clone()).or_default();
            let pin = (!is_custom).then(|| pins.contains(&row.tag));
            let header = card.ui(ui, row, data, &mut view, selection, (is_wide, pin));
            if header.is_pin_toggled {
                toggled = Some(row.tag.clone());
            }
            header.is_width_toggled
        });
        (self.settings.range, self.turn) = (view.range, view.turn);
        self.settings.linked_x = view.linked_x.flatten();
        if self.settings.linked_x != linked_x {
            // The cards above drew before it was known.
            ui.ctx().request_repaint();
        }
        let frame_nr = ui.ctx().cumulative_frame_nr();
        self.cards.values_mut().for_each(|card| card.forget_unseen(frame_nr));
        if let Some(tag) = toggled {
            self.toggle_pin(&tag, data, selection);
        }
        if selection.pointed_step != pointed {
            // The cards above the pointer's drew before it was known.
            ui.ctx().request_repaint();
        }
    }

    /// Takes in the pins that are remembered for logdirs that are new.
    fn remembered_pins(&mut self, data: &Data, selection: &Selection) {
        for logdir in data.logdirs.iter().skip(self.n_logdirs) {
            for tag in selection.pins.of(&logdir.path) {
                if !self.catalogue.pins.iter().any(|pin| **pin == **tag) {
                    self.catalogue.pins.push(tag.as_str().into());
                }
            }
        }
        self.n_logdirs = data.logdirs.len();
    }

    /// Pins a tag or not, and remembers it for the logdirs that have it. What a link pins is not remembered.
    fn toggle_pin(&mut self, tag: &Arc<str>, data: &Data, selection: &mut Selection) {
        let pins = &mut self.catalogue.pins;
        let is_pinned = !pins.contains(tag);
        pins.retain(|pin| pin != tag);
        if is_pinned {
            pins.push(tag.clone());
        }
        for logdir in &data.logdirs {
            let mut remembered = selection.pins.of(&logdir.path).to_vec();
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
            let scalars = all.filter(|(_, series)| matches!(series, Series::Scalar(_)));
            let names: BTreeSet<Natural<&str>> = scalars.map(|(tag, _)| Natural(&**tag)).collect();
            self.tags = (n_series, names.into_iter().map(|name| name.0.into()).collect());
        }
    }
}

/// The least and the greatest step of all scalars.
fn all_steps(data: &Data) -> range::Steps {
    let scalars = data.runs().flat_map(|run| run.run.series.values()).filter_map(|series| match series {
        Series::Scalar(s) if !s.is_empty() => Some(s),
        _ => None,
    });
    let ends = scalars.flat_map(|s| s.pieces().flat_map(|piece| [s.step(piece.start), s.step(piece.end - 1)]));
    let (lo, hi) = ends.fold((i64::MAX, i64::MIN), |(lo, hi), step| (lo.min(step), hi.max(step)));
    if lo <= hi { [lo, hi] } else { [0, 0] }
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("filter", Accepts::Text),
        ("xtag", Accepts::Text),
        ("group", Accepts::Text),
        ("pin", Accepts::Text),
        ("x", Accepts::Words(XAxis::ALL.iter().map(|axis| axis.name()).collect())),
        ("order", Accepts::Words(tooltip::Order::ALL.iter().map(|order| order.name()).collect())),
        ("smoothing", Accepts::Number),
        ("log", Accepts::Flag),
        ("logx", Accepts::Flag),
        ("outliers", Accepts::Flag),
        ("layout", Accepts::Flag),
        ("linkzoom", Accepts::Flag),
        ("zoom", Accepts::Range),
        ("range", Accepts::Range),
    ]
}
