//! The Timeline panel (the EEG of a run): every track's slices over time, from the whole trace down to 10 ns.
//!
//! In reading order: [`model`] says which rows there are, [`viewport`] which time is shown, [`layout`] where slices are;
//! [`picture`] keeps the slices' mesh, [`paint`] draws around it, [`gutter`] names the rows; [`input`] turns gestures into
//! [`state::Command`]s, which [`state`] carries out; [`find`] looks slices up, [`facts`] and [`panels`] describe them;
//! [`analysis`] computes off the UI thread what takes longer than a frame. [`canvas`] puts one frame together.

mod address;
pub mod analysis;
mod buffer;
pub mod canvas;
mod compare;
mod cores;
mod critical;
pub mod facts;
pub mod find;
pub mod flame;
pub mod flows;
pub mod gutter;
pub mod input;
pub mod instants;
pub mod layout;
mod link;
pub mod log;
pub mod model;
mod notes;
pub mod paint;
pub mod panels;
pub mod picture;
mod plate;
pub mod spread;
pub mod stalls;
pub mod state;
mod strips;
mod table;
mod tags;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod ticks;
pub mod viewport;

pub use ui::background;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    command::Entry,
    data::{Status, TraceData},
    theme::metrics,
    widgets::{Edge, Extent, empty_state, side, toolbar},
};
use analysis::{Asker, Findings, Question};
use canvas::Canvas;
use compare::{Compare, Upper};
use egui::{Rect, Ui};
use facts::Fact;
use find::Query;
use flows::Arrow;
use link::Seen;
use panels::SearchState;
use profiler::{SliceId, SliceRef, Store};
use state::{Command, State};
use std::{ops::Range, path::Path, sync::Arc};

/// How often a followed trace that brings nothing new is shown anew, seconds.
const FOLLOW_IDLE_S: f32 = 0.2;

/// What is known of the selected slice, for one version of the store.
struct Described {
    trace_idx: usize,
    slice: SliceId,
    version: u64,
    facts: Vec<Fact>,
    arrows: Vec<Arrow>,
}

/// What the pictures of a frame are made from, beside the traces.
struct Showing<'a> {
    /// All of the panel, with its bar and details.
    panel: Rect,
    /// Whether slices that do not match are dimmed.
    dims: bool,
    findings: Option<&'a Findings>,
    /// Whose bookmarks.
    notes_of: &'a Path,
}

/// The panel's state.
#[derive(Default)]
pub struct TimelineView {
    trace_idx: usize,
    state: Option<State>,
    canvas: Canvas,
    search: String,
    focus_search: bool,
    /// The next match was asked for, or (false) the one before.
    go_to_match: Option<bool>,
    /// Whether the node that was picked here is to stand out (a link was clicked), or only be known to other panels.
    own_pick_stands_out: bool,
    asker: Asker,
    /// What is shown below.
    compare: Option<Compare>,
    facts: Option<Described>,
    seen: Seen,
    /// Commands of the palette, for the next frame.
    asked_for: Vec<Command>,
    /// Where an address leads, for the next frame.
    wanted: Option<Params>,
}

impl View for TimelineView {
    fn kind(&self) -> ViewKind {
        ViewKind::Timeline
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        self.follow_selected_trace(selection);
        if let Some(params) = &self.wanted {
            let named = params.get("trace").and_then(|name| data.traces.iter().position(|t| *t.name == *name));
            if let Some(idx) = named.filter(|idx| *idx != self.trace_idx) {
                self.trace_idx = idx;
                self.forget_trace();
            }
        }
        let Some(trace) = data.traces.get(self.trace_idx).or(data.traces.first()) else {
            return empty_state(
                ui,
                "No trace yet",
                "Open a run folder or its trace folder. Record any program with: stepscope record -- COMMAND",
            );
        };
        self.trace_idx = self.trace_idx.min(data.traces.len() - 1);
        if trace.store.tracks().is_empty() {
            let source = data.sources.iter().find(|s| s.path == trace.path);
            let text = match source.map(|s| (s.warnings.is_empty(), s.status)) {
                Some((false, _)) => "Nothing of it could be read: the badge at the top right tells why.",
                Some((true, Status::Finished)) => "It has ended, and holds no slices.",
                _ => "Slices appear here as soon as a thread emits the first one.",
            };
            return empty_state(ui, "The trace is empty", text);
        }
        self.trace_ui(ui, data, trace, selection);
    }

