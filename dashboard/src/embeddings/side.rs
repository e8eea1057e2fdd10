//! The controls at the left: embedding, layout, colours, search, neighbours.

use super::{
    model::{Choices, ColorBy, MethodName},
    state::EmbeddingsView,
};
use egui::{ComboBox, DragValue, ProgressBar, Role, Sense, Ui};
use summaries::Embedding;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{choice_buttons, filter_box, heading, named, scroll_area},
};

/// Matching vectors that are listed, at most.
const MAX_LISTED: usize = 200;

impl EmbeddingsView {
    /// Shows the controls.
    pub(super) fn side_ui(&mut self, ui: &mut Ui, embedding: Option<&Embedding>) {
        ui.add_space(metrics::PAD);
        let height = ui.available_height();
        scroll_area(ui, [true, true], height).auto_shrink(false).show(ui, |ui| {
            self.choice_ui(ui);
            let Some(embedding) = embedding else { return };
            let n = format::count_of(embedding.vectors.len() as u64, "vector");
            ui.weak(format!("{n} of {}", format::count_of(embedding.vectors.n_dims() as u64, "number")));
            for note in &embedding.notes {
                ui.colored_label(palette(ui).warning, note);
            }
            self.method_ui(ui, embedding);
            self.sprites_ui(ui);
            self.columns_ui(ui, embedding);
            self.search_ui(ui, embedding);
            self.neighbours_ui(ui, embedding);
        });
    }

    fn choice_ui(&mut self, ui: &mut Ui) {
        let text = self.choices.name.clone().unwrap_or_default();
        let combo = ComboBox::from_id_salt("embedding").selected_text(&*text).width(ui.available_width()).truncate();
        let response = combo.show_ui(ui, |ui| {
            for listed in &self.listing.embeddings {
                ui.selectable_value(&mut self.choices.name, Some(listed.name.clone()), &*listed.name);
            }
        });
        named(&response.response, Role::ComboBox, &format!("Embedding: {text}"));
    }

    fn method_ui(&mut self, ui: &mut Ui, embedding: &Embedding) {
        section(ui, "Layout");
        let choices = &mut self.choices;
        ui.horizontal_wrapped(|ui| {
            choice_buttons(ui, "Method", &mut choices.method);
            ui.separator();
            for n_dims in [2, 3] {
                let response = ui.selectable_value(&mut choices.n_dims, n_dims, format!("{n_dims}-D"));
                named(&response, Role::RadioButton, &format!("Dimensions: {n_dims}"));
            }
        });
        let number = |ui: &mut Ui, name: &str, value: &mut usize, min: usize, max: usize| {
            ui.horizontal(|ui| {
                ui.weak(name);
                let response = ui.add(DragValue::new(value).range(min..=max));
                named(&response, Role::SpinButton, name);
            });
        };
        match choices.method {
            MethodName::Pca => {}
            MethodName::Tsne => {
                number(ui, "Perplexity", &mut choices.perplexity, 2, 100);
                number(ui, "Steps", &mut choices.n_steps, 50, 10_000);
            }
            MethodName::Umap => number(ui, "Neighbours", &mut choices.n_neighbours, 2, 200),
            MethodName::Axes => ends_ui(ui, choices),
        }
        metric_ui(ui, choices);
        let Some(worker) = &self.worker else { return };
        if worker.is_running() {
            ui.horizontal(|ui| {
                ui.add(ProgressBar::new(worker.share()).desired_width(metrics::PROGRESS_W).show_percentage());
                if ui.button("Stop").on_hover_text("Keeps the current layout").clicked() {
                    worker.stop();
                }
            });
        } else if !self.explained.is_empty() {
            let shares: Vec<String> = self.explained.iter().map(|share| format::percent(*share)).collect();
            let total = format::percent(self.explained.iter().sum());
            ui.weak(format!("Variance explained: {total} ({})", shares.join(" + ")));
        } else if self.places.len() < embedding.vectors.len() {
            ui.weak("Stopped before the first layout");
        }
    }

    /// Shows the choice of images in place of dots, or the reason why there are none.
    fn sprites_ui(&mut self, ui: &mut Ui) {
        let loaded = self.read.as_ref().and_then(|read| read.1.as_ref().ok());
        match loaded.and_then(|loaded| loaded.sheet.as_ref()) {
            None => {}
            Some(Err(why)) => _ = ui.colored_label(palette(ui).warning, format!("No images: {why}")),
            Some(Ok(sheet)) if sheet.picture.size.iter().any(|side| *side > ui.input(|i| i.max_texture_side)) => {
                let [width, height] = sheet.picture.size;
                let text = format!("No images: a sheet of {width} x {height} pixels is too large for the graphics");
                ui.colored_label(palette(ui).warning, text);
            }
            Some(Ok(_)) => {
                let mut has_images = !self.choices.has_dots;
                ui.checkbox(&mut has_images, "Images");
                self.choices.has_dots = !has_images;
            }
        }
    }

