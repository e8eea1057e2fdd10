//! Embeddings: vectors of many dimensions as points in two or three, by principal components, t-SNE or UMAP.
//!
//! [`files`]: which there are, [`worker`]: the thread that lays them out, [`model`]: colours, labels, search; all without
//! egui, and so is [`sprites`]: images of the vectors. [`canvas`]: the picture; [`mod@side`]: the controls.

mod canvas;
mod files;
mod model;
mod side;
mod sprites;
mod worker;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    chart::orbit::{self, Orbit},
    command::Entry,
    export,
    filter::Filter,
    theme::metrics,
    timeline::background::Background,
    widgets::{Edge, Extent, empty_state, side},
};
use canvas::Picture;
use egui::Ui;
use files::{Answer, Listed, Loaded, Request};
use model::{ColorBy, Coloring};
use std::sync::Arc;
use summaries::{
    Embedding,
    projection::{Metric, Position, TsneOptions, UmapOptions, nearest_of},
};
use worker::{Method, Worker};

/// What can be done in the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("pca", "", "Lay out by principal components"),
    Entry::command("tsne", "", "Lay out by t-SNE"),
    Entry::command("umap", "", "Lay out by UMAP"),
    Entry::command("axes", "", "Lay out along axes of your own, between groups of vectors"),
    Entry::gesture("Click a point", "Its nearest neighbours"),
    orbit::GESTURES[0],
    orbit::GESTURES[1],
    orbit::GESTURES[2],
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MethodName {
    #[default]
    Pca,
    Tsne,
    Umap,
    Axes,
}

impl MethodName {
    const ALL: [Self; 4] = [Self::Pca, Self::Tsne, Self::Umap, Self::Axes];

    fn name(self) -> &'static str {
        match self {
            Self::Pca => "PCA",
            Self::Tsne => "t-SNE",
            Self::Umap => "UMAP",
            Self::Axes => "Axes",
        }
    }

    /// Its name in addresses.
    fn id(self) -> &'static str {
        match self {
            Self::Pca => "pca",
            Self::Tsne => "tsne",
            Self::Umap => "umap",
            Self::Axes => "axes",
        }
    }
}

/// What the user chose.
#[derive(Clone, Debug, PartialEq)]
struct Choices {
    /// The embedding's name; the first one where it is none.
    name: Option<String>,
    method: MethodName,
    n_dims: usize,
    perplexity: usize,
    n_steps: usize,
    n_neighbours: usize,
    metric: Metric,
    color: ColorBy,
    label: usize,
    n_nearest: usize,
    /// Regular expressions for the vectors at the left and right, below and above.
    ends: [String; 4],
    /// Images in the place of dots, where there are any.
    has_sprites: bool,
}

impl Default for Choices {
    fn default() -> Self {
        let (tsne, umap) = (TsneOptions::default(), UmapOptions::default());
        Self {
            name: None,
            method: MethodName::Pca,
            n_dims: 3,
            perplexity: tsne.perplexity as usize,
            n_steps: tsne.n_steps,
            n_neighbours: umap.n_neighbours,
            metric: Metric::Euclidean,
            color: ColorBy::Usual,
            label: 0,
            n_nearest: 10,
            ends: Default::default(),
            has_sprites: true,
        }
    }
}

impl Choices {
    /// The choices that a layout depends on.
    fn of_layout(&self) -> Self {
        let usual = Self::default();
        Self {
            name: None,
            color: usual.color,
            label: usual.label,
            n_nearest: usual.n_nearest,
            has_sprites: usual.has_sprites,
            ..self.clone()
        }
    }

    /// Whether the picture has two dimensions.
    fn is_flat(&self) -> bool {
        self.n_dims == 2 || self.method == MethodName::Axes
    }

    fn method(&self, embedding: &Embedding) -> Method {
        let (n_dims, metric) = (self.n_dims, self.metric);
        match self.method {
            MethodName::Pca => Method::Pca { n_dims },
            MethodName::Tsne => {
                let (perplexity, n_steps) = (self.perplexity as f32, self.n_steps);
                Method::Tsne(TsneOptions { n_dims, perplexity, n_steps, metric, ..TsneOptions::default() })
            }
            MethodName::Umap => {
                Method::Umap(UmapOptions { n_dims, n_neighbours: self.n_neighbours, metric, ..UmapOptions::default() })
            }
            MethodName::Axes => {
                let group = |end: &String| {
                    let mut filter = Filter::default();
                    filter.set(end);
                    model::found(embedding, &filter)
                };
                let [left, right, below, above] = self.ends.each_ref().map(group);
                Method::Along([[left, right], [below, above]])
            }
        }
    }
}

