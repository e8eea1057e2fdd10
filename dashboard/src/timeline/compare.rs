//! Two moments below each other: a second picture under the first, of another step of the same trace or of another trace, moved
//! and zoomed as one with it; and what their names cost in each.

use super::{
    analysis::{Asker, Question},
    background::Background,
    canvas::{Canvas, Shown},
    facts, link,
    spread::{Spread, spreads},
    state::{Command, State},
};
use crate::{
    Data, Selection,
    data::{Shared, TraceData},
    format, natural,
    theme::{metrics, palette},
};
use egui::{Context, Rect, RichText, ScrollArea, Ui};
use profiler::{Step, Store};
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, ops::Range, sync::Arc};

/// Names that are listed, at most.
const MAX_ROWS: usize = 200;

/// A step that is laid above or below another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// What it is called: `train 12`.
    pub(super) name: String,
    /// Begin and end.
    pub(super) range: Range<i64>,
}

impl Moment {
    fn of(store: &Store, step: &Step) -> Self {
        let label = store.sites().get(step.site as usize).map_or("step", |s| &s.name);
        Self { name: format::step_name(label, step.summary_step), range: step.start..step.end }
    }
}

/// The picture below.
pub(super) struct Compare {
    /// Index of its trace.
    pub(super) trace_idx: usize,
    /// Its state; the view is the upper one's, moved by [`Self::shift`].
    pub(super) state: State,
    /// The two steps; without steps the traces' beginnings lie below each other.
    pub(super) moments: Option<[Moment; 2]>,
    canvas: Canvas,
    asker: Asker,
    table: Option<Background<Ask, Table>>,
    asked: Option<Key>,
    commands: Vec<Command>,
    /// Where it was in the frame before.
    rect: Rect,
}

/// Which ranges of which traces a table is of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    traces: [usize; 2],
    versions: [u64; 2],
    ranges: [Range<i64>; 2],
}

struct Ask {
    key: Key,
    stores: [Shared<Store>; 2],
}

/// What names cost above and below.
#[derive(Debug, PartialEq)]
struct Table {
    key: Key,
    rows: Vec<Row>,
}

/// What is called the same, above and below: how many slices, and their time, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    name: String,
    category: String,
    count: [u64; 2],
    ns: [i64; 2],
}

impl Row {
    fn more_ns(&self) -> i64 {
        self.ns[1] - self.ns[0]
    }
}

/// What a frame of the picture below asks of the one above.
#[derive(Default)]
pub(super) struct Answer {
    /// Commands for the upper picture.
    pub(super) commands: Vec<Command>,
    /// Something was selected below.
    pub(super) selected: bool,
    /// No comparison any more.
    pub(super) close: bool,
}

/// What both pictures are made from.
pub(super) struct Upper<'a> {
    pub(super) trace_idx: usize,
    pub(super) store: &'a Store,
    pub(super) whole: &'a Range<i64>,
    pub(super) now: f64,
}

