//! The controls above the canvas, in a row that wraps.

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
    widgets::{focus_all, group, trailing_text},
};

/// The search box and its results.
pub struct SearchState<'a> {
    pub text: &'a mut String,
    /// Whether to put the text cursor into the search box.
    pub takes_focus: bool,
    /// The number of matching slices; `None` while the search runs.
    pub count: Option<u64>,
    /// The node or op that another panel selected, whose slices are highlighted.
    pub highlight: Option<&'a str>,
}

/// The user's actions in a frame.
#[derive(Default)]
pub struct ToolbarResponse {
    pub commands: Vec<Command>,
    /// A request to go to the next (true) or the previous match.
    pub go_to_match: Option<bool>,
}

/// The timeline's state that the controls show.
pub struct ToolbarContext<'a> {
    pub state: &'a State,
    pub is_live: bool,
    pub rows: &'a Rows,
    pub notes: &'a [Note],
    /// Time on the frame's clock, seconds.
    pub now: f64,
}

/// Shows all controls, and the range of time on the screen at their end.
pub fn toolbar_ui(ui: &mut Ui, cx: &ToolbarContext<'_>, mut search: SearchState<'_>) -> ToolbarResponse {
    let mut response = ToolbarResponse::default();
    let out = &mut response.commands;
    group(ui, "view", |ui| view_ui(ui, cx, out));
    group(ui, "marks", |ui| marks_ui(ui, cx, out));
    group(ui, "filter", |ui| filter_ui(ui, cx.state, out));
    group(ui, "search", |ui| search_ui(ui, &mut search, &mut response));
    state_ui(ui, cx, search.highlight, &mut response.commands);
    let view = cx.state.eased.view(cx.now);
    trailing_text(ui, &format!("{} ({})", ticks::range_text(&view.range()), format::duration_ns(view.ns())));
    response
}

/// Buttons that fit the view or follow a live trace.
fn view_ui(ui: &mut Ui, cx: &ToolbarContext<'_>, out: &mut Vec<Command>) {
    if ui.button("Fit trace").on_hover_text("Show the whole trace (0)").clicked() {
        out.push(Command::FitTrace);
    }
    if ui.button("Fit").on_hover_text("Fit the selected slice or range (F)").clicked() {
        out.push(Command::Fit);
    }
    let is_following = cx.state.follow;
    let follow = ui.add_enabled(cx.is_live || is_following, Button::selectable(is_following, "Follow"));
    if follow.on_hover_text("Keep up with the live trace (L)").clicked() {
        out.push(Command::ToggleFollow);
    }
}

/// The choice of colours, and the switches for critical paths, log and bookmarks.
fn marks_ui(ui: &mut Ui, cx: &ToolbarContext<'_>, out: &mut Vec<Command>) {
    let state = cx.state;
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
    list_ui(ui, cx.notes, out);
}

fn filter_ui(ui: &mut Ui, state: &State, out: &mut Vec<Command>) {
    let mut filter = state.folding.filter.text().to_owned();
    let edit = TextEdit::singleline(&mut filter).hint_text("Filter tracks").desired_width(100.0);
    let response = ui.add(edit).accessible_name("Filter tracks");
    if let Some(error) = state.folding.filter.error() {
        response.on_hover_text(format!("Not a regular expression, taken literally: {error}"));
    }
    if filter != state.folding.filter.text() {
        out.push(Command::FilterTracks(filter));
    }
}

/// The highlighted node or op, the number of tracks that are not visible, and the notice.
fn state_ui(ui: &mut Ui, cx: &ToolbarContext<'_>, highlight: Option<&str>, out: &mut Vec<Command>) {
    let p = palette(ui);
    if let Some(name) = highlight {
        let chip = Button::new(RichText::new(format!("{name}  ×")).color(p.accent));
        if ui.add(chip).on_hover_text("Its slices are highlighted. Click to clear (Esc)").clicked() {
            out.push(Command::SelectNode(None));
        }
    }
    let rows = cx.rows;
    if rows.n_filtered > 0 {
        ui.colored_label(p.text_weak, format!("{} filtered out", format::count_of(rows.n_filtered as u64, "track")));
    }
    if !rows.hidden.is_empty() {
        let text = format!("{} hidden: show", format::count_of(rows.hidden.len() as u64, "track"));
        if ui.button(text).clicked() {
            out.push(Command::ShowHidden);
        }
    }
    if let Some(notice) = cx.state.notice {
        ui.colored_label(p.warning, notice);
    }
}

fn search_ui(ui: &mut Ui, search: &mut SearchState<'_>, result: &mut ToolbarResponse) {
    let edit = TextEdit::singleline(search.text).hint_text("Search slices (/)").desired_width(150.0);
    let response = ui.add(edit);
    let response = response.accessible_name("Search slices");
    if search.takes_focus {
        focus_all(&response, search.text);
    }
    if response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter)) {
        result.go_to_match = Some(!ui.input(|i| i.modifiers.shift));
        response.request_focus();
    }
    if search.text.is_empty() {
        return;
    }
    if ui.small_button("<").on_hover_text("Previous match (Shift + Enter)").clicked() {
        result.go_to_match = Some(false);
    }
    if ui.small_button(">").on_hover_text("Next match (Enter)").clicked() {
        result.go_to_match = Some(true);
    }
    match search.count {
        Some(n) => ui.label(if n == 1 { "1 match".to_owned() } else { format!("{} matches", format::count(n)) }),
        None => ui.label("Searching…"),
    };
}