/// The panel's state.
#[derive(Default)]
pub struct EmbeddingsView {
    choices: Choices,
    reader: Option<Background<Request, Answer>>,
    /// How many folders were looked through.
    looked: Option<usize>,
    listed: Vec<Listed>,
    trouble: Vec<String>,
    /// What was asked for, and what came.
    asked: Option<Listed>,
    read: Option<(Listed, Result<Loaded, String>)>,
    worker: Option<Worker>,
    /// What the worker lays out.
    at_work: Option<Choices>,
    layout_seen: u64,
    places: Vec<Position>,
    explained: Vec<f64>,
    /// Grows whenever the picture changes.
    revision: u64,
    coloring_of: Option<ColorBy>,
    coloring: Coloring,
    color_column: Option<usize>,
    search: Filter,
    searched: Option<String>,
    found: Vec<usize>,
    picked: Option<usize>,
    neighbours: Vec<(usize, f32)>,
    neighbours_of: Option<(usize, usize, Metric)>,
    orbit: Orbit,
    picture: Picture,
    texture: canvas::Texture,
}

impl View for EmbeddingsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Embeddings
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        self.choices.method = MethodName::ALL.into_iter().find(|m| m.id() == id).unwrap_or_default();
    }

    fn address(&self, _data: &Data) -> Params {
        let (now, usual) = (&self.choices, Choices::default());
        let mut out = Params::default();
        out.set_some("of", now.name.as_ref());
        out.set_some("method", (now.method != usual.method).then(|| now.method.id()));
        out.set_some("dims", (now.n_dims != usual.n_dims).then_some(now.n_dims));
        out.set_some("perplexity", (now.perplexity != usual.perplexity).then_some(now.perplexity));
        out.set_some("steps", (now.n_steps != usual.n_steps).then_some(now.n_steps));
        out.set_some("neighbours", (now.n_neighbours != usual.n_neighbours).then_some(now.n_neighbours));
        out.set_some("cosine", (now.metric == Metric::Cosine).then_some(1));
        match now.color {
            ColorBy::Usual => {}
            ColorBy::Nothing => out.set("color", -1),
            ColorBy::Column(column) => out.set("color", column),
        }
        out.set_some("label", (now.label != usual.label).then_some(now.label));
        out.set_some("nearest", (now.n_nearest != usual.n_nearest).then_some(now.n_nearest));
        now.ends.iter().filter(|_| now.ends != usual.ends).for_each(|end| out.set("end", end));
        out.set_some("dots", (!now.has_sprites).then_some(1));
        out.set_some("search", Some(self.search.text()).filter(|t| !t.is_empty()));
        out.set_some("picked", self.picked);
        out
    }

    fn go_to(&mut self, params: &Params) {
        let usual = Choices::default();
        let number =
            |name: &str, usual: usize, least: usize, most: usize| params.read(name).unwrap_or(usual).clamp(least, most);
        self.choices = Choices {
            name: params.get("of").map(str::to_owned).or_else(|| self.choices.name.clone()),
            method: MethodName::ALL.into_iter().find(|m| Some(m.id()) == params.get("method")).unwrap_or_default(),
            n_dims: number("dims", usual.n_dims, 2, 3),
            perplexity: number("perplexity", usual.perplexity, 2, 100),
            n_steps: number("steps", usual.n_steps, 50, 10_000),
            n_neighbours: number("neighbours", usual.n_neighbours, 2, 200),
            metric: if params.get("cosine") == Some("1") { Metric::Cosine } else { Metric::Euclidean },
            color: params
                .read("color")
                .map_or(usual.color, |column: i64| usize::try_from(column).map_or(ColorBy::Nothing, ColorBy::Column)),
            label: number("label", usual.label, 0, usize::MAX),
            n_nearest: number("nearest", usual.n_nearest, 1, 100),
            ends: Default::default(),
            has_sprites: params.get("dots").is_none(),
        };
        self.choices.ends.iter_mut().zip(params.all("end")).for_each(|(end, text)| text.clone_into(end));
        self.search.set(params.get("search").unwrap_or_default());
        self.picked = params.read("picked");
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
        if self.listed.is_empty() {
            let text = "A run with a projector_config.pbtxt (SummaryWriter's add_embedding) shows its vectors here.";
            let trouble = self.trouble.join("\n");
            return empty_state(ui, "No embeddings yet", if trouble.is_empty() { text } else { &trouble });
        }
        let embedding = self.embedding();
        if let Some(embedding) = &embedding {
            self.update(ui, embedding);
        }
        let usual = Extent::Points(1.6 * metrics::SIDE_W);
        side(ui, Edge::Left, "embedding controls", usual, |ui| self.side_ui(ui, embedding.as_deref()));
        match (&embedding, &self.read) {
            (Some(embedding), _) if self.places.len() == embedding.vectors.len() => {
                if let Some(i) = self.canvas_ui(ui, embedding) {
                    self.picked = Some(i);
                }
            }
            (Some(_), _) => empty_state(ui, "Laying out", "The first picture comes in a moment."),
            (None, Some((_, Err(error)))) => empty_state(ui, "The embedding cannot be read", error),
            (None, _) => empty_state(ui, "Reading the embedding", ""),
        }
    }
}

