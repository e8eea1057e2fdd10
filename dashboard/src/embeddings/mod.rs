//! Embeddings: vectors of many dimensions as points in two or three, by principal components, t-SNE or UMAP.
//!
//! `model` (files, choices, layouts; no egui) -> `state` -> `canvas` (the picture and its pointer) and `side` (the
//! controls).

mod canvas;
mod model;
mod side;
mod state;

pub use state::EmbeddingsView;

use crate::{Data, Selection, View, ViewKind, command::Entry};
use egui::Ui;
use model::{Choices, MethodName};
use ui::{
    address::{AddressState, Choice, Names, Params},
    chart::orbit,
    export,
    theme::metrics,
    widgets::{Edge, Extent, empty_state, side},
};

/// The commands and gestures of the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("pca", "", "Lay out by principal components"),
    Entry::command("tsne", "", "Lay out by t-SNE"),
    Entry::command("umap", "", "Lay out by UMAP"),
    Entry::command("axes", "", "Lay out along custom axes between groups of vectors"),
    Entry::gesture("Click a point", "Show its nearest neighbours"),
    orbit::GESTURES[0],
    orbit::GESTURES[1],
    orbit::GESTURES[2],
];

impl View for EmbeddingsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Embeddings
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        self.choices.method = MethodName::by_id(id).unwrap_or_default();
    }

    fn address(&self, _data: &Data) -> Params {
        self.choices.params()
    }

    fn go_to(&mut self, params: &Params) {
        let name = self.choices.name.take();
        self.choices.set_params(params);
        self.choices.clamp();
        self.choices.name = self.choices.name.take().or(name);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        let embedding = self.embedding()?;
        let rows = self.places.iter().enumerate().map(|(i, place)| {
            [self.label(&embedding, i)].into_iter().chain(place.map(|x| x.to_string())).collect::<Vec<_>>()
        });
        Some(export::csv(&["label", "x", "y", "z"], rows))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, _selection: &mut Selection) {
        self.update_files(ui, data);
        if self.listing.embeddings.is_empty() {
            let text = "A run with a projector_config.pbtxt (SummaryWriter's add_embedding) shows its vectors here.";
            let errors = self.listing.errors.join("\n");
            return empty_state(ui, "No embeddings yet", if errors.is_empty() { text } else { &errors });
        }
        let embedding = self.embedding();
        if let Some(embedding) = &embedding {
            self.update(ui, embedding);
        }
        let default_width = Extent::Points(1.6 * metrics::SIDE_W);
        side(ui, Edge::Left, "embedding controls", default_width, |ui| self.side_ui(ui, embedding.as_deref()));
        match (&embedding, self.read.as_deref()) {
            (Some(embedding), _) if self.places.len() == embedding.vectors.len() => {
                if let Some(i) = self.canvas_ui(ui, embedding) {
                    self.choices.picked = Some(i);
                }
            }
            (Some(_), _) => empty_state(ui, "Computing the layout…", ""),
            (None, Some((_, Err(error)))) => empty_state(ui, "The embedding cannot be read", error),
            (None, _) => empty_state(ui, "Reading the embedding…", ""),
        }
    }
}

/// The names that an address may set in this panel.
pub(crate) fn accepts() -> Names {
    Choices::accepts()
}
