//! The panels of the window as a table, and the panel that shows a series.

use serde::{Deserialize, Serialize};
use summaries::Series;
use ui::address::Choice;

/// The panels of the window, in the order of their tabs and of the keys 1 to 9 and 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewKind {
    /// Curves of scalar summaries over steps.
    Scalars,
    /// Distributions of histogram summaries over steps.
    Histograms,
    /// The dataflow graph, collapsed by name scope.
    Graph,
    /// Slices of every track over time.
    Timeline,
    /// Statistics of ops and the largest stalls.
    Ops,
    /// Images, texts, sounds, tensors.
    Media,
    /// The causes of lost time, and what to change first.
    Bottlenecks,
    /// Hyperparameters of runs against their results.
    HParams,
    /// Vectors of many dimensions as points.
    Embeddings,
    /// The modules of a PyTorch model, and its ops by the shapes of their inputs.
    Modules,
    /// Memory of devices over time, and memory snapshots.
    Memory,
    /// SQL queries and their rows.
    Sql,
}

impl Choice for ViewKind {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Scalars, "scalars", "Scalars"),
        (Self::Histograms, "histograms", "Histograms"),
        (Self::Graph, "graph", "Graph"),
        (Self::Timeline, "timeline", "Timeline"),
        (Self::Ops, "ops", "Ops"),
        (Self::Media, "media", "Media"),
        (Self::Bottlenecks, "bottlenecks", "Bottlenecks"),
        (Self::HParams, "hparams", "Hyperparameters"),
        (Self::Embeddings, "embeddings", "Embeddings"),
        (Self::Modules, "modules", "Modules"),
        (Self::Memory, "memory", "Memory"),
        (Self::Sql, "sql", "SQL"),
    ];
}

impl ViewKind {
    /// Every panel, in tab order.
    pub const ALL: [Self; 12] = {
        let mut all = [Self::Scalars; 12];
        let mut i = 0;
        while i < all.len() {
            all[i] = Self::TABLE[i].0;
            i += 1;
        }
        all
    };

    /// The tab's title.
    pub fn title(self) -> &'static str {
        Choice::title(self)
    }

    /// The panel's name in addresses and files, the same in all versions.
    pub fn id(self) -> &'static str {
        Choice::id(self)
    }

    /// The panel that shows a series.
    pub fn showing(series: &Series) -> Self {
        match series {
            Series::Scalar(_) => Self::Scalars,
            Series::Histogram(_) => Self::Histograms,
            Series::Media(s) if s.kind() == "hparams" => Self::HParams,
            Series::Media(s) if s.kind() == "custom_scalars" => Self::Scalars,
            Series::Media(s) if summaries::is_graph_kind(s.kind()) => Self::Graph,
            Series::Media(_) => Self::Media,
        }
    }
}

/// Whether a panel other than Media shows the values of a plugin.
pub(crate) fn has_own_panel(kind: &str) -> bool {
    matches!(kind, "hparams" | "custom_scalars") || summaries::is_graph_kind(kind)
}
