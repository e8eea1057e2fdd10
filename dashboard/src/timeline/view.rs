//! The timeline as a panel of the window: one trace, or two that are compared.

use super::{
    address,
    analyser::{self, Analyser},
    canvas::Canvas,
    command::Command,
    csv, input,
    layers::Content,
    model::{Findings, Query, Question, facts::predecessor_of},
    panels::{
        TraceContext,
        bottom::BottomPanel,
        compare::Compare,
        log, notes,
        toolbar::{SearchState, ToolbarContext, toolbar_ui},
    },
    shared_selection::{self, SelectionRevisions},
    state::State,
    trace_choice::{trace_choice, trace_name},
};
use crate::{
    Data, Selection, View, ViewKind,
    command::Entry,
    data::{Status, TraceData},
};
use egui::{Rect, Ui};
use std::{ops::Range, sync::Arc};
use trace_store::Store;
use ui::address::Params;
use ui::{
    theme::metrics,
    widgets::{Edge, Extent, empty_state, side, toolbar},
};

/// Time between frames of a followed trace without new slices, seconds.
const FOLLOW_IDLE_S: f32 = 0.2;

/// The panel's state.
#[derive(Default)]
pub struct TimelineView {
    trace_idx: usize,
    pub(super) state: Option<State>,
    pub(super) canvas: Canvas,
    search: String,
    focus_search: bool,
    /// A request for the next (true) or the previous match, until the matches are known.
    go_to_match: Option<bool>,
    /// Whether a node that was selected in this panel is highlighted here too, as after a click on a link, or only in
    /// other panels.
    highlights_own_node: bool,
    analyser: Analyser,
    /// The lower canvas, during a comparison.
    pub(super) compare: Option<Compare>,
    bottom: BottomPanel,
    revisions: SelectionRevisions,
    /// Commands for the next frame.
    pub(super) next_commands: Vec<Command>,
    /// The address to go to in the next frame.
    destination: Option<Params>,
}