    fn entries(&self) -> &'static [Entry] {
        input::entries()
    }

    fn run(&mut self, id: &'static str) {
        self.asked_for.extend(input::command_of(id));
    }

    fn address(&self, data: &Data) -> Params {
        address::of(self, data)
    }

    fn go_to(&mut self, params: &Params) {
        self.wanted = Some(params.clone());
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        table::csv(self, data)
    }
}

impl TimelineView {
    fn trace_ui(&mut self, ui: &mut Ui, data: &Data, trace: &TraceData, selection: &mut Selection) {
        let store: &Store = &trace.store;
        let panel = ui.max_rect();
        let now = ui.input(|i| i.time);
        let whole = whole_range(store);
        let mut state = self.state.take().unwrap_or_else(|| State::new(store, &whole));
        // There is nothing to keep up with any more, and no reason for further frames.
        state.follow &= store.is_live();
        state.keep_up(&whole, store.range().end, now);
        let mut commands = self.news(store, selection, &state);
        commands.append(&mut self.asked_for);
        if let Some(params) = self.wanted.take() {
            self.search = params.get("search").unwrap_or_default().to_owned();
            commands.extend(address::arrive(&params, &mut state, store, &whole));
            self.compare = address::comparison(&params, data, store);
        }
        let query = self.query(selection);
        let findings = self.findings(ui, trace, &state, &query, now);

        let bar = |ui: &mut Ui| self.bar(ui, data, store, &state, findings.as_deref(), selection, now);
        commands.extend(toolbar(ui, |ui| ui.horizontal_wrapped(bar).inner));
        if state.log {
            commands.extend(log_ui(ui, store, findings.as_deref(), state.cursor));
        }
        let upper = Upper { trace_idx: self.trace_idx, store, whole: &whole, now };
        let there = |c: &Compare| data.traces.get(c.trace_idx).is_some_and(|t| !t.store.tracks().is_empty());
        let mut compare = self.compare.take().filter(there);
        commands.extend(self.bottom_ui(ui, data, &upper, &state, compare.as_mut(), findings.as_deref(), selection));
        let shown = Showing { panel, dims: !query.is_empty(), findings: findings.as_deref(), notes_of: &trace.path };
        self.pictures(ui, data, &upper, &shown, &mut state, compare, commands, selection);
        link::tell_range(self.trace_idx, &state, selection);
        if let Some(time) = state.editing {
            let mut all = selection.notes.of(&trace.path).to_vec();
            if notes::editor_ui(ui.ctx(), &mut all, time) {
                state.editing = None;
            }
            selection.notes.set(&trace.path, all);
        }
        if state.eased.is_moving(now) {
            ui.ctx().request_repaint();
        } else if state.follow {
            // New slices bring frames of their own; without any, time still passes.
            ui.ctx().request_repaint_after_secs(FOLLOW_IDLE_S);
        }
        self.state = Some(state);
    }

