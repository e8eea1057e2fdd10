//! What is above and under the picture: the bar with the controls, the selected slice's details, the range's statistics.

use super::{
    analysis::RangeFacts,
    facts::{Fact, Link},
    flame,
    model::Rows,
    state::{ColorBy, Command, RangeTab, State},
    ticks,
    viewport::Viewport,
};
use crate::{
    Selection, ViewKind,
    config::Note,
    format,
    theme::{metrics, palette},
    widgets::{at_the_end, focus_all, together},
};
use egui::{RichText, ScrollArea, TextEdit, Ui};
use profiler::Store;
use std::ops::Range;

/// What the search box shows beside its text.
pub struct SearchState<'a> {
    /// What is typed.
    pub text: &'a mut String,
    /// Whether to put the cursor into the box.
    pub focus: bool,
    /// How many slices match, when that is known.
    pub count: Option<u64>,
    /// What another panel picked, by name: its slices stand out.
    pub picked: Option<&'a str>,
}

/// What the bar asks for beside commands.
#[derive(Default)]
pub struct BarAnswer {
    /// Commands.
    pub commands: Vec<Command>,
    /// Go to the next match (true) or the one before.
    pub go_to_match: Option<bool>,
}

/// What the bar shows.
pub struct Bar<'a> {
    /// The panel's state.
    pub state: &'a State,
    /// Whether the trace grows.
    pub is_live: bool,
    /// What is below.
    pub rows: &'a Rows,
    /// The trace's bookmarks.
    pub notes: &'a [Note],
    /// Of the frame, seconds.
    pub now: f64,
}

/// The bar over the timeline, in a row that wraps.
pub fn bar_ui(ui: &mut Ui, bar: &Bar<'_>, mut search: SearchState<'_>) -> BarAnswer {
    let mut answer = BarAnswer::default();
    let out = &mut answer.commands;
    together(ui, "view", |ui| view_ui(ui, bar, out));
    together(ui, "marks", |ui| marks_ui(ui, bar, out));
    together(ui, "filter", |ui| filter_ui(ui, bar.state, out));
    together(ui, "search", |ui| search_ui(ui, &mut search, &mut answer));
    state_ui(ui, bar, search.picked, &mut answer.commands);
    let view = bar.state.eased.view(bar.now);
    at_the_end(ui, &format!("{} ({})", ticks::view_text(view), format::duration_ns(view.ns())));
    answer
}

/// Which part of the trace is shown.
fn view_ui(ui: &mut Ui, bar: &Bar<'_>, out: &mut Vec<Command>) {
    if ui.button("Whole").on_hover_text("Show the whole trace (0)").clicked() {
        out.push(Command::Whole);
    }
    if ui.button("Fit").on_hover_text("Show the selected slice or range (F)").clicked() {
        out.push(Command::Fit);
    }
    let is_following = bar.state.follow;
    let follow = ui.add_enabled(bar.is_live || is_following, egui::Button::selectable(is_following, "Follow"));
    if follow.on_hover_text("Keep up with the live trace (L)").clicked() {
        out.push(Command::ToggleFollow);
    }
}

/// Colours, and what is marked and listed beside the slices.
fn marks_ui(ui: &mut Ui, bar: &Bar<'_>, out: &mut Vec<Command>) {
    let state = bar.state;
    let label = ui.label(RichText::new("Colour").color(palette(ui).text_weak));
    let choice = egui::ComboBox::from_id_salt("colour").selected_text(state.color_by.name()).width(64.0);
    let choice = choice.show_ui(ui, |ui| {
        for by in ColorBy::ALL {
            if ui.selectable_label(state.color_by == by, by.name()).clicked() {
                out.push(Command::ColorBy(by));
            }
        }
    });
    choice.response.labelled_by(label.id);
    let critical = egui::Button::selectable(state.critical, "Critical path");
    if ui.add(critical).on_hover_text("Mark what delays the end of each step (C)").clicked() {
        out.push(Command::ToggleCritical);
    }
    if ui.add(egui::Button::selectable(state.log, "Log")).on_hover_text("List the log messages (G)").clicked() {
        out.push(Command::ToggleLog);
    }
    super::notes::list_ui(ui, bar.notes, out);
}