impl View for TimelineView {
    fn kind(&self) -> ViewKind {
        ViewKind::Timeline
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        self.follow_selected_trace(selection);
        if let Some(params) = &self.destination {
            let named_idx = params.get("trace").and_then(|name| data.traces.iter().position(|t| *t.name == *name));
            if let Some(idx) = named_idx {
                self.set_trace(idx);
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
                Some((false, _)) => "The trace could not be read. See Warnings (top right).",
                Some((true, Status::Finished)) => "It has ended without any slices.",
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
        self.next_commands.extend(input::command_by_id(id));
    }

    fn address(&self, data: &Data) -> Params {
        let mut out = Params::default();
        out.set_some("trace", trace_name(data, self.trace_idx));
        let Some(state) = &self.state else { return out };
        address::set_state(&mut out, state);
        if let Some(compare) = &self.compare {
            address::set_comparison(&mut out, compare, data);
        }
        out.set_some("search", Some(&self.search).filter(|s| !s.is_empty()));
        out
    }

    fn go_to(&mut self, params: &Params) {
        self.destination = Some(params.clone());
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        Some(csv::csv(&data.traces.get(self.trace_idx)?.store, self.state.as_ref()?))
    }
}

impl TimelineView {
    fn trace_ui(&mut self, ui: &mut Ui, data: &Data, trace: &TraceData, selection: &mut Selection) {
        let store: &Store = &trace.store;
        let panel = ui.max_rect();
        let now = ui.input(|i| i.time);
        let trace_range = trace_range(store);
        let mut state = self.state.take().unwrap_or_else(|| State::new(store, &trace_range));
        // A finished trace has no end to follow; following it would request frames forever.
        state.follow &= store.is_live();
        state.follow_end(&trace_range, store.range().end, now);
        let mut commands = self.revisions.new_commands(self.trace_idx, store, selection, &state);
        commands.append(&mut self.next_commands);
        if let Some(params) = self.destination.take() {
            self.search = params.get("search").unwrap_or_default().to_owned();
            commands.extend(address::apply(&params, &mut state, store, &trace_range));
            self.compare = address::comparison(&params, data, store);
        }
        let findings = self.findings(ui, trace, &state, selection);
        let findings = findings.as_deref();
        let cx =
            TraceContext { data, trace_idx: self.trace_idx, trace, store, trace_range: &trace_range, findings, now };

        commands
            .extend(toolbar(ui, |ui| ui.horizontal_wrapped(|ui| self.toolbar_ui(ui, &cx, &state, selection)).inner));
        if state.log {
            commands.extend(log_ui(ui, store, findings, state.cursor));
        }
        let has_trace = |c: &Compare| data.traces.get(c.trace_idx).is_some_and(|t| !t.store.tracks().is_empty());
        self.compare = self.compare.take().filter(has_trace);
        commands.extend(self.bottom.ui(ui, &cx, &state, self.compare.as_mut(), selection));
        self.canvases_ui(ui, &cx, panel, &mut state, commands, selection);
        shared_selection::publish_range(self.trace_idx, &state, selection);
        if let Some(time) = state.edited_note {
            let mut all_notes = selection.notes.get(&trace.path).to_vec();
            if notes::editor_ui(ui.ctx(), &mut all_notes, time) {
                state.edited_note = None;
            }
            selection.notes.set(&trace.path, all_notes);
        }
        if state.eased.is_moving(now) {
            ui.ctx().request_repaint();
        } else if state.follow {
            // The loader requests frames for new slices. Without any, the view still moves with the time.
            ui.ctx().request_repaint_after_secs(FOLLOW_IDLE_S);
        }
        self.state = Some(state);
    }

    /// Shows the canvas, and during a comparison a second one below. `panel`: the panel's rectangle, toolbar and
    /// details included.
    fn canvases_ui(
        &mut self,
        ui: &mut Ui,
        cx: &TraceContext<'_>,
        panel: Rect,
        state: &mut State,
        commands: Vec<Command>,
        selection: &mut Selection,
    ) {
        let dims_others = !self.query(selection).is_empty();
        let mut compare = self.compare.take();
        let details = self.bottom.details(self.trace_idx, state.selected);
        let content = Content {
            trace_idx: self.trace_idx,
            store: cx.store,
            trace_range: cx.trace_range,
            findings: cx.findings.filter(|f| f.question.trace_idx == self.trace_idx),
            dims_others,
            panel: compare.as_ref().map_or(panel, |c| c.rect_above(panel)),
            predecessor: details.and_then(|d| predecessor_of(&d.facts)),
            arrows: details.map_or(&[], |d| &d.arrows),
            notes: selection.notes.get(&cx.trace.path).to_vec(),
        };
        let view_bounds = compare.as_ref().map_or_else(|| cx.trace_range.clone(), |c| c.view_bounds(cx));
        let selected_below = compare.as_ref().is_some_and(Compare::has_selection);
        let (mut has_selected, mut comparison_commands, mut commands_below) = (false, Vec::new(), Vec::new());
        let draw = |ui: &mut Ui| {
            self.canvas.ui(ui, &content, state, commands, |state, command| {
                // Commands that start from the selected slice go to the canvas that has it, which may be the lower one.
                if selected_below && command.needs_selection() {
                    return commands_below.push(command);
                }
                let Some(command) = state.resolve(command, cx.store) else { return };
                let is_highlighted = &mut self.highlights_own_node;
                shared_selection::publish(&command, cx.trace_idx, cx.store, selection, is_highlighted);
                self.focus_search |= command == Command::FocusSearch;
                has_selected |= command.selects();
                if command.changes_comparison() {
                    comparison_commands.push(command.clone());
                }
                state.apply(command, cx.store, &view_bounds, cx.now);
            });
        };
        match &mut compare {
            None => draw(ui),
            Some(compare) => {
                side(ui, Edge::Top, "timeline above", Extent::Share(0.5), draw);
                if has_selected {
                    compare.deselect();
                }
                compare.queue(commands_below);
                let response = compare.ui(ui, cx, state, selection);
                if response.has_selected {
                    (state.selected, state.stall) = (None, None);
                }
                self.next_commands.extend(response.commands);
                if !self.next_commands.is_empty() {
                    ui.ctx().request_repaint();
                }
            }
        }
        self.compare = compare;
        self.change_comparison(&comparison_commands, cx, state);
    }

    /// Starts or ends a comparison, or compares with another step.
    fn change_comparison(&mut self, commands: &[Command], cx: &TraceContext<'_>, state: &mut State) {
        for command in commands {
            match (command, &mut self.compare) {
                (Command::CompareStep { forward }, Some(compare)) => compare.go_to_step(cx, 1, *forward),
                (_, Some(_)) => self.compare = None,
                (_, None) => match Compare::start(cx.data, cx.trace_idx, cx.store, state) {
                    Ok(compare) => {
                        self.next_commands.extend(compare.steps.as_ref().map(|s| Command::Show(s[0].range.clone())));
                        self.compare = Some(compare);
                    }
                    Err(notice) => state.notice = Some(notice),
                },
            }
        }
    }

    /// The query for highlighted slices: the search text, and the node or op that another panel selected.
    pub(super) fn query(&self, selection: &Selection) -> Query {
        let is_muted = selection.node.changed_by() == Some(ViewKind::Timeline) && !self.highlights_own_node;
        Query {
            node: selection.node.get().filter(|_| !is_muted).cloned(),
            op: selection.op.get().cloned(),
            text: self.search.trim().to_lowercase(),
        }
    }

    /// Requests new findings where they are due; returns the latest.
    fn findings(&mut self, ui: &Ui, trace: &TraceData, state: &State, selection: &Selection) -> Option<Arc<Findings>> {
        let question = Question {
            trace_idx: self.trace_idx,
            version: trace.store.version(),
            view: state.eased.target().range(),
            range: state.range.clone(),
            query: self.query(selection),
            critical: state.critical,
            log: state.log,
            is_live: trace.store.is_live(),
        };
        analyser::findings(&mut self.analyser, ui.ctx(), &trace.store, question)
    }

    fn toolbar_ui(
        &mut self,
        ui: &mut Ui,
        cx: &TraceContext<'_>,
        state: &State,
        selection: &mut Selection,
    ) -> Vec<Command> {
        let mut chosen = self.trace_idx;
        trace_choice(ui, "Trace", cx.data, &mut chosen);
        self.set_trace(chosen);
        let query = self.query(selection);
        let matches = cx.findings.filter(|f| f.question.query == query).map(|f| &*f.matches);
        let search = SearchState {
            highlight: query.node.as_deref().or(query.op.as_deref()),
            text: &mut self.search,
            takes_focus: std::mem::take(&mut self.focus_search),
            count: matches.map(|m| m.count),
        };
        let notes = cx.data.traces.get(self.trace_idx).map_or(&[][..], |t| selection.notes.get(&t.path));
        let toolbar =
            ToolbarContext { state, is_live: cx.store.is_live(), rows: self.canvas.rows(), notes, now: cx.now };
        let mut response = toolbar_ui(ui, &toolbar, search);
        // The request waits until the matches are known.
        self.go_to_match = response.go_to_match.or(self.go_to_match);
        if let Some(matches) = matches
            && let Some(forward) = self.go_to_match.take()
        {
            let from = state.selected_slice(cx.store).map_or_else(|| state.eased.target().start, |s| s.start);
            // After the last match the search starts over.
            let first = if forward { i64::MIN } else { i64::MAX };
            let next = matches.neighbour(from, forward).or_else(|| matches.neighbour(first, forward));
            response.commands.extend(next.map(|s| Command::Reveal(s.id)));
        }
        response.commands
    }

    /// Switches to the trace of the slice or track that another panel has selected.
    fn follow_selected_trace(&mut self, selection: &Selection) {
        let by_slice = selection.slice.get().filter(|_| selection.slice.changed_by() != Some(ViewKind::Timeline));
        if let Some(pick) = by_slice.filter(|_| self.revisions.has_new_slice(selection)) {
            self.set_trace(pick.trace_idx);
        }
        if let Some((trace_idx, _)) = selection.track.get().filter(|_| self.revisions.has_new_track(selection)) {
            self.set_trace(*trace_idx);
        }
    }

    /// Shows another trace and drops everything that is cached of the previous one.
    fn set_trace(&mut self, idx: usize) {
        if idx != self.trace_idx {
            self.trace_idx = idx;
            self.state = None;
            self.canvas = Canvas::default();
            self.bottom = BottomPanel::default();
            self.compare = None;
        }
    }
}

/// Shows the log messages to the right of the canvas; returns the commands of clicks.
fn log_ui(ui: &mut Ui, store: &Store, findings: Option<&Findings>, cursor: Option<i64>) -> Vec<Command> {
    let lines = findings.and_then(|f| f.log.as_deref()).map(Vec::as_slice);
    let default_width = Extent::Points(1.5 * metrics::SIDE_W);
    let commands = side(ui, Edge::Right, "timeline log", default_width, |ui| log::panel_ui(ui, store, lines, cursor));
    commands.into_iter().collect()
}

/// A trace's range of time; a live trace ends now, on this machine's clock.
fn trace_range(store: &Store) -> Range<i64> {
    let range = store.range();
    if !store.is_live() {
        return range;
    }
    // At most a second after the newest event, as a trace of another machine has another clock.
    let now = events::clock::mono_now().saturating_sub(store.origin_ns());
    range.start..now.clamp(range.end, range.end.saturating_add(1_000_000_000))
}