impl Compare {
    /// Below the step that is selected, or else in the middle of the view: the same one of another trace, or a typical one of this.
    pub(super) fn start(data: &Data, trace_idx: usize, store: &Store, state: &State) -> Result<Self, &'static str> {
        let other = (0..data.traces.len()).find(|i| *i != trace_idx && !data.traces[*i].store.tracks().is_empty());
        let above = step_near(store, focus(store, state));
        if above.is_none() && other.is_none() {
            return Err("the trace has no steps: open another one to compare it with");
        }
        let below_idx = other.unwrap_or(trace_idx);
        let mut compare = Self::of(data, below_idx);
        let above = above.map(|step| (Moment::of(store, step), *step));
        compare.moments = above.and_then(|(above, step)| {
            let below: &Store = &data.traces[below_idx].store;
            let found = if below_idx == trace_idx { other_step(below, &step) } else { same_step(below, &step) };
            Some([above, Moment::of(below, found?)])
        });
        Ok(compare)
    }

    /// Another trace below, beginnings aligned.
    pub(super) fn of(data: &Data, trace_idx: usize) -> Self {
        let store: &Store = &data.traces[trace_idx].store;
        Self {
            trace_idx,
            state: State::new(store, &store.range()),
            moments: None,
            canvas: Canvas::default(),
            asker: Asker::default(),
            table: None,
            asked: None,
            commands: Vec::new(),
            rect: Rect::NOTHING,
        }
    }

    /// The steps that begin at these times below each other, where both exist.
    pub(super) fn lay(&mut self, above: &Store, below: &Store, starts: [i64; 2]) {
        let at = |store: &Store, start: i64| {
            store.steps().iter().find(|s| s.start == start).map(|step| Moment::of(store, step))
        };
        self.moments = at(above, starts[0]).zip(at(below, starts[1])).map(<[Moment; 2]>::from);
    }

    /// What is added to a time above for the time below it.
    pub(super) fn shift(&self, above: &Store, below: &Store) -> i64 {
        match &self.moments {
            Some([upper, lower]) => lower.range.start.saturating_sub(upper.range.start),
            None => below.range().start.saturating_sub(above.range().start),
        }
    }

    /// Selects nothing.
    pub(super) fn deselect(&mut self) {
        (self.state.selected, self.state.stall) = (None, None);
    }

    /// How far the upper view may go: over both traces.
    pub(super) fn reach(&self, data: &Data, upper: &Upper<'_>) -> Range<i64> {
        let below: &Store = &data.traces[self.trace_idx].store;
        let shift = self.shift(upper.store, below);
        union(upper.whole, &moved(&below.range(), shift.saturating_neg()))
    }

    /// Whether something is selected here.
    pub(super) fn has_selection(&self) -> bool {
        self.state.selected.is_some() || self.state.stall.is_some()
    }

    /// Commands for this picture in the next frame.
    pub(super) fn ask(&mut self, commands: Vec<Command>) {
        self.commands.extend(commands);
    }

    /// The panel above the picture that was shown in the frame before.
    pub(super) fn rest_of(&self, panel: Rect) -> Rect {
        if self.rect.is_positive() { Rect::from_min_max(panel.min, self.rect.right_top()) } else { panel }
    }

    /// Goes to the step after or before, below.
    pub(super) fn next(&mut self, data: &Data, which: usize, upper: &Upper<'_>, forward: bool) {
        let below: &Store = &data.traces[self.trace_idx].store;
        let store = if which == 0 { upper.store } else { below };
        let Some(moments) = &mut self.moments else { return };
        if let Some(step) = neighbour(store, &moments[which].range, forward) {
            moments[which] = Moment::of(store, step);
        }
    }

    /// The bar and the picture.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        data: &Data,
        upper: &Upper<'_>,
        state: &State,
        selection: &mut Selection,
    ) -> Answer {
        let trace = &data.traces[self.trace_idx];
        let store: &Store = &trace.store;
        let mut answer = Answer::default();
        self.rect = ui.max_rect();
        ui.horizontal(|ui| self.bar(ui, data, upper, &mut answer));
        let shift = self.shift(upper.store, store);
        self.state.eased = state.eased.shifted(shift);
        self.state.range = state.range.as_ref().map(|r| moved(r, shift));
        (self.state.color_by, self.state.critical) = (state.color_by, state.critical);
        let view = self.state.eased.target();
        let question = Question {
            trace_idx: self.trace_idx,
            version: store.version(),
            view: view.range(),
            critical: state.critical,
            ..Question::default()
        };
        let findings = self.asker.findings(ui.ctx(), &trace.store, question, upper.now);
        let whole = store.range();
        let reach = union(&whole, &moved(upper.whole, shift));
        let described = self.state.slice(store).map(|slice| super::flows::arrows_of(store, &slice));
        let arrows = described.unwrap_or_default();
        let slice = self.state.slice(store);
        let before = slice.and_then(|slice| facts::predecessor_of(&facts::facts(store, &slice, &arrows)));
        let shown = Shown {
            trace_idx: self.trace_idx,
            store,
            whole: &whole,
            findings: findings.as_deref().filter(|f| f.question.trace_idx == self.trace_idx),
            dims: false,
            panel: self.rect,
            before,
            arrows: &arrows,
            notes: selection.notes.of(&trace.path).to_vec(),
        };
        let (commands, trace_idx) = (std::mem::take(&mut self.commands), self.trace_idx);
        let mut stands_out = false;
        self.canvas.ui(ui, &shown, &mut self.state, commands, |state, command| {
            link::tell(&command, trace_idx, state, store, selection, &mut stands_out);
            answer.selected |= selects(&command);
            if is_of_both(&command) {
                answer.commands.push(with_times_moved(command, shift));
            } else {
                state.apply(command, store, &reach, upper.now);
            }
        });
        answer.selected &= self.has_selection();
        if self.state.eased.target() != view {
            answer.commands.push(Command::View(self.state.eased.target().shifted(shift.saturating_neg())));
        }
        answer
    }

    /// What lies below what, in words and to be chosen.
    fn bar(&mut self, ui: &mut Ui, data: &Data, upper: &Upper<'_>, answer: &mut Answer) {
        let p = palette(ui);
        if ui.small_button("x").on_hover_text("End the comparison (V)").clicked() {
            answer.close = true;
        }
        if data.traces.len() > 1 {
            self.trace_choice(ui, data, upper);
        }
        let Some([above, below]) = self.moments.clone() else {
            ui.label("The traces begin below each other.");
            return;
        };
        for (which, what, moment) in [(0, "above", &above), (1, "below", &below)] {
            ui.colored_label(p.text_weak, what);
            for (text, forward, hint) in [("<", false, "The step before"), (">", true, "The step after")] {
                let button = ui.small_button(text).on_hover_text(format!("{hint}, {what}"));
                crate::widgets::named(&button, egui::Role::Button, &format!("{hint}, {what}"));
                if button.clicked() {
                    self.next(data, which, upper, forward);
                    let moments = self.moments.as_ref().map(|m| m[0].range.clone());
                    answer.commands.extend(moments.filter(|_| which == 0).map(Command::Show));
                }
            }
            ui.label(RichText::new(&moment.name).color(p.text_strong));
            ui.label(format::duration_ns(moment.range.end - moment.range.start));
        }
        ui.colored_label(p.text_weak, "the lower step is").on_hover_text("Compared with the upper one");
        ui.label(difference(&above.range, &below.range));
    }

    fn trace_choice(&mut self, ui: &mut Ui, data: &Data, upper: &Upper<'_>) {
        let mut chosen = self.trace_idx;
        let name = |i: usize| data.traces.get(i).map_or("", |t: &TraceData| &t.name);
        egui::ComboBox::from_label("below").selected_text(name(chosen)).show_ui(ui, |ui| {
            for i in 0..data.traces.len() {
                ui.selectable_value(&mut chosen, i, name(i));
            }
        });
        if chosen == self.trace_idx {
            return;
        }
        let above = self.moments.take().map(|[above, _]| above);
        let rect = self.rect;
        *self = Self { rect, ..Self::of(data, chosen) };
        let step = above.as_ref().and_then(|m| step_near(upper.store, m.range.start)).or(upper.store.steps().first());
        let store: &Store = &data.traces[chosen].store;
        let same = chosen == upper.trace_idx;
        let found = step.and_then(|s| if same { other_step(store, s) } else { same_step(store, s) });
        self.moments = step.zip(found).map(|(a, b)| [Moment::of(upper.store, a), Moment::of(store, b)]);
    }

    /// What names cost above and below: of the selected range, or else of the two steps, or of what is shown.
    pub(super) fn table_ui(&mut self, ui: &mut Ui, data: &Data, upper: &Upper<'_>, state: &State) {
        let below = &data.traces[self.trace_idx];
        let shift = self.shift(upper.store, &below.store);
        let ranges = match (&state.range, &self.moments) {
            (Some(range), _) => [range.clone(), moved(range, shift)],
            (None, Some([above, below])) => [above.range.clone(), below.range.clone()],
            (None, None) => {
                let view = state.eased.target().range();
                [view.clone(), moved(&view, shift)]
            }
        };
        let key = Key {
            traces: [upper.trace_idx, self.trace_idx],
            versions: [upper.store.version(), below.store.version()],
            ranges,
        };
        let stores = || [data.traces[upper.trace_idx].store.shared(), below.store.shared()];
        let title = if state.range.is_some() { "Selected range" } else { "Steps" };
        let title = if self.moments.is_some() || state.range.is_some() { title } else { "On the screen" };
        let text = format!("{title}, below against above: {}", difference(&key.ranges[0], &key.ranges[1]));
        ui.label(RichText::new(text).color(palette(ui).text_strong).size(metrics::TEXT_TITLE));
        match self.table_of(ui.ctx(), &key, stores) {
            Some(table) => rows_ui(ui, &table.rows),
            None => {
                ui.label("counting");
            }
        }
    }

    fn table_of(&mut self, ctx: &Context, key: &Key, stores: impl Fn() -> [Shared<Store>; 2]) -> Option<Arc<Table>> {
        let table = self.table.get_or_insert_with(|| {
            let ctx = ctx.clone();
            Background::start("timeline comparison", answer, move || ctx.request_repaint())
        });
        let result = table.result();
        if self.asked.as_ref() != Some(key) && !table.is_busy() {
            table.request(Ask { key: key.clone(), stores: stores() });
            self.asked = Some(key.clone());
        }
        // While the view moves or a trace grows, the table of a moment ago stands.
        result.filter(|t| t.key.traces == key.traces)
    }
}