impl EmbeddingsView {
    /// The chosen embedding, once it is read.
    fn embedding(&self) -> Option<Arc<Embedding>> {
        let (listed, read) = self.read.as_ref()?;
        let is_chosen = self.choices.name.as_deref() == Some(&*listed.name);
        read.as_ref().ok().filter(|_| is_chosen).map(|loaded| Arc::clone(&loaded.embedding))
    }

    /// Looks for embeddings where there are new folders, and reads the chosen one.
    fn update_files(&mut self, ui: &Ui, data: &Data) {
        let ctx = ui.ctx().clone();
        let reader = self
            .reader
            .get_or_insert_with(|| Background::start("embeddings", files::answer, move || ctx.request_repaint()));
        let n_folders = data.logdirs.len() + data.runs().count();
        if self.looked != Some(n_folders) && !reader.is_busy() {
            self.looked = Some(n_folders);
            reader.request(Request::List(files::folders(data)));
            return;
        }
        match reader.result().as_deref() {
            Some(Answer::List(listed, trouble)) if *listed != self.listed || *trouble != self.trouble => {
                self.listed.clone_from(listed);
                self.trouble.clone_from(trouble);
            }
            Some(Answer::Read(listed, read)) if self.read.as_ref().is_none_or(|(known, _)| known != listed) => {
                self.read = Some((listed.clone(), read.clone()));
                (self.worker, self.at_work, self.coloring_of, self.searched) = (None, None, None, None);
                self.places.clear();
                if self.picked.is_some_and(|i| read.as_ref().is_ok_and(|l| i >= l.embedding.vectors.len())) {
                    self.picked = None;
                }
                self.neighbours_of = None;
            }
            _ => {}
        }
        let is_known = |name: &String| self.listed.iter().any(|listed| *listed.name == **name);
        if !self.choices.name.as_ref().is_some_and(is_known) {
            self.choices.name = self.listed.first().map(|listed| listed.name.to_string());
        }
        let chosen = self.listed.iter().find(|listed| Some(&*listed.name) == self.choices.name.as_deref());
        if let Some(chosen) = chosen.filter(|chosen| self.asked.as_ref() != Some(chosen) && !reader.is_busy()) {
            if self.asked.is_some() {
                self.picked = None;
            }
            self.asked = Some(chosen.clone());
            reader.request(Request::Read(chosen.clone()));
        }
    }

    /// Starts what was chosen and takes in what is new.
    fn update(&mut self, ui: &Ui, embedding: &Arc<Embedding>) {
        let laid_out = self.choices.of_layout();
        if self.at_work.as_ref() != Some(&laid_out) {
            let (ctx, method) = (ui.ctx().clone(), self.choices.method(embedding));
            self.worker = Some(Worker::start(Arc::clone(embedding), method, move || ctx.request_repaint()));
            (self.at_work, self.layout_seen) = (Some(laid_out), 0);
            self.explained.clear();
        }
        if let Some(layout) = self.worker.as_ref().map(Worker::layout).filter(|l| l.revision != self.layout_seen) {
            self.layout_seen = layout.revision;
            self.take_places(&layout.places);
            self.explained = layout.explained;
        }
        if self.coloring_of != Some(self.choices.color) {
            self.coloring_of = Some(self.choices.color);
            self.color_column = self.choices.color.column(embedding);
            self.coloring = Coloring::of(embedding, self.color_column);
            self.revision += 1;
        }
        if self.searched.as_deref() != Some(self.search.text()) {
            self.searched = Some(self.search.text().to_owned());
            self.found = model::found(embedding, &self.search);
            self.revision += 1;
        }
        let wanted = self.picked.map(|i| (i, self.choices.n_nearest, self.choices.metric));
        if self.neighbours_of != wanted {
            self.neighbours_of = wanted;
            let found = wanted.map(|(i, k, metric)| nearest_of(&embedding.vectors, i, k, metric));
            self.neighbours = found.unwrap_or_default();
        }
    }
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("of", Accepts::Text),
        ("method", Accepts::Words(MethodName::ALL.iter().map(|method| method.id()).collect())),
        ("dims", Accepts::Number),
        ("perplexity", Accepts::Number),
        ("neighbours", Accepts::Number),
        ("steps", Accepts::Number),
        ("nearest", Accepts::Number),
        ("label", Accepts::Number),
        ("picked", Accepts::Number),
        ("cosine", Accepts::Flag),
        ("dots", Accepts::Flag),
        ("color", Accepts::Text),
        ("end", Accepts::Text),
        ("search", Accepts::Text),
    ]
}
