//! A comparison of two steps: a second picture below the first, of another step of the same trace or of another trace.
//! Both have the same zoom and move as one.

use super::{
    TraceContext,
    compare_table::{CompareTable, TableKey, difference},
};
use crate::{
    Data, Selection,
    timeline::{
        analyser::{self, Analyser},
        canvas::Canvas,
        command::{Command, shifted},
        layers::Content,
        model::{
            ComparedStep, Question,
            facts::{facts, predecessor_of},
            flows::arrows_of,
            steps::{neighbour, other_step, same_step, step_near},
        },
        shared_selection,
        state::State,
        trace_choice::trace_choice,
    },
};
use egui::{Rect, RichText, Role, Ui};
use std::ops::Range;
use trace_model::Step;
use trace_store::Store;
use ui::{format, theme::palette, widgets::named};

/// The lower picture, B; the upper one is A.
pub struct Compare {
    pub trace_idx: usize,
    /// The state of the lower picture. Its view is the upper one's, shifted by [`Self::shift`].
    pub state: State,
    /// The two steps; `None` aligns the traces at their start.
    pub steps: Option<[ComparedStep; 2]>,
    canvas: Canvas,
    analyser: Analyser,
    table: CompareTable,
    /// Commands for the next frame.
    commands: Vec<Command>,
    /// The rectangle of the lower picture in the previous frame.
    rect: Rect,
}

/// Requests of the lower picture to the upper one.
#[derive(Default)]
pub struct CompareResponse {
    /// Commands for the upper picture.
    pub commands: Vec<Command>,
    /// Whether something was selected in the lower picture.
    pub has_selected: bool,
}