fn answer(ask: Ask) -> Table {
    let [above, below] = &ask.stores;
    let mut rows: FxHashMap<(String, String), Row> = FxHashMap::default();
    for (side, store, range) in [(0, above, &ask.key.ranges[0]), (1, below, &ask.key.ranges[1])] {
        // Recursive: as in `analysis::answer`.
        for spread in spreads(&store.read_recursive(), range) {
            let Spread { name, category, .. } = spread;
            let row = rows.entry((category.clone(), name.clone()));
            let row = row.or_insert_with(|| Row { name, category, ..Row::default() });
            row.count[side] += spread.count;
            row.ns[side] += spread.total_ns;
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    let most = |row: &Row| Reverse(row.more_ns().abs());
    rows.sort_by(|a, b| most(a).cmp(&most(b)).then_with(|| natural::order(&a.name, &b.name)));
    Table { key: ask.key, rows }
}

fn rows_ui(ui: &mut Ui, rows: &[Row]) {
    let p = palette(ui);
    ScrollArea::both().id_salt("comparison").auto_shrink([false, false]).show(ui, |ui| {
        egui::Grid::new("comparison").num_columns(8).striped(true).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
            for title in ["Name", "Category", "Above", "Below", "More below", "Slices above", "below"] {
                ui.label(RichText::new(title).color(p.text_weak));
            }
            ui.end_row();
            for row in rows.iter().take(MAX_ROWS) {
                let name: String = row.name.chars().take(60).collect();
                ui.label(name);
                ui.label(RichText::new(&row.category).color(p.text_weak));
                for ns in row.ns {
                    number(ui, RichText::new(format::duration_ns(ns)));
                }
                let more = row.more_ns();
                let sign = if more > 0 { "+" } else { "" };
                let colour = if more > 0 { p.warning } else { p.text };
                number(ui, RichText::new(format!("{sign}{}", format::duration_ns(more))).color(colour));
                for count in row.count {
                    number(ui, RichText::new(format::count(count)));
                }
                // The last column takes all the width that is left.
                ui.label("");
                ui.end_row();
            }
        });
        if rows.len() > MAX_ROWS {
            ui.label(format!("and {} more", rows.len() - MAX_ROWS));
        }
    });
}

