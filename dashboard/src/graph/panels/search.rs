//! Search over names, ops, devices and attributes (see [`Query`]), without a limit on hits.

use crate::graph::{
    analysis::Times,
    model::{ItemId, Model, Query},
};
use egui::{RichText, ScrollArea, TextEdit, Ui};
use std::sync::Arc;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::focus_all,
};

/// Height of the list of hits, at most.
const LIST_H: f32 = 320.0;

/// The search box and its hits.
#[derive(Default)]
pub(crate) struct Search {
    query: Query,
    typed: String,
    hits: Vec<ItemId>,
    /// The index of the hit that Enter reveals next.
    hit_idx: usize,
    /// Whether the list must scroll to `hit_idx`, because the arrow keys moved it.
    must_scroll: bool,
    model: Option<Arc<Model>>,
    /// The generation of [`Times`] whose devices were searched.
    times_generation: u64,
    wants_focus: bool,
    /// Whether the list of hits is shown.
    pub is_open: bool,
}

impl Search {
    /// Puts the keyboard into the search box.
    pub fn focus(&mut self) {
        self.wants_focus = true;
        self.is_open = true;
    }

    /// Shows the search box; returns the hit that was chosen.
    pub fn field_ui(&mut self, ui: &mut Ui, model: &Arc<Model>, times: &Times) -> Option<ItemId> {
        let id = ui.scope_id().with("graph search");
        let n = self.hits.len();
        if n > 0 && ui.memory(|memory| memory.has_focus(id)) {
            // Read before the field consumes these keys.
            let [down, up] = [egui::Key::ArrowDown, egui::Key::ArrowUp]
                .map(|key| ui.input_mut(|i| i.count_and_consume_key(egui::Modifiers::NONE, key)));
            self.hit_idx = (self.hit_idx + down + (n - up % n)) % n;
            self.must_scroll |= down != up;
        }
        let edit = TextEdit::singleline(&mut self.typed).id(id).hint_text("Search names and ops  ( / )");
        let response = ui.add(edit.desired_width(200.0));
        let response = response.on_hover_text("Also: op:Conv2D  device:gpu  attr:padding=same");
        if std::mem::take(&mut self.wants_focus) {
            focus_all(&response, &self.typed);
        }
        if response.gained_focus() {
            self.is_open = true;
        }
        self.update(model, times);
        let enter = response.lost_focus() && ui.input(|i| i.key_pressed(egui::Key::Enter));
        if ui.input(|i| i.key_pressed(egui::Key::Escape)) {
            self.is_open = false;
        }
        if let Some(error) = self.query.error() {
            ui.colored_label(palette(ui).warning, format!("Not a regular expression, taken literally: {error}"));
        } else if !self.typed.is_empty() {
            ui.label(RichText::new(format::count_of(self.hits.len() as u64, "hit")).color(palette(ui).text_weak));
        }
        if enter && !self.hits.is_empty() {
            let hit = self.hits[self.hit_idx % self.hits.len()];
            self.hit_idx = (self.hit_idx + 1) % self.hits.len();
            response.request_focus();
            return Some(hit);
        }
        None
    }

    /// Searches again if the query, the model or the devices changed.
    fn update(&mut self, model: &Arc<Model>, times: &Times) {
        let is_same_model = self.model.as_ref().is_some_and(|searched| Arc::ptr_eq(searched, model));
        let has_same_devices = !self.query.has_device() || self.times_generation == times.generation();
        if is_same_model && has_same_devices && self.query.text() == self.typed {
            return;
        }
        self.times_generation = times.generation();
        self.query.set(&self.typed);
        self.model = Some(Arc::clone(model));
        self.hit_idx = 0;
        self.hits.clear();
        if !self.typed.is_empty() {
            self.hits.extend(model.items().skip(1).filter(|&i| self.query.matches(model, i, times.device(model, i))));
        }
    }

    /// Shows the hits that are in view; returns the one that was clicked.
    pub fn list_ui(&mut self, ui: &mut Ui, model: &Model) -> Option<ItemId> {
        let mut chosen = None;
        let weak = palette(ui).text_weak;
        let area = ScrollArea::vertical().auto_shrink([false, true]).max_height(LIST_H).min_scrolled_height(LIST_H);
        let pitch = metrics::ROW_H + ui.spacing().item_spacing.y;
        let area = match std::mem::take(&mut self.must_scroll) {
            true => area.vertical_scroll_offset((self.hit_idx as f32 * pitch - LIST_H / 2.0).max(0.0)),
            false => area,
        };
        area.show_rows(ui, metrics::ROW_H, self.hits.len(), |ui, rows| {
            for idx in rows {
                let hit = self.hits[idx];
                ui.horizontal(|ui| {
                    if ui.selectable_label(idx == self.hit_idx, model.name(hit)).clicked() {
                        chosen = Some(hit);
                    }
                    let kind = match model.is_op(hit) {
                        true => model.op(hit).to_owned(),
                        false => format::count_of(u64::from(model.n_nodes(hit)), "node"),
                    };
                    ui.label(RichText::new(kind).color(weak).small());
                });
            }
        });
        chosen
    }

    /// Whether there is anything to list.
    pub fn has_hits(&self) -> bool {
        self.is_open && !self.hits.is_empty()
    }
}