/// The filter of tracks.
fn filter_ui(ui: &mut Ui, state: &State, out: &mut Vec<Command>) {
    let mut filter = state.folding.filter.text().to_owned();
    let edit = TextEdit::singleline(&mut filter).hint_text("filter tracks").desired_width(100.0);
    let response = ui.add(edit).accessible_name("Filter tracks");
    if let Some(error) = state.folding.filter.error() {
        response.on_hover_text(format!("Not a regular expression, taken literally: {error}"));
    }
    if filter != state.folding.filter.text() {
        out.push(Command::FilterTracks(filter));
    }
}

/// What stands out, what does not show, and what there is to say.
fn state_ui(ui: &mut Ui, bar: &Bar<'_>, picked: Option<&str>, out: &mut Vec<Command>) {
    let p = palette(ui);
    if let Some(name) = picked {
        let chip = egui::Button::new(RichText::new(format!("{name}  ×")).color(p.accent));
        if ui.add(chip).on_hover_text("Only its slices stand out: click to end that (Esc)").clicked() {
            out.push(Command::SelectNode(None));
        }
    }
    let rows = bar.rows;
    if rows.n_filtered > 0 {
        ui.colored_label(p.text_weak, format!("{} filtered out", format::counted(rows.n_filtered as u64, "track")));
    }
    if !rows.hidden.is_empty() {
        let text = format!("{} hidden: show", format::counted(rows.hidden.len() as u64, "track"));
        if ui.button(text).clicked() {
            out.push(Command::ShowHidden);
        }
    }
    if let Some(notice) = bar.state.notice {
        ui.colored_label(p.warning, notice);
    }
}

fn search_ui(ui: &mut Ui, search: &mut SearchState<'_>, answer: &mut BarAnswer) {
    let edit = TextEdit::singleline(search.text).hint_text("search slices  /").desired_width(150.0);
    let response = ui.add(edit);
    let response = response.accessible_name("Search slices");
    if search.focus {
        focus_all(&response, search.text);
    }
    if response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter)) {
        answer.go_to_match = Some(!ui.input(|i| i.modifiers.shift));
        response.request_focus();
    }
    if search.text.is_empty() {
        return;
    }
    if ui.small_button("<").on_hover_text("Previous match (Shift + Enter)").clicked() {
        answer.go_to_match = Some(false);
    }
    if ui.small_button(">").on_hover_text("Next match (Enter)").clicked() {
        answer.go_to_match = Some(true);
    }
    match search.count {
        Some(n) => ui.label(if n == 1 { "1 match".to_owned() } else { format!("{} matches", format::count(n)) }),
        None => ui.label("searching"),
    };
}

/// The selected slice in words.
pub fn details_ui(ui: &mut Ui, title: &str, facts: &[Fact], selection: &mut Selection) -> Vec<Command> {
    let mut out = Vec::new();
    let p = palette(ui);
    ui.horizontal(|ui| {
        ui.label(RichText::new(title).color(p.text_strong).size(metrics::TEXT_TITLE));
        if ui.small_button("<").on_hover_text("Previous slice of this name (,)").clicked() {
            out.push(Command::SameName { forward: false });
        }
        if ui.small_button(">").on_hover_text("Next slice of this name (.)").clicked() {
            out.push(Command::SameName { forward: true });
        }
    });
    // Two facts beside each other where there is room: all of them fit under the picture.
    let spacing = [metrics::GAP_WIDE, 2.0];
    let beside = if ui.available_width() > metrics::TWO_FACTS_W { 2 } else { 1 };
    egui::Grid::new(("slice facts", beside)).num_columns(2 * beside).spacing(spacing).show(ui, |ui| {
        let n_rows = facts.len().div_ceil(beside);
        for i in 0..n_rows {
            for fact in facts.iter().skip(i).step_by(n_rows) {
                ui.label(RichText::new(&*fact.name).color(p.text_weak));
                ui.horizontal(|ui| {
                    fact_ui(ui, fact, selection, &mut out);
                    ui.add_space(metrics::GAP_WIDE);
                });
            }
            ui.end_row();
        }
    });
    out
}

