//! The panel's state, updated from files, layouts and choices.

use super::model::{
    self, Choices, ColorBy, Coloring, Folders, ListedEmbedding, Listing, LoadedEmbedding, SpriteSheet, Worker, matching,
};
use crate::Data;
use egui::{Mesh, Pos2, TextureHandle, Ui};
use std::sync::Arc;
use summaries::{
    Embedding,
    projection::{Metric, Position, nearest_of},
};
use ui::{background::Refresher, chart::orbit::Orbit};

/// An embedding that was read, or the error.
pub(super) type ReadEmbedding = (ListedEmbedding, Result<LoadedEmbedding, String>);

/// The shapes of the vectors, cached by the inputs on which they depend.
#[derive(Default)]
pub(super) struct Picture {
    /// Revision, orbit, bits of the corners, palette, and whether images are replaced by dots.
    pub key: Option<(u64, Orbit, [u32; 4], usize, bool)>,
    /// The position on the screen and the depth of each vector.
    pub placed: Vec<(Pos2, f32)>,
    pub dots: Arc<Mesh>,
    pub images: Arc<Mesh>,
}

/// The sheet of images as a texture.
#[derive(Default)]
pub(super) struct Texture {
    pub sheet: Option<Arc<SpriteSheet>>,
    pub handle: Option<TextureHandle>,
}

/// The panel's state.
#[derive(Default)]
pub struct EmbeddingsView {
    pub(super) choices: Choices,
    /// Lists the embeddings of folders again when the number of logdirs or runs changes.
    pub(super) lister: Refresher<(usize, usize), Folders, Listing>,
    pub(super) listing: Arc<Listing>,
    /// Reads the chosen embedding.
    pub(super) reader: Refresher<ListedEmbedding, ListedEmbedding, ReadEmbedding>,
    pub(super) read: Option<Arc<ReadEmbedding>>,
    pub(super) worker: Option<Worker>,
    /// The choices of the worker's layout.
    pub(super) worker_choices: Option<Choices>,
    /// The revision of the worker's layout that `places` has.
    pub(super) layout_revision: u64,
    pub(super) places: Vec<Position>,
    /// The share of the variance that each principal component explains; empty for other methods.
    pub(super) explained: Vec<f64>,
    /// Grows whenever the picture changes.
    pub(super) revision: u64,
    /// The choice that `coloring` was computed for.
    pub(super) coloring_key: Option<ColorBy>,
    pub(super) coloring: Coloring,
    pub(super) color_column: Option<usize>,
    /// The search text that `matches` was computed for.
    pub(super) matches_key: Option<String>,
    pub(super) matches: Vec<usize>,
    /// Indices and distances of the vectors nearest to the picked one.
    pub(super) neighbours: Vec<(usize, f32)>,
    /// The picked vector, the number of neighbours and the metric that `neighbours` was computed for.
    pub(super) neighbours_key: Option<(usize, usize, Metric)>,
    pub(super) orbit: Orbit,
    pub(super) picture: Picture,
    pub(super) texture: Texture,
}

impl EmbeddingsView {
    /// The chosen embedding, once it is read.
    pub(super) fn embedding(&self) -> Option<Arc<Embedding>> {
        let (listed, read) = self.read.as_deref()?;
        let is_chosen = self.choices.name.as_deref() == Some(&*listed.name);
        read.as_ref().ok().filter(|_| is_chosen).map(|loaded| Arc::clone(&loaded.embedding))
    }

    /// Lists embeddings of new folders, and reads the chosen one.
    pub(super) fn update_files(&mut self, ui: &Ui, data: &Data) {
        let stamp = (data.logdirs.len(), data.runs().count());
        let list = ("embedding files", model::list as fn(_) -> _);
        let listing = self.lister.ask(ui.ctx(), list, 0.0, stamp, |_, _| model::folders(data));
        self.listing = listing.unwrap_or_default();
        let listed = &self.listing.embeddings;
        let is_known = |name: &Arc<str>| listed.iter().any(|listed| listed.name == *name);
        if !self.choices.name.as_ref().is_some_and(is_known) {
            self.choices.name = listed.first().map(|listed| listed.name.clone());
        }
        let chosen = listed.iter().find(|listed| Some(&listed.name) == self.choices.name.as_ref());
        let Some(chosen) = chosen.cloned() else { return };
        if self.reader.last_question().is_some_and(|asked| *asked != chosen) {
            self.choices.picked = None;
        }
        let read = self.reader.ask(ui.ctx(), ("embeddings", model::read), 0.0, chosen, |chosen, _| chosen);
        if read.as_ref().map(Arc::as_ptr) == self.read.as_ref().map(Arc::as_ptr) {
            return;
        }
        self.read = read;
        (self.worker, self.worker_choices, self.coloring_key, self.matches_key) = (None, None, None, None);
        self.places.clear();
        let n_vectors = self.embedding().map(|embedding| embedding.vectors.len());
        if self.choices.picked.zip(n_vectors).is_some_and(|(i, n)| i >= n) {
            self.choices.picked = None;
        }
        self.neighbours_key = None;
    }

    /// Starts the chosen layout; updates places, colours, matches and neighbours.
    pub(super) fn update(&mut self, ui: &Ui, embedding: &Arc<Embedding>) {
        let layout_choices = self.choices.layout_choices();
        if self.worker_choices.as_ref() != Some(&layout_choices) {
            let (ctx, method) = (ui.ctx().clone(), self.choices.method(embedding));
            self.worker = Some(Worker::start(Arc::clone(embedding), method, move || ctx.request_repaint()));
            (self.worker_choices, self.layout_revision) = (Some(layout_choices), 0);
            self.explained.clear();
        }
        if let Some(layout) = self.worker.as_ref().map(Worker::layout).filter(|l| l.revision != self.layout_revision) {
            self.layout_revision = layout.revision;
            self.take_places(&layout.places);
            self.explained = layout.explained;
        }
        if self.coloring_key != Some(self.choices.color) {
            self.coloring_key = Some(self.choices.color);
            self.color_column = self.choices.color.column(embedding);
            self.coloring = Coloring::by_column(embedding, self.color_column);
            self.revision += 1;
        }
        if self.matches_key.as_deref() != Some(self.choices.search.text()) {
            self.matches_key = Some(self.choices.search.text().to_owned());
            self.matches = matching(embedding, &self.choices.search);
            self.revision += 1;
        }
        let key = self.choices.picked.map(|i| (i, self.choices.n_nearest, self.choices.metric()));
        if self.neighbours_key != key {
            self.neighbours_key = key;
            let nearest = key.map(|(i, k, metric)| nearest_of(&embedding.vectors, i, k, metric));
            self.neighbours = nearest.unwrap_or_default();
        }
    }
}
