//! What every panel of the window implements, and the names of the panels.

use crate::{Data, Selection};

/// The panels of the window, in the order of their tabs and of the keys 1 to 6.
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
    /// Images, texts, sounds, tensors, hyperparameters.
    Media,
}

impl ViewKind {
    /// Every panel, in tab order.
    pub const ALL: [Self; 6] = [Self::Scalars, Self::Histograms, Self::Graph, Self::Timeline, Self::Ops, Self::Media];

    /// The tab's title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Scalars => "Scalars",
            Self::Histograms => "Histograms",
            Self::Graph => "Graph",
            Self::Timeline => "Timeline",
            Self::Ops => "Ops",
            Self::Media => "Media",
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

    /// Keys and gestures of this panel for the shortcuts window: (keys, what they do).
    fn shortcuts(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}
