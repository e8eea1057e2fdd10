//! The user's choices of a layout.

use super::{
    projection::Method,
    vectors::{ColorBy, matching},
};
use summaries::{
    Embedding,
    projection::{Metric, TsneOptions, UmapOptions},
};
use ui::address::Params;
use ui::filter::Filter;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MethodName {
    #[default]
    Pca,
    Tsne,
    Umap,
    Axes,
}

impl MethodName {
    pub const ALL: [Self; 4] = [Self::Pca, Self::Tsne, Self::Umap, Self::Axes];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pca => "PCA",
            Self::Tsne => "t-SNE",
            Self::Umap => "UMAP",
            Self::Axes => "Axes",
        }
    }

    /// Its name in addresses.
    pub fn id(self) -> &'static str {
        match self {
            Self::Pca => "pca",
            Self::Tsne => "tsne",
            Self::Umap => "umap",
            Self::Axes => "axes",
        }
    }
}

/// The choices of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// The name of the embedding; the first one where it is none.
    pub name: Option<String>,
    pub method: MethodName,
    pub n_dims: usize,
    pub perplexity: usize,
    pub n_steps: usize,
    pub n_neighbours: usize,
    pub metric: Metric,
    pub color: ColorBy,
    pub label: usize,
    pub n_nearest: usize,
    /// Regular expressions for the vectors at the left and right, below and above.
    pub ends: [String; 4],
    /// Images in the place of dots, where there are any.
    pub has_sprites: bool,
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
    pub fn of_layout(&self) -> Self {
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
    pub fn is_flat(&self) -> bool {
        self.n_dims == 2 || self.method == MethodName::Axes
    }

    pub fn method(&self, embedding: &Embedding) -> Method {
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
                    matching(embedding, &filter)
                };
                let [left, right, below, above] = self.ends.each_ref().map(group);
                Method::Along([[left, right], [below, above]])
            }
        }
    }

    /// The choices as a part of an address.
    pub fn address(&self) -> Params {
        let (now, usual) = (self, Self::default());
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
        out
    }

    /// The choices at an address.
    pub fn at(&self, params: &Params) -> Self {
        let usual = Self::default();
        let number =
            |name: &str, usual: usize, least: usize, most: usize| params.read(name).unwrap_or(usual).clamp(least, most);
        let mut choices = Self {
            name: params.get("of").map(str::to_owned).or_else(|| self.name.clone()),
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
        choices.ends.iter_mut().zip(params.all("end")).for_each(|(end, text)| text.clone_into(end));
        choices
    }
}