    /// The picture, or two of them below each other.
    #[expect(clippy::too_many_arguments, reason = "what is shown comes from many places")]
    fn pictures(
        &mut self,
        ui: &mut Ui,
        data: &Data,
        upper: &Upper<'_>,
        showing: &Showing<'_>,
        state: &mut State,
        mut compare: Option<Compare>,
        commands: Vec<Command>,
        selection: &mut Selection,
    ) {
        let described = self.facts.as_ref().filter(|f| f.is_of(self.trace_idx, state.selected));
        let shown = canvas::Shown {
            trace_idx: self.trace_idx,
            store: upper.store,
            whole: upper.whole,
            findings: showing.findings.filter(|f| f.question.trace_idx == self.trace_idx),
            dims: showing.dims,
            panel: compare.as_ref().map_or(showing.panel, |c| c.rest_of(showing.panel)),
            before: described.and_then(|d| facts::predecessor_of(&d.facts)),
            arrows: described.map_or(&[], |d| &d.arrows),
            notes: selection.notes.of(showing.notes_of).to_vec(),
        };
        let reach = compare.as_ref().map_or_else(|| upper.whole.clone(), |c| c.reach(data, upper));
        let selected_below = compare.as_ref().is_some_and(Compare::has_selection);
        let (mut selected, mut of_comparison, mut below) = (false, Vec::new(), Vec::new());
        let draw = |ui: &mut Ui| {
            self.canvas.ui(ui, &shown, state, commands, |state, command| {
                // Walking goes on from what is selected, wherever that is.
                if selected_below && compare::walks(&command) {
                    return below.push(command);
                }
                link::tell(&command, self.trace_idx, state, upper.store, selection, &mut self.own_pick_stands_out);
                self.focus_search |= command == Command::FocusSearch;
                selected |= compare::selects(&command);
                if compare::is_of_comparison(&command) {
                    of_comparison.push(command.clone());
                }
                state.apply(command, upper.store, &reach, upper.now);
            });
        };
        match &mut compare {
            None => draw(ui),
            Some(compare) => {
                side(ui, Edge::Top, "timeline above", Extent::Share(0.5), draw);
                if selected {
                    compare.deselect();
                }
                compare.ask(below);
                let answer = compare.ui(ui, data, upper, state, selection);
                if answer.selected {
                    (state.selected, state.stall) = (None, None);
                }
                self.asked_for.extend(answer.commands);
                if !self.asked_for.is_empty() {
                    ui.ctx().request_repaint();
                }
            }
        }
        self.compare = compare;
        self.carry_out(&of_comparison, data, upper, state);
    }

    /// Starts or ends a comparison, or takes another step for it.
    fn carry_out(&mut self, commands: &[Command], data: &Data, upper: &Upper<'_>, state: &mut State) {
        for command in commands {
            match (command, &mut self.compare) {
                (Command::CompareStep { forward }, Some(compare)) => compare.next(data, 1, upper, *forward),
                (_, Some(_)) => self.compare = None,
                (_, None) => match Compare::start(data, upper.trace_idx, upper.store, state) {
                    Ok(compare) => {
                        let above = compare.moments.as_ref().map(|m| Command::Show(m[0].range.clone()));
                        self.asked_for.extend(above);
                        self.compare = Some(compare);
                    }
                    Err(why) => state.notice = Some(why),
                },
            }
        }
    }

    /// What stands out: the search, and what was picked in other panels.
    fn query(&self, selection: &Selection) -> Query {
        let mine = selection.node.by() == Some(ViewKind::Timeline) && !self.own_pick_stands_out;
        Query {
            node: selection.node.get().filter(|_| !mine).cloned(),
            op: selection.op.get().cloned(),
            text: self.search.trim().to_lowercase(),
        }
    }

    /// The latest findings, after asking for newer ones where that is due.
    fn findings(
        &mut self,
        ui: &Ui,
        trace: &TraceData,
        state: &State,
        query: &Query,
        now: f64,
    ) -> Option<Arc<Findings>> {
        let question = Question {
            trace_idx: self.trace_idx,
            version: trace.store.version(),
            view: state.eased.target().range(),
            range: state.range.clone(),
            query: query.clone(),
            critical: state.critical,
            log: state.log,
        };
        self.asker.findings(ui.ctx(), &trace.store, question, now)
    }