fn number(ui: &mut Ui, text: RichText) {
    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| ui.label(text));
}

/// `290 µs longer (18 %)`.
fn difference(above: &Range<i64>, below: &Range<i64>) -> String {
    let (a, b) = (above.end - above.start, below.end - below.start);
    let share = format::percent((b - a).abs() as f64 / a.max(1) as f64);
    match b.cmp(&a) {
        std::cmp::Ordering::Equal => "as long".to_owned(),
        std::cmp::Ordering::Greater => format!("{} longer ({share})", format::duration_ns(b - a)),
        std::cmp::Ordering::Less => format!("{} shorter ({share})", format::duration_ns(a - b)),
    }
}

/// The time that the user looks at.
fn focus(store: &Store, state: &State) -> i64 {
    let slice = state.slice(store).map(|s| s.start);
    let stall = || state.stall.as_ref().map(|s| s.start);
    let view = state.eased.target();
    slice.or_else(stall).unwrap_or_else(|| view.start.saturating_add(view.ns() / 2))
}

/// The step that covers a time, or else the one that begins nearest to it.
fn step_near(store: &Store, time: i64) -> Option<&Step> {
    let covers = store.steps().iter().rev().find(|s| (s.start..s.end).contains(&time));
    covers.or_else(|| store.steps().iter().min_by_key(|s| s.start.abs_diff(time)))
}

/// The process of a step, and what it is called: steps of one kind are compared.
fn kind(store: &Store, step: &Step) -> (u32, u32) {
    (store.tracks().get(step.slice.track as usize).map_or(u32::MAX, |t| t.process), step.site)
}

/// Of the same trace: the step of its kind whose length is the median, or else the one after or before.
fn other_step<'a>(store: &'a Store, than: &Step) -> Option<&'a Step> {
    let mut all: Vec<&Step> = store.steps().iter().filter(|s| kind(store, s) == kind(store, than)).collect();
    all.sort_by_key(|s| (s.end - s.start, s.start));
    let typical = all.get(all.len() / 2).copied().filter(|s| s.start != than.start);
    typical.or_else(|| {
        let range = than.start..than.end;
        neighbour(store, &range, true).or_else(|| neighbour(store, &range, false))
    })
}

