//! The bar over the picture with the controls.

use super::notes::list_ui;
use crate::{
    config::Note,
    timeline::{
        command::{ColorBy, Command},
        layout::ticks,
        model::Rows,
        state::State,
    },
};
use egui::{Button, RichText, TextEdit, Ui};
use ui::{
    address::Choice as _,
    format,
    theme::palette,
    widgets::{at_the_end, focus_all, together},
};

pub struct SearchState<'a> {
    pub text: &'a mut String,
    /// Whether to put the cursor into the box.
    pub focus: bool,
    /// How many slices match, when that is known.
    pub count: Option<u64>,
    /// What another panel picked, by name: its slices stand out.
    pub picked: Option<&'a str>,
}

/// What the user did in the bar.
#[derive(Default)]
pub struct BarResponse {
    pub commands: Vec<Command>,
    /// Go to the next match (true) or the one before.
    pub go_to_match: Option<bool>,
}

/// What the bar shows of the timeline.
pub struct Bar<'a> {
    pub state: &'a State,
    pub is_live: bool,
    pub rows: &'a Rows,
    pub notes: &'a [Note],
    /// Of the frame, seconds.
    pub now: f64,
}

/// The bar over the timeline, in a row that wraps.
pub fn bar_ui(ui: &mut Ui, bar: &Bar<'_>, mut search: SearchState<'_>) -> BarResponse {
    let mut answer = BarResponse::default();
    let out = &mut answer.commands;
    together(ui, "view", |ui| view_ui(ui, bar, out));
    together(ui, "marks", |ui| marks_ui(ui, bar, out));
    together(ui, "filter", |ui| filter_ui(ui, bar.state, out));
    together(ui, "search", |ui| search_ui(ui, &mut search, &mut answer));
    state_ui(ui, bar, search.picked, &mut answer.commands);
    let view = bar.state.eased.view(bar.now);
    at_the_end(ui, &format!("{} ({})", ticks::range_text(&view.range()), format::duration_ns(view.ns())));
    answer
}

/// Buttons for the part of the trace that is shown.
fn view_ui(ui: &mut Ui, bar: &Bar<'_>, out: &mut Vec<Command>) {
    if ui.button("Fit trace").on_hover_text("Show the whole trace (0)").clicked() {
        out.push(Command::FitTrace);
    }
    if ui.button("Fit").on_hover_text("Fit the selected slice or range (F)").clicked() {
        out.push(Command::Fit);
    }
    let is_following = bar.state.follow;
    let follow = ui.add_enabled(bar.is_live || is_following, Button::selectable(is_following, "Follow"));
    if follow.on_hover_text("Keep up with the live trace (L)").clicked() {
        out.push(Command::ToggleFollow);
    }
}

/// Colours, marks and lists.
fn marks_ui(ui: &mut Ui, bar: &Bar<'_>, out: &mut Vec<Command>) {
    let state = bar.state;
    let label = ui.label(RichText::new("Colour").color(palette(ui).text_weak));
    let choice = egui::ComboBox::from_id_salt("colour").selected_text(state.color_by.title()).width(64.0);
    let choice = choice.show_ui(ui, |ui| {
        for by in ColorBy::all() {
            if ui.selectable_label(state.color_by == by, by.title()).clicked() {
                out.push(Command::ColorBy(by));
            }
        }
    });
    choice.response.labelled_by(label.id);
    let critical = Button::selectable(state.critical, "Critical path");
    if ui.add(critical).on_hover_text("Mark what delays the end of each step (C)").clicked() {
        out.push(Command::ToggleCritical);
    }
    if ui.add(Button::selectable(state.log, "Log")).on_hover_text("List the log messages (G)").clicked() {
        out.push(Command::ToggleLog);
    }
    list_ui(ui, bar.notes, out);
}

fn filter_ui(ui: &mut Ui, state: &State, out: &mut Vec<Command>) {
    let mut filter = state.folding.filter.text().to_owned();
    let edit = TextEdit::singleline(&mut filter).hint_text("Filter tracks").desired_width(100.0);
    let response = ui.add(edit).accessible_name("Filter tracks");
    if let Some(error) = state.folding.filter.error() {
        response.on_hover_text(format!("Not a regular expression, so taken literally: {error}"));
    }
    if filter != state.folding.filter.text() {
        out.push(Command::FilterTracks(filter));
    }
}

/// What stands out, which tracks do not show, and notices.
fn state_ui(ui: &mut Ui, bar: &Bar<'_>, picked: Option<&str>, out: &mut Vec<Command>) {
    let p = palette(ui);
    if let Some(name) = picked {
        let chip = Button::new(RichText::new(format!("{name}  ×")).color(p.accent));
        if ui.add(chip).on_hover_text("Its slices are highlighted. Click to clear (Esc)").clicked() {
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

fn search_ui(ui: &mut Ui, search: &mut SearchState<'_>, answer: &mut BarResponse) {
    let edit = TextEdit::singleline(search.text).hint_text("Search slices (/)").desired_width(150.0);
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
        None => ui.label("Searching…"),
    };
}