fn fact_ui(ui: &mut Ui, fact: &Fact, selection: &mut Selection, out: &mut Vec<Command>) {
    match &fact.link {
        None => {
            ui.label(&fact.value);
        }
        Some(Link::Node(node)) => {
            if ui.link(&**node).on_hover_text("Highlight all slices of this node").clicked() {
                out.push(Command::SelectNode(Some(node.clone())));
            }
            for (view, what) in [(ViewKind::Graph, "graph"), (ViewKind::Scalars, "summaries")] {
                if ui.small_button(what).on_hover_text(format!("Show this node in {}", view.title())).clicked() {
                    out.push(Command::SelectNode(Some(node.clone())));
                    selection.show(view);
                }
            }
        }
        Some(Link::Slice(slice)) => {
            if ui.link(&fact.value).on_hover_text("Go to that slice").clicked() {
                out.push(Command::Reveal(slice.id));
            }
        }
        Some(Link::Step(range)) => {
            if ui.link(&fact.value).on_hover_text("Show this step").clicked() {
                out.push(Command::Show(range.clone()));
            }
        }
    }
}

/// The selected range in figures. `facts`: `None` while they are being computed.
pub fn range_ui(
    ui: &mut Ui,
    store: &Store,
    range: &Range<i64>,
    state: &State,
    facts: Option<&RangeFacts>,
) -> Vec<Command> {
    let mut out = Vec::new();
    let p = palette(ui);
    let step = ticks::nice_step((range.end - range.start) / 500);
    ui.horizontal(|ui| {
        let view = Viewport { start: range.start, end: range.end };
        let (from, to) = (ticks::position(view.start, step), ticks::position(view.end, step));
        let text = format!("Range {from} to {to}: {}", format::duration_ns(view.ns()));
        ui.label(RichText::new(text).color(p.text_strong).size(metrics::TEXT_TITLE));
        if ui.small_button("zoom").on_hover_text("Show this range (F)").clicked() {
            out.push(Command::Show(range.clone()));
        }
        if ui.small_button("clear").on_hover_text("Select no range (Esc)").clicked() {
            out.push(Command::SelectRange(None));
        }
    });
    let Some(facts) = facts.filter(|f| f.range == *range) else {
        ui.label("counting");
        return out;
    };
    if let Some(note) = crate::far::note(facts.hand) {
        ui.label(note);
        return out;
    }
    let ops = facts.ops.iter().filter(|o| o.category == "op");
    let (n_ops, total) = ops.fold((0, 0), |(n, ns), o| (n + o.figures.count, ns + o.figures.total_ns));
    let slices = format::counted(facts.n_slices, "slice");
    ui.label(format!("{slices}, {} taking {}", format::counted(n_ops, "op"), format::duration_ns(total)));
    ui.horizontal_wrapped(|ui| {
        for tab in RangeTab::ALL {
            if ui.selectable_label(state.range_tab == tab, tab.name()).clicked() {
                out.push(Command::RangeTab(tab));
            }
        }
    });
    ScrollArea::both().id_salt(("range facts", state.range_tab.name())).auto_shrink([false, false]).show(ui, |ui| {
        match state.range_tab {
            RangeTab::Ops => ops_ui(ui, store, facts, &mut out),
            RangeTab::Names => names_ui(ui, facts, state.spread_of.as_deref(), &mut out),
            RangeTab::Tracks => tracks_ui(ui, store, facts, &mut out),
            RangeTab::Flame => {
                if facts.flame_is_cut {
                    let most = format::count(flame::MAX_SLICES as u64);
                    ui.colored_label(p.warning, format!("Only the first {most} slices: select a shorter range."));
                }
                flame::flame_ui(ui, "slices", &facts.flame, |ns| format::duration_ns(ns as i64));
            }
            RangeTab::Samples if facts.samples.is_empty() => {
                ui.label(
                    "No call stacks were sampled here. Record some with: stepscope record --sample 1000 -- COMMAND",
                );
            }
            RangeTab::Samples => {
                flame::flame_ui(ui, "samples", &facts.samples, |n| format::counted(n, "sample"));
            }
        }
    });
    out
}