impl Compare {
    /// Compares the selected step, or the step in the middle of the view, with the same step of another trace; without
    /// another trace, with a typical step of this one.
    pub fn start(data: &Data, trace_idx: usize, store: &Store, state: &State) -> Result<Self, &'static str> {
        let other_idx = (0..data.traces.len()).find(|i| *i != trace_idx && !data.traces[*i].store.tracks().is_empty());
        let above = step_near(store, focus_time(store, state));
        if above.is_none() && other_idx.is_none() {
            return Err("The trace has no steps: open another one to compare it with");
        }
        let below_idx = other_idx.unwrap_or(trace_idx);
        let mut compare = Self::with_trace(data, below_idx);
        compare.steps = above.and_then(|step| pair(store, step, &data.traces[below_idx].store, below_idx == trace_idx));
        Ok(compare)
    }

    /// Shows another trace below, with the traces' starts aligned.
    pub fn with_trace(data: &Data, trace_idx: usize) -> Self {
        let store: &Store = &data.traces[trace_idx].store;
        Self {
            trace_idx,
            state: State::new(store, &store.range()),
            steps: None,
            canvas: Canvas::default(),
            analyser: Analyser::default(),
            table: CompareTable::default(),
            commands: Vec::new(),
            rect: Rect::NOTHING,
        }
    }

    /// Compares the steps that begin at these times, if both exist.
    pub fn align(&mut self, above: &Store, below: &Store, starts: [i64; 2]) {
        let step_at = |store: &Store, start: i64| {
            store.steps().iter().find(|s| s.start == start).map(|step| ComparedStep::new(store, step))
        };
        self.steps = step_at(above, starts[0]).zip(step_at(below, starts[1])).map(<[ComparedStep; 2]>::from);
    }

    /// The time of B minus the aligned time of A, ns.
    pub fn shift(&self, above: &Store, below: &Store) -> i64 {
        match &self.steps {
            Some([upper, lower]) => lower.range.start.saturating_sub(upper.range.start),
            None => below.range().start.saturating_sub(above.range().start),
        }
    }

    /// Clears the selection.
    pub fn deselect(&mut self) {
        (self.state.selected, self.state.stall) = (None, None);
    }

    /// The union of both traces' ranges, in times of A.
    pub fn view_bounds(&self, upper: &TraceContext<'_>) -> Range<i64> {
        let below: &Store = &upper.data.traces[self.trace_idx].store;
        let shift = self.shift(upper.store, below);
        union(upper.trace_range, &shifted(&below.range(), shift.saturating_neg()))
    }

    /// Whether a slice or stall is selected in the lower picture.
    pub fn has_selection(&self) -> bool {
        self.state.selected.is_some() || self.state.stall.is_some()
    }

    /// Adds commands for the next frame.
    pub fn queue(&mut self, commands: Vec<Command>) {
        self.commands.extend(commands);
    }

    /// The part of `panel` above the lower picture, as of the previous frame.
    pub fn rect_above(&self, panel: Rect) -> Rect {
        if self.rect.is_positive() { Rect::from_min_max(panel.min, self.rect.right_top()) } else { panel }
    }

    /// Replaces step A (`step_idx` 0) or B (1) by the next or previous step.
    pub fn go_to_step(&mut self, upper: &TraceContext<'_>, step_idx: usize, forward: bool) {
        let below: &Store = &upper.data.traces[self.trace_idx].store;
        let store = if step_idx == 0 { upper.store } else { below };
        let Some(steps) = &mut self.steps else { return };
        if let Some(step) = neighbour(store, &steps[step_idx].range, forward) {
            steps[step_idx] = ComparedStep::new(store, step);
        }
    }

    /// Shows the controls and the picture.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        upper: &TraceContext<'_>,
        state: &State,
        selection: &mut Selection,
    ) -> CompareResponse {
        let trace = &upper.data.traces[self.trace_idx];
        let store: &Store = &trace.store;
        let mut response = CompareResponse::default();
        self.rect = ui.max_rect();
        ui.horizontal(|ui| self.controls_ui(ui, upper, &mut response));
        let shift = self.shift(upper.store, store);
        self.state.eased = state.eased.shifted(shift);
        self.state.range = state.range.as_ref().map(|r| shifted(r, shift));
        (self.state.color_by, self.state.critical) = (state.color_by, state.critical);
        let view = self.state.eased.target();
        let question = Question {
            trace_idx: self.trace_idx,
            version: store.version(),
            view: view.range(),
            critical: state.critical,
            is_live: store.is_live(),
            ..Question::default()
        };
        let findings = analyser::findings(&mut self.analyser, ui.ctx(), &trace.store, question);
        let trace_range = store.range();
        let view_bounds = union(&trace_range, &shifted(upper.trace_range, shift));
        let slice = self.state.selected_slice(store);
        let arrows = slice.map(|slice| arrows_of(store, &slice)).unwrap_or_default();
        let predecessor = slice.and_then(|slice| predecessor_of(&facts(store, &slice, &arrows)));
        let content = Content {
            trace_idx: self.trace_idx,
            store,
            trace_range: &trace_range,
            findings: findings.as_deref().filter(|f| f.question.trace_idx == self.trace_idx),
            dims_others: false,
            panel: self.rect,
            predecessor,
            arrows: &arrows,
            notes: selection.notes.get(&trace.path).to_vec(),
        };
        let (commands, trace_idx) = (std::mem::take(&mut self.commands), self.trace_idx);
        let mut is_highlighted = false;
        self.canvas.ui(ui, &content, &mut self.state, commands, |state, command| {
            let Some(command) = state.resolve(command, store) else { return };
            shared_selection::publish(&command, trace_idx, store, selection, &mut is_highlighted);
            response.has_selected |= command.selects();
            if command.is_shared() {
                response.commands.push(command.shifted(shift.saturating_neg()));
            } else {
                state.apply(command, store, &view_bounds, upper.now);
            }
        });
        response.has_selected &= self.has_selection();
        if self.state.eased.target() != view {
            response.commands.push(Command::View(self.state.eased.target().shifted(shift.saturating_neg())));
        }
        response
    }

    /// Shows the controls: the lower trace, the two steps and their difference.
    fn controls_ui(&mut self, ui: &mut Ui, upper: &TraceContext<'_>, response: &mut CompareResponse) {
        let p = palette(ui);
        if ui.small_button("x").on_hover_text("End the comparison (V)").clicked() {
            response.commands.push(Command::ToggleCompare);
        }
        self.trace_choice(ui, upper);
        let Some([above, below]) = self.steps.clone() else {
            ui.label("The traces are aligned at their start");
            return;
        };
        for (step_idx, name, step) in [(0, "A", &above), (1, "B", &below)] {
            ui.colored_label(p.text_weak, name);
            for (text, forward, hint) in [("<", false, "Previous step"), (">", true, "Next step")] {
                let button = ui.small_button(text).on_hover_text(format!("{hint}, {name}"));
                named(&button, Role::Button, &format!("{hint}, {name}"));
                if button.clicked() {
                    self.go_to_step(upper, step_idx, forward);
                    let steps = self.steps.as_ref().map(|m| m[0].range.clone());
                    response.commands.extend(steps.filter(|_| step_idx == 0).map(Command::Show));
                }
            }
            ui.label(RichText::new(&step.name).color(p.text_strong));
            ui.label(format::duration_ns(step.range.end - step.range.start));
        }
        ui.colored_label(p.text_weak, "B against A:");
        ui.label(difference(&above.range, &below.range));
    }

    /// Shows the choice of the lower trace; a new choice finds the step's counterpart there.
    fn trace_choice(&mut self, ui: &mut Ui, upper: &TraceContext<'_>) {
        let (data, mut chosen) = (upper.data, self.trace_idx);
        trace_choice(ui, "B", data, &mut chosen);
        if chosen == self.trace_idx {
            return;
        }
        let above = self.steps.take().map(|[above, _]| above);
        let rect = self.rect;
        *self = Self { rect, ..Self::with_trace(data, chosen) };
        let step = above.as_ref().and_then(|m| step_near(upper.store, m.range.start)).or(upper.store.steps().first());
        let store: &Store = &data.traces[chosen].store;
        self.steps = step.and_then(|step| pair(upper.store, step, store, chosen == upper.trace_idx));
    }

    /// Shows the times of slice names in A and B: in the selected range, or else in the two steps, or in the view.
    pub fn table_ui(&mut self, ui: &mut Ui, upper: &TraceContext<'_>, state: &State) {
        let below = &upper.data.traces[self.trace_idx];
        let shift = self.shift(upper.store, &below.store);
        let (title, ranges) = match (&state.range, &self.steps) {
            (Some(range), _) => ("Selected range", [range.clone(), shifted(range, shift)]),
            (None, Some([above, below])) => ("Steps", [above.range.clone(), below.range.clone()]),
            (None, None) => {
                let view = state.eased.target().range();
                ("On the screen", [view.clone(), shifted(&view, shift)])
            }
        };
        let key = TableKey {
            traces: [upper.trace_idx, self.trace_idx],
            versions: [upper.store.version(), below.store.version()],
            ranges,
        };
        self.table.ui(ui, title, &key, || [upper.trace.store.shared(), below.store.shared()]);
    }
}

/// A step with its counterpart in the lower picture.
fn pair(above: &Store, step: &Step, below: &Store, is_same_trace: bool) -> Option<[ComparedStep; 2]> {
    let other = if is_same_trace { other_step(below, step) } else { same_step(below, step) };
    Some([ComparedStep::new(above, step), ComparedStep::new(below, other?)])
}

/// The start of the selected slice or stall, or else the middle of the view.
fn focus_time(store: &Store, state: &State) -> i64 {
    let slice = state.selected_slice(store).map(|s| s.start);
    let stall = || state.stall.as_ref().map(|s| s.start);
    let view = state.eased.target();
    slice.or_else(stall).unwrap_or_else(|| view.start.saturating_add(view.ns() / 2))
}

/// The range from the earlier start to the later end.
fn union(a: &Range<i64>, b: &Range<i64>) -> Range<i64> {
    a.start.min(b.start)..a.end.max(b.end)
}

#[cfg(test)]
impl Compare {
    /// The y of a lane's middle, below the top of all rows.
    pub fn lane_middle(&self, track: u32, lane: u32) -> Option<f32> {
        self.canvas.lane_middle(track, lane)
    }
}