    #[expect(clippy::too_many_arguments, reason = "what a bar shows comes from many places")]
    fn bar(
        &mut self,
        ui: &mut Ui,
        data: &Data,
        store: &Store,
        state: &State,
        findings: Option<&Findings>,
        selection: &mut Selection,
        now: f64,
    ) -> Vec<Command> {
        if data.traces.len() > 1 {
            self.trace_choice(ui, data);
        }
        let query = self.query(selection);
        let known = findings.filter(|f| f.question.query == query);
        let picked = query.node.as_deref().or(query.op.as_deref());
        let search = SearchState {
            picked,
            text: &mut self.search,
            focus: std::mem::take(&mut self.focus_search),
            count: known.map(|f| f.matches.count),
        };
        let notes = data.traces.get(self.trace_idx).map_or(&[][..], |t| selection.notes.of(&t.path));
        let bar = panels::Bar { state, is_live: store.is_live(), rows: self.canvas.rows(), notes, now };
        let mut answer = panels::bar_ui(ui, &bar, search);
        // Asked for before the matches are known, it is done when they are.
        self.go_to_match = answer.go_to_match.or(self.go_to_match);
        if let Some(f) = known
            && let Some(forward) = self.go_to_match.take()
        {
            let from = state.slice(store).map_or_else(|| state.eased.target().start, |s| s.start);
            match f.matches.neighbour(from, forward) {
                Some(slice) => answer.commands.push(Command::Reveal(slice.id)),
                // Around the end, as searches do.
                None => answer.commands.extend(
                    f.matches
                        .neighbour(if forward { i64::MIN } else { i64::MAX }, forward)
                        .map(|s| Command::Reveal(s.id)),
                ),
            }
        }
        answer.commands
    }

    fn trace_choice(&mut self, ui: &mut Ui, data: &Data) {
        let before = self.trace_idx;
        let name = data.traces.get(before).map_or("", |t| &t.name);
        egui::ComboBox::from_label("trace").selected_text(name).show_ui(ui, |ui| {
            for (i, trace) in data.traces.iter().enumerate() {
                ui.selectable_value(&mut self.trace_idx, i, &*trace.name);
            }
        });
        if self.trace_idx != before {
            self.forget_trace();
        }
    }

    fn follow_selected_trace(&mut self, selection: &Selection) {
        let by_slice = selection.slice.get().filter(|_| selection.slice.by() != Some(ViewKind::Timeline));
        if let Some(pick) = by_slice
            && pick.trace_idx != self.trace_idx
            && self.seen.is_new(selection)
        {
            self.trace_idx = pick.trace_idx;
            self.forget_trace();
        }
        if let Some((trace_idx, _)) = selection.track.get()
            && *trace_idx != self.trace_idx
            && self.seen.is_new_track(selection)
        {
            self.trace_idx = *trace_idx;
            self.forget_trace();
        }
    }

    fn forget_trace(&mut self) {
        self.state = None;
        self.canvas = Canvas::default();
        self.facts = None;
        self.compare = None;
    }

