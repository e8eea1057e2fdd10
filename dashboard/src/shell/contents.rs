//! Which panels have something to show. No egui here.

use crate::{
    Data, ViewKind, catalogue,
    data::{SourceKind, Status},
};
use summaries::Series;

/// Whether a panel has something to show or will have: a run in progress will write scalars.
pub fn has_contents(data: &Data, kind: ViewKind) -> bool {
    let has = |kind: fn(&Series) -> bool| data.runs().any(|r| r.run.series.values().any(kind));
    match kind {
        ViewKind::Scalars => {
            let goes_on = data.sources.iter().any(|s| s.kind == SourceKind::Logdir && s.status == Status::Live);
            goes_on || has(|s| matches!(s, Series::Scalar(_)))
        }
        ViewKind::Histograms => has(|s| matches!(s, Series::Histogram(_))),
        ViewKind::Media => has(|s| matches!(s, Series::Media(s) if !catalogue::has_own_panel(s.kind()))),
        ViewKind::Embeddings => data.runs().take(64).any(|r| r.run.path.join("projector_config.pbtxt").exists()),
        ViewKind::HParams => has(|s| s.kind() == "hparams"),
        ViewKind::Graph => !data.graphs.is_empty(),
        ViewKind::Timeline | ViewKind::Ops | ViewKind::Bottlenecks | ViewKind::Modules => !data.traces.is_empty(),
        ViewKind::Memory => !(data.traces.is_empty() && data.snapshots.is_empty()),
        ViewKind::Sql => !(data.traces.is_empty() && data.logdirs.is_empty()),
    }
}

/// The first panel that has something to show.
pub fn default_panel(data: &Data) -> ViewKind {
    use ViewKind::{Graph, Histograms, Media, Memory, Scalars, Timeline};
    let order = [Scalars, Timeline, Graph, Histograms, Media, Memory];
    order.into_iter().find(|kind| has_contents(data, *kind)).unwrap_or(Scalars)
}

/// Whether a panel has something to show already, while data is still being read.
pub fn has_contents_now(data: &Data, kind: ViewKind) -> bool {
    let has_slices = || data.traces.iter().any(|trace| trace.store.tracks().iter().any(|track| track.n_slices() > 0));
    match kind {
        ViewKind::Scalars => data.runs().any(|r| r.run.series.values().any(|s| matches!(s, Series::Scalar(_)))),
        ViewKind::Timeline | ViewKind::Ops | ViewKind::Bottlenecks | ViewKind::Modules => has_slices(),
        ViewKind::Memory => has_slices() || !data.snapshots.is_empty(),
        // Queries can be run, but without one the panel is empty.
        ViewKind::Sql => false,
        kind => has_contents(data, kind),
    }
}

/// Whether the panels replace the start screen: while data is loading, once one of them has contents; afterwards, if
/// anything is open.
pub fn can_show_panels(data: &Data) -> bool {
    let is_loading = data.sources.iter().any(|source| source.status == Status::Loading);
    match is_loading {
        true => ViewKind::ALL.into_iter().any(|kind| has_contents_now(data, kind)),
        false => layout_key(data).is_some(),
    }
}

/// The key of the stored layout of the panels, by what is open; `None` while nothing is.
pub fn layout_key(data: &Data) -> Option<&'static str> {
    match (data.logdirs.is_empty(), data.traces.is_empty(), data.graphs.is_empty()) {
        (false, false, _) => Some("run"),
        (false, true, _) => Some("logdir"),
        (true, false, _) => Some("trace"),
        (true, true, false) => Some("graph"),
        (true, true, true) if !data.snapshots.is_empty() => Some("snapshot"),
        (true, true, true) => None,
    }
}