    fn columns_ui(&mut self, ui: &mut Ui, embedding: &Embedding) {
        if embedding.columns.is_empty() {
            return;
        }
        section(ui, "Metadata");
        let column = |i: usize| embedding.columns.get(i).cloned().unwrap_or_default();
        ui.horizontal(|ui| {
            ui.weak("Colour");
            let text = self.color_column.map_or_else(|| "none".to_owned(), column);
            let combo = ComboBox::from_id_salt("colour").selected_text(&text).truncate().show_ui(ui, |ui| {
                if ui.selectable_label(self.color_column.is_none(), "none").clicked() {
                    self.choices.color = ColorBy::Nothing;
                }
                for i in 0..embedding.columns.len() {
                    if ui.selectable_label(self.color_column == Some(i), column(i)).clicked() {
                        self.choices.color = ColorBy::Column(i);
                    }
                }
            });
            named(&combo.response, Role::ComboBox, &format!("Colour: {text}"));
        });
        if embedding.columns.len() > 1 {
            ui.horizontal(|ui| {
                ui.weak("Label");
                let text = column(self.choices.label);
                let combo = ComboBox::from_id_salt("label").selected_text(&text).truncate().show_ui(ui, |ui| {
                    for i in 0..embedding.columns.len() {
                        ui.selectable_value(&mut self.choices.label, i, column(i));
                    }
                });
                named(&combo.response, Role::ComboBox, &format!("Label: {text}"));
            });
        }
    }

    fn search_ui(&mut self, ui: &mut Ui, embedding: &Embedding) {
        section(ui, "Search");
        filter_box(ui, &mut self.choices.search, "Find vectors (regex)", ui.available_width() - metrics::PAD);
        if self.choices.search.text().is_empty() {
            return;
        }
        let n = format::count_of(self.matches.len() as u64, "vector");
        ui.weak(if self.matches.len() > MAX_LISTED { format!("{n}, the first {MAX_LISTED}:") } else { n });
        let matches: Vec<usize> = self.matches.iter().copied().take(MAX_LISTED).collect();
        if let Some(i) = self.list_ui(ui, embedding, matches.into_iter().map(|i| (i, String::new()))) {
            self.choices.picked = Some(i);
        }
    }

    fn neighbours_ui(&mut self, ui: &mut Ui, embedding: &Embedding) {
        let Some(picked) = self.choices.picked else { return };
        section(ui, &format!("Nearest to {}", self.label(embedding, picked)));
        ui.horizontal(|ui| {
            let response = ui.add(DragValue::new(&mut self.choices.n_nearest).range(1..=100));
            named(&response, Role::SpinButton, "Nearest neighbours");
            ui.weak("by distance in all dimensions");
        });
        let rows: Vec<(usize, String)> =
            self.neighbours.iter().map(|(i, d)| (*i, format::value(f64::from(*d)))).collect();
        if let Some(i) = self.list_ui(ui, embedding, rows.into_iter()) {
            self.choices.picked = Some(i);
        }
    }

    /// Shows a line for each vector; returns the one that was clicked.
    fn list_ui(
        &self,
        ui: &mut Ui,
        embedding: &Embedding,
        rows: impl Iterator<Item = (usize, String)>,
    ) -> Option<usize> {
        let mut clicked = None;
        for (i, value) in rows {
            let label = self.label(embedding, i);
            let (rect, response) =
                ui.allocate_exact_size(egui::vec2(ui.available_width(), metrics::ROW_H), Sense::click());
            named(&response, Role::Button, &format!("Vector {label} {value}"));
            let p = palette(ui);
            if response.hovered() || response.has_focus() {
                ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), p.hovered);
            }
            let value_w = if value.is_empty() { 0.0 } else { metrics::VALUE_W };
            let mut left = rect;
            left.max.x -= value_w;
            ui::widgets::text_elided(ui, &label, left, p.text);
            let mut right = rect;
            right.min.x = left.max.x + metrics::GAP;
            ui::widgets::text_elided(ui, &value, right, p.text_weak);
            if response.clicked() {
                clicked = Some(i);
            }
        }
        clicked
    }
}

fn section(ui: &mut Ui, text: &str) {
    ui.add_space(metrics::GAP_WIDE);
    heading(ui, text);
}

/// Shows the filters of the vectors at the ends of the axes.
fn ends_ui(ui: &mut Ui, choices: &mut Choices) {
    let names = ["left", "right", "below", "above"];
    egui::Grid::new("ends").num_columns(2).show(ui, |ui| {
        for (name, end) in names.into_iter().zip(&mut choices.ends) {
            ui.weak(name);
            let edit = egui::TextEdit::singleline(end).hint_text("vectors (regex)").desired_width(f32::INFINITY);
            ui.add(edit)
                .on_hover_text("The axis runs between the means of these vectors; if empty, the mean of all")
                .accessible_name(format!("Vectors {name}"));
            ui.end_row();
        }
    });
    if choices.ends.iter().all(|end| end.trim().is_empty()) {
        ui.weak("Enter vectors at one end at least; otherwise all points coincide");
    }
}

fn metric_ui(ui: &mut Ui, choices: &mut Choices) {
    ui.horizontal(|ui| {
        ui.weak("Distance");
        for (is_cosine, name) in [(false, "Euclidean"), (true, "Cosine")] {
            let response = ui.selectable_value(&mut choices.is_cosine, is_cosine, name);
            named(&response, Role::RadioButton, &format!("Distance: {name}"));
        }
    });
}