    /// The panel under the picture: the selected slice, and the selected range or the comparison, side by side.
    #[expect(clippy::too_many_arguments, reason = "what is told of comes from many places")]
    fn bottom_ui(
        &mut self,
        ui: &mut Ui,
        data: &Data,
        upper: &Upper<'_>,
        state: &State,
        mut compare: Option<&mut Compare>,
        findings: Option<&Findings>,
        selection: &mut Selection,
    ) -> Vec<Command> {
        let below = compare.as_deref().filter(|c| c.has_selection());
        let (trace_idx, store, picked): (usize, &Store, &State) = match below {
            Some(c) => (c.trace_idx, &data.traces[c.trace_idx].store, &c.state),
            None => (upper.trace_idx, upper.store, state),
        };
        let is_below = below.is_some();
        let (slice, stall) = (picked.slice(store), picked.stall.clone());
        let has_details = slice.is_some() || stall.is_some();
        if !has_details && state.range.is_none() && compare.is_none() {
            return Vec::new();
        }
        if let Some(slice) = &slice {
            self.describe(trace_idx, store, slice);
        }
        let (mut of_picked, mut out) = (Vec::new(), Vec::new());
        side(ui, Edge::Bottom, "timeline details", Extent::Share(metrics::DETAILS_SHARE), |ui| {
            let n_columns = usize::from(has_details) + usize::from(state.range.is_some() || compare.is_some());
            crate::widgets::columns(ui, n_columns, |columns| {
                if let (true, Some(left)) = (has_details, columns.first_mut()) {
                    if let Some(stall) = &stall {
                        of_picked.extend(stalls::details_ui(left, store, stall));
                    }
                    if let Some((slice, described)) = slice.as_ref().zip(self.facts.as_ref()) {
                        egui::ScrollArea::both().id_salt("details").auto_shrink([false, false]).show(left, |ui| {
                            let name = store.slice_name(slice);
                            of_picked.extend(panels::details_ui(ui, name, &described.facts, selection));
                        });
                    }
                }
                let Some(right) = columns.get_mut(usize::from(has_details)) else { return };
                match (&mut compare, &state.range) {
                    (Some(compare), _) => compare.table_ui(right, data, upper, state),
                    (None, Some(range)) => {
                        let facts = findings.and_then(|f| f.range.as_deref());
                        out.extend(panels::range_ui(right, upper.store, range, state, facts));
                    }
                    (None, None) => {}
                }
            });
        });
        match compare.filter(|_| is_below) {
            Some(compare) => compare.ask(of_picked),
            None => out.extend(of_picked),
        }
        out
    }

    /// Looks up what there is to say of the selected slice, once for each version of its trace.
    fn describe(&mut self, trace_idx: usize, store: &Store, slice: &SliceRef) {
        let version = store.version();
        let is_known = |d: &Described| d.is_of(trace_idx, Some(slice.id)) && d.version == version;
        if !self.facts.as_ref().is_some_and(is_known) {
            let arrows = flows::arrows_of(store, slice);
            let facts = facts::facts(store, slice, &arrows);
            self.facts = Some(Described { trace_idx, slice: slice.id, version, facts, arrows });
        }
    }
}

impl Described {
    fn is_of(&self, trace_idx: usize, slice: Option<SliceId>) -> bool {
        self.trace_idx == trace_idx && Some(self.slice) == slice
    }
}

/// The log messages beside the picture.
fn log_ui(ui: &mut Ui, store: &Store, findings: Option<&Findings>, cursor: Option<i64>) -> Vec<Command> {
    let lines = findings.and_then(|f| f.log.as_deref()).map(Vec::as_slice);
    let usual = Extent::Points(1.5 * metrics::SIDE_W);
    let asked = side(ui, Edge::Right, "timeline log", usual, |ui| log::panel_ui(ui, store, lines, cursor));
    asked.into_iter().collect()
}

/// All there is to show: for a live trace up to now, as far as the clock of this machine goes.
fn whole_range(store: &Store) -> Range<i64> {
    let range = store.range();
    if !store.is_live() {
        return range;
    }
    // At most a second ahead of the newest event: a trace from elsewhere has another clock.
    let now = events::clock::mono_now().saturating_sub(store.origin_ns());
    range.start..now.clamp(range.end, range.end.saturating_add(1_000_000_000))
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("trace", Accepts::Text),
        ("below", Accepts::Text),
        ("slice", Accepts::Text),
        ("search", Accepts::Text),
        ("tracks", Accepts::Text),
        ("colour", Accepts::Words(state::ColorBy::ALL.iter().map(|by| by.name()).collect())),
        ("hidden", Accepts::List),
        ("folded", Accepts::List),
        ("processes", Accepts::List),
        ("pinned", Accepts::List),
        ("heights", Accepts::List),
        ("view", Accepts::Range),
        ("range", Accepts::Range),
        ("step", Accepts::Number),
        ("step-below", Accepts::Number),
        ("critical", Accepts::Flag),
        ("log", Accepts::Flag),
        ("follow", Accepts::Flag),
    ]
}