/// Of another trace: the step with the same number, or else a typical one.
fn same_step<'a>(store: &'a Store, step: &Step) -> Option<&'a Step> {
    let same = store.steps().iter().find(|s| s.summary_step == step.summary_step);
    same.or_else(|| {
        let mut all: Vec<&Step> = store.steps().iter().collect();
        all.sort_by_key(|s| (s.end - s.start, s.start));
        all.get(all.len() / 2).copied()
    })
}

/// The next or previous step of the same kind.
fn neighbour<'a>(store: &'a Store, of: &Range<i64>, forward: bool) -> Option<&'a Step> {
    let steps = store.steps();
    let this = steps.iter().find(|s| s.start == of.start && s.end == of.end)?;
    let is_next = |s: &&Step| kind(store, s) == kind(store, this);
    if forward {
        steps.iter().filter(is_next).find(|s| s.start > of.start)
    } else {
        steps.iter().rev().filter(is_next).find(|s| s.start < of.start)
    }
}

/// Commands that pick something in one picture.
pub(super) fn selects(command: &Command) -> bool {
    let picks = matches!(command, Command::Select(_) | Command::Reveal(_) | Command::SelectStall(_));
    picks || (walks(command) && *command != Command::Fit)
}

/// Commands that go on from what is selected.
pub(super) fn walks(command: &Command) -> bool {
    matches!(command, Command::SameName { .. } | Command::AlongFlow { .. } | Command::Fit)
}

/// Commands that start, end or change the comparison.
pub(super) fn is_of_comparison(command: &Command) -> bool {
    matches!(command, Command::ToggleCompare | Command::CompareStep { .. })
}

/// Commands that both pictures share, and that the upper one's state carries out.
fn is_of_both(command: &Command) -> bool {
    matches!(
        command,
        Command::SelectRange(_)
            | Command::ColorBy(_)
            | Command::ToggleCritical
            | Command::ToggleLog
            | Command::ToggleFollow
            | Command::FocusSearch
            | Command::SelectNode(_)
    ) || is_of_comparison(command)
}

fn with_times_moved(command: Command, shift: i64) -> Command {
    match command {
        Command::SelectRange(Some(range)) => Command::SelectRange(Some(moved(&range, shift.saturating_neg()))),
        other => other,
    }
}

fn moved(range: &Range<i64>, by: i64) -> Range<i64> {
    range.start.saturating_add(by)..range.end.saturating_add(by)
}

/// All that either has.
fn union(a: &Range<i64>, b: &Range<i64>) -> Range<i64> {
    a.start.min(b.start)..a.end.max(b.end)
}

#[cfg(test)]
impl Compare {
    /// Middle of a lane relative to the top of all rows.
    pub(super) fn lane_middle(&self, track: u32, lane: u32) -> Option<f32> {
        self.canvas.lane_middle(track, lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::ReadGuard, timeline::testing::demo};

    #[test]
    fn names_are_summed_above_and_below() {
        let (above, below) = (ReadGuard::owned(demo(3)), ReadGuard::owned(demo(2)));
        let ranges = [104_000..203_000, 0..300_000];
        let key = Key { traces: [0, 1], versions: [0, 0], ranges: ranges.clone() };
        let table = answer(Ask { key, stores: [above.shared(), below.shared()] });
        let expected = |store: &Store, range: &Range<i64>, row: &Row| {
            let found = spreads(store, range).into_iter().find(|s| s.name == row.name && s.category == row.category);
            found.map_or((0, 0), |s| (s.count, s.total_ns))
        };
        assert!(!table.rows.is_empty());
        for row in &table.rows {
            assert_eq!((row.count[0], row.ns[0]), expected(&above, &ranges[0], row), "{}", row.name);
            assert_eq!((row.count[1], row.ns[1]), expected(&below, &ranges[1], row), "{}", row.name);
        }
        assert!(table.rows.is_sorted_by_key(|r| Reverse(r.more_ns().abs())));
    }

    #[test]
    fn lengths_in_words() {
        assert_eq!(difference(&(0..100), &(50..150)), "as long");
        assert_eq!(difference(&(0..1_000), &(0..1_250)), "250 ns longer (25.0 %)");
        assert_eq!(difference(&(0..1_000), &(0..500)), "500 ns shorter (50.0 %)");
        assert_eq!(difference(&(0..0), &(0..1)), "1 ns longer (100.0 %)");
    }
}
