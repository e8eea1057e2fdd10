//! What every panel of the window implements, and the names of the panels.

use crate::{Data, Selection, address::Params, command::Entry};
use summaries::Series;

/// The panels of the window, in the order of their tabs and of the keys 1 to 9 and 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// What held the run up, and what to change first.
    Bottlenecks,
    /// Hyperparameters of runs against what came out.
    HParams,
    /// Vectors of many dimensions as points.
    Embeddings,
    /// Questions in SQL, and the rows that answer them.
    Sql,
}

impl ViewKind {
    /// Every panel, in tab order.
    pub const ALL: [Self; 10] = [
        Self::Scalars,
        Self::Histograms,
        Self::Graph,
        Self::Timeline,
        Self::Ops,
        Self::Media,
        Self::Bottlenecks,
        Self::HParams,
        Self::Embeddings,
        Self::Sql,
    ];

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

    /// The tab's title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Scalars => "Scalars",
            Self::Histograms => "Histograms",
            Self::Graph => "Graph",
            Self::Timeline => "Timeline",
            Self::Ops => "Ops",
            Self::Media => "Media",
            Self::Bottlenecks => "Bottlenecks",
            Self::HParams => "Hyperparameters",
            Self::Embeddings => "Embeddings",
            Self::Sql => "SQL",
        }
    }

    /// Its name in addresses and files, which stays from version to version.
    pub fn id(self) -> &'static str {
        match self {
            Self::Scalars => "scalars",
            Self::Histograms => "histograms",
            Self::Graph => "graph",
            Self::Timeline => "timeline",
            Self::Ops => "ops",
            Self::Media => "media",
            Self::Bottlenecks => "bottlenecks",
            Self::HParams => "hparams",
            Self::Embeddings => "embeddings",
            Self::Sql => "sql",
        }
    }
}

/// One panel. It keeps its own state (zoom, filters, caches); data and selection are the window's.
///
/// A frame hands every visible view the same [`Data`], which holds still until the frame ends. A view caches what it
/// derives by the `revision` of what it derived it from, so that an unchanged frame costs only painting.
pub trait View {
    /// Which panel this is.
    fn kind(&self) -> ViewKind;

    /// The tab's title.
    fn title(&self) -> &'static str {
        self.kind().title()
    }

    /// Shows the panel in all of `ui`'s space and answers its input.
    fn ui(&mut self, ui: &mut egui::Ui, data: &Data, selection: &mut Selection);

    /// What can be done in this panel: for the list of shortcuts and the command palette.
    fn entries(&self) -> &'static [Entry] {
        &[]
    }

    /// Whether a command of [`View::entries`] would do anything, or may once more is read.
    fn can(&self, id: &'static str, data: &Data) -> bool {
        let _ = (id, data);
        true
    }

    /// Carries out a command of [`View::entries`] in the next frame.
    fn run(&mut self, id: &'static str) {
        let _ = id;
    }

    /// What the panel shows, for undo and deep links.
    fn address(&self, data: &Data) -> Params {
        let _ = data;
        Params::default()
    }

    /// Shows what an address says, as far as there is such; in the next frame, or once its data is there.
    fn go_to(&mut self, params: &Params) {
        let _ = params;
    }

    /// What the panel shows as a table in CSV; `None` where it shows none.
    fn table(&self, data: &Data, selection: &Selection) -> Option<String> {
        let _ = (data, selection);
        None
    }
}
