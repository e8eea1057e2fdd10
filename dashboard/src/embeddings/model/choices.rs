//! The user's choices of a layout.

use super::{
    projection::Method,
    vectors::{ColorBy, matching},
};
use std::sync::Arc;
use summaries::{
    Embedding,
    projection::{Metric, TsneOptions, UmapOptions},
};
use ui::{address::Choice, address_fields, filter::Filter};

/// A method of layout without its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MethodName {
    #[default]
    Pca,
    Tsne,
    Umap,
    Axes,
}

impl Choice for MethodName {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Pca, "pca", "PCA"),
        (Self::Tsne, "tsne", "t-SNE"),
        (Self::Umap, "umap", "UMAP"),
        (Self::Axes, "axes", "Axes"),
    ];
}

#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// The name of the embedding; `None` for the first one.
    pub name: Option<Arc<str>>,
    pub method: MethodName,
    pub n_dims: usize,
    pub perplexity: usize,
    pub n_steps: usize,
    pub n_neighbours: usize,
    /// Whether distances are cosine distances rather than Euclidean ones.
    pub is_cosine: bool,
    pub color: ColorBy,
    /// The column of the metadata that labels vectors.
    pub label: usize,
    /// The number of neighbours of the picked vector to list.
    pub n_nearest: usize,
    /// Regular expressions for the vectors at the ends of the custom axes: left, right, below, above.
    pub ends: [String; 4],
    /// Whether to draw dots even if there are images.
    pub has_dots: bool,
    /// The filter of the vectors to find.
    pub search: Filter,
    /// The index of the picked vector.
    pub picked: Option<usize>,
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
            is_cosine: false,
            color: ColorBy::Auto,
            label: 0,
            n_nearest: 10,
            ends: Default::default(),
            has_dots: false,
            search: Filter::default(),
            picked: None,
        }
    }
}

address_fields!(Choices {
    "of" = name: Option<Arc<str>>,
    "method" = method: MethodName,
    "dims" = n_dims: usize,
    "perplexity" = perplexity: usize,
    "steps" = n_steps: usize,
    "neighbours" = n_neighbours: usize,
    "cosine" = is_cosine: bool,
    "color" = color: ColorBy,
    "label" = label: usize,
    "nearest" = n_nearest: usize,
    "end" = ends: [String; 4],
    "dots" = has_dots: bool,
    "search" = search: Filter,
    "picked" = picked: Option<usize>,
});

impl Choices {
    /// Returns the choices on which a layout depends; the others have their defaults.
    pub fn layout_choices(&self) -> Self {
        let default = Self::default();
        Self {
            name: None,
            color: default.color,
            label: default.label,
            n_nearest: default.n_nearest,
            has_dots: default.has_dots,
            search: default.search,
            picked: default.picked,
            ..self.clone()
        }
    }

    /// Whether the picture has two dimensions.
    pub fn is_flat(&self) -> bool {
        self.n_dims == 2 || self.method == MethodName::Axes
    }

    pub fn method(&self, embedding: &Embedding) -> Method {
        let (n_dims, metric) = (self.n_dims, self.metric());
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
                    matching(embedding, &filter)
                };
                let [left, right, below, above] = self.ends.each_ref().map(group);
                Method::Axes([[left, right], [below, above]])
            }
        }
    }

    /// The measure of distances.
    pub fn metric(&self) -> Metric {
        if self.is_cosine { Metric::Cosine } else { Metric::Euclidean }
    }

    /// Limits the numbers, which an address may set, to their ranges.
    pub fn clamp(&mut self) {
        self.n_dims = self.n_dims.clamp(2, 3);
        self.perplexity = self.perplexity.clamp(2, 100);
        self.n_steps = self.n_steps.clamp(50, 10_000);
        self.n_neighbours = self.n_neighbours.clamp(2, 200);
        self.n_nearest = self.n_nearest.clamp(1, 100);
    }
}