fn ops_ui(ui: &mut Ui, store: &Store, facts: &RangeFacts, out: &mut Vec<Command>) {
    let weak = palette(ui).text_weak;
    egui::Grid::new("range ops").num_columns(7).striped(true).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
        for title in ["Name", "Category", "Count", "Total", "Self", "Share"] {
            ui.label(RichText::new(title).color(weak));
        }
        ui.end_row();
        for op in facts.ops.iter().take(20) {
            ui.label(op.op.chars().take(60).collect::<String>());
            ui.label(RichText::new(&op.category).color(weak));
            number(ui, format::count(op.figures.count));
            number(ui, format::duration_ns(op.figures.total_ns));
            number(ui, format::duration_ns(op.figures.self_ns));
            number(ui, format::percent(op.figures.share));
            end_row(ui);
        }
    });
    if facts.ops.len() > 20 {
        ui.label(format!("and {} more: see Ops", facts.ops.len() - 20));
    }
    ui.label(RichText::new("Largest stalls of the steps in it").color(weak));
    if facts.stalls.top.is_empty() {
        ui.label("none");
    }
    if let Some(stall) = super::stalls::list_ui(ui, store, &facts.stalls.top, 10) {
        out.push(Command::SelectStall(Box::new(stall.clone())));
    }
}

/// Names that are listed, at most.
const MAX_NAMES: usize = 100;

/// Names with a histogram of the durations of one of them.
fn names_ui(ui: &mut Ui, facts: &RangeFacts, chosen: Option<&str>, out: &mut Vec<Command>) {
    let weak = palette(ui).text_weak;
    // One slice has no spread worth a look.
    let most = || facts.names.iter().find(|n| n.count > 1).or(facts.names.first());
    let shown = chosen.and_then(|name| facts.names.iter().find(|n| n.name == name)).or_else(most);
    if let Some(spread) = shown {
        ui.label(RichText::new(format!("How long {} took", spread.name)).color(weak));
        super::spread::histogram_ui(ui, spread);
    }
    egui::Grid::new("range names").num_columns(8).striped(true).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
        for title in ["Name", "Category", "Count", "Total", "Mean", "Shortest", "Longest"] {
            let heading = ui.label(RichText::new(title).color(weak));
            if title == "Total" {
                heading.on_hover_text("Time inside the range; the other columns are about whole slices");
            }
        }
        ui.end_row();
        for row in facts.names.iter().take(MAX_NAMES) {
            let is_shown = shown.is_some_and(|s| s.name == row.name);
            let name: String = row.name.chars().take(60).collect();
            if ui.selectable_label(is_shown, name).on_hover_text("Show its durations").clicked() {
                out.push(Command::SpreadOf(row.name.clone()));
            }
            ui.label(RichText::new(&row.category).color(weak));
            number(ui, format::count(row.count));
            number(ui, format::duration_ns(row.total_ns));
            number(ui, format::duration_ns(row.mean_ns));
            number(ui, format::duration_ns(row.min_ns));
            number(ui, format::duration_ns(row.max_ns));
            end_row(ui);
        }
    });
    if facts.names.len() > MAX_NAMES {
        ui.label(format!("and {} more", facts.names.len() - MAX_NAMES));
    }
}

fn tracks_ui(ui: &mut Ui, store: &Store, facts: &RangeFacts, out: &mut Vec<Command>) {
    let weak = palette(ui).text_weak;
    egui::Grid::new("range tracks").num_columns(5).striped(true).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
        for title in ["Track", "Busy", "Waiting", "Utilisation"] {
            ui.label(RichText::new(title).color(weak));
        }
        ui.end_row();
        for used in &facts.tracks {
            let name = store.track(used.track).map_or("?", |t| &t.name);
            if ui.link(name).on_hover_text("Bring it into sight").clicked() {
                out.push(Command::RevealTrack(used.track.0));
            }
            number(ui, format::duration_ns(used.busy_ns));
            number(ui, format::duration_ns(used.wait_ns));
            number(ui, format::percent(used.utilisation));
            end_row(ui);
        }
    });
}

/// Ends a row after a number: the last column takes all the width that is left, which is none for a number.
fn end_row(ui: &mut Ui) {
    ui.label("");
    ui.end_row();
}

/// A cell that aligns right, as numbers do.
fn number(ui: &mut Ui, text: String) {
    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| ui.label(text));
}
