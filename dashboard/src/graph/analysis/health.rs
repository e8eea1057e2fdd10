//! Whether the values of nodes are finite: from traces (`train --numerics trace`) and from the values of summaries.

use crate::{
    Data,
    graph::model::{ItemId, Model},
    recorded::SummaryTargets,
};
use std::{ops::Range, sync::Arc};
use summaries::Series;
use trace_model::Category;
use trace_store::Store;
use ui::format;

/// The kinds of values that a node had: a set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueKinds(u8);

impl ValueKinds {
    /// Set where any value was checked.
    const CHECKED: u8 = 8;
    const NAN: u8 = 1;

    /// Decodes the `arg` of an event (docs/formats/trace-format.md).
    fn of_event(arg: u64) -> Self {
        Self(arg as u8 & 7 | Self::CHECKED)
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn is_finite(self) -> bool {
        self.0 & !Self::CHECKED == 0
    }

    fn has_nan(self) -> bool {
        self.0 & Self::NAN != 0
    }
}

/// Counts of nodes by the values they had: all those below an item, or the node itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// Nodes whose values were checked.
    pub n_checked: u32,
    /// Nodes that had a NaN.
    pub n_nan: u32,
    /// Nodes that had an infinity and no NaN.
    pub n_inf: u32,
}

impl Health {
    fn from_kinds(kinds: ValueKinds) -> Self {
        let is_checked = kinds != ValueKinds::default();
        let is_inf = !kinds.is_finite() && !kinds.has_nan();
        Self { n_checked: is_checked.into(), n_nan: kinds.has_nan().into(), n_inf: is_inf.into() }
    }

    pub fn add(&mut self, other: Self) {
        self.n_checked += other.n_checked;
        self.n_nan += other.n_nan;
        self.n_inf += other.n_inf;
    }

    /// Nodes that had only finite values.
    pub fn n_finite(self) -> u32 {
        self.n_checked - self.n_nan - self.n_inf
    }

    /// Returns the health in words; `None` if no value was checked.
    pub fn text(self, is_op: bool) -> Option<String> {
        Some(match self {
            Self { n_checked: 0, .. } => return None,
            Self { n_nan: 1.., .. } if is_op => "NaN".to_owned(),
            Self { n_inf: 1.., .. } if is_op => "infinite".to_owned(),
            _ if is_op => "finite".to_owned(),
            Self { n_checked, n_nan: 0, n_inf: 0 } => format!("{} finite", format::count_of(n_checked.into(), "node")),
            Self { n_checked, n_nan, n_inf } => {
                format!("{n_nan} with NaN and {n_inf} infinite of {}", format::count_of(n_checked.into(), "node"))
            }
        })
    }
}

/// Value kinds of nodes that summaries record, by name.
pub(super) type SummaryKinds = Vec<(Arc<str>, ValueKinds)>;

/// Returns the value kinds of the nodes that scalars of all runs record. Histograms hold only finite values.
pub(super) fn summary_kinds(recorded: &mut SummaryTargets, data: &Data) -> SummaryKinds {
    recorded.update(data);
    let kinds_of = |series: &Series| {
        let Series::Scalar(scalars) = series else { return None };
        let source = recorded.get(series.node_name())?;
        let extent = scalars.values().extent(0..scalars.len());
        let kinds = u8::from(extent.has_nan) | u8::from(extent.has_inf) << 1 | u8::from(extent.has_neg_inf) << 2;
        Some((Arc::clone(source), ValueKinds::of_event(kinds.into())))
    };
    data.runs().flat_map(|run| run.run.series.values()).filter_map(kinds_of).collect()
}

/// Value kinds of a model's nodes in a range of time, by item.
#[derive(Default)]
pub(super) struct ObservedKinds {
    kinds: Vec<ValueKinds>,
    /// The first event with a NaN or an infinity: its time and node.
    first_bad: Option<(i64, ItemId)>,
}

impl ObservedKinds {
    /// Starts with the kinds that summaries record.
    pub fn new(model: &Model, recorded: &SummaryKinds) -> Self {
        let mut kinds = vec![ValueKinds::default(); model.n_items()];
        for (name, node_kinds) in recorded {
            if let Some(item) = model.find(name) {
                kinds[item.idx()].add(*node_kinds);
            }
        }
        Self { kinds, first_bad: None }
    }

    /// Adds a trace. Events report changes, so the last one before the range counts at the start of the range.
    pub fn add(&mut self, model: &Model, store: &Store, span: &Range<i64>) {
        let item_of = |site: &trace_model::SiteInfo| {
            (site.category == Category::Numerics).then(|| model.find(&site.name)).flatten()
        };
        let items: Vec<Option<ItemId>> = store.sites().iter().map(item_of).collect();
        if items.iter().all(Option::is_none) {
            return;
        }
        let events = store.tracks().iter().flat_map(|track| &track.instants).filter(|event| event.time < span.end);
        let mut events: Vec<(i64, ItemId, ValueKinds)> = events
            .filter_map(|event| {
                Some((event.time, (*items.get(event.site as usize)?)?, ValueKinds::of_event(event.arg)))
            })
            .collect();
        events.sort_by_key(|(time, ..)| *time);
        let mut at_start = vec![ValueKinds::default(); self.kinds.len()];
        for (time, item, kinds) in events {
            if time < span.start {
                at_start[item.idx()] = kinds;
                continue;
            }
            self.kinds[item.idx()].add(kinds);
            if !kinds.is_finite() && self.first_bad.is_none_or(|(first, _)| time < first) {
                self.first_bad = Some((time, item));
            }
        }
        self.kinds.iter_mut().zip(at_start).for_each(|(kinds, before)| kinds.add(before));
    }

    /// Returns the health of one item, without the items below.
    pub fn get(&self, item: ItemId) -> Health {
        self.kinds.get(item.idx()).map_or_else(Health::default, |kinds| Health::from_kinds(*kinds))
    }

    /// The node that was the first to have a NaN or an infinity.
    pub fn first_bad_node(&self) -> Option<ItemId> {
        self.first_bad.map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::model::tests::graph,
        timeline::testing::{batch_of, slice, store_of},
    };
    use summaries::{Point, Run, Runs, ScalarSeries};
    use trace_model::{Event, EventKind, NO_NODE, TrackKey};

    /// Instants of nodes' sites: (time, node's row, arg).
    fn trace(nodes: &[&str], events: &[(i64, u32, u64)]) -> Store {
        let mut batch = batch_of(&nodes.iter().map(|name| ("numerics", *name)).collect::<Vec<_>>());
        for (start, site, arg) in events.iter().copied() {
            let event = Event { kind: EventKind::Instant, arg, ..slice(start, start, site, NO_NODE, 0) };
            // Any worker may run a node.
            batch.track(TrackKey { pid: 1, ring: (start % 2) as u32 }).events.push(event);
        }
        store_of(batch)
    }

    #[test]
    fn what_held_at_the_begin_of_a_range_counts_and_the_first_is_named() {
        let model = Model::build(graph("a/x = Log()\na/y = Neg(a/x)\nb = Neg(a/y)\nc = Neg(b)"));
        let store = trace(
            &["a/x", "a/y", "b", "gone"],
            &[(0, 0, 0), (1, 1, 0), (2, 2, 0), (7, 0, 4), (8, 1, 1), (9, 3, 1), (20, 0, 0)],
        );
        let of = |range: Range<i64>| {
            let mut observed = ObservedKinds::new(&model, &SummaryKinds::new());
            observed.add(&model, &store, &range);
            let names = ["a/x", "a/y", "b", "c"].map(|name| observed.get(model.find(name).unwrap()).text(true));
            let names = names.map(|text| text.unwrap_or_else(|| "?".to_owned()));
            (names.join(" "), observed.first_bad_node().map(|item| model.name(item).to_owned()))
        };
        assert_eq!(of(0..100), ("infinite NaN finite ?".to_owned(), Some("a/x".to_owned())));
        assert_eq!(of(0..5), ("finite finite finite ?".to_owned(), None));
        assert_eq!(of(10..15), ("infinite NaN finite ?".to_owned(), None), "they became so before");
        assert_eq!(of(20..100).0, "infinite NaN finite ?", "at 20 it still was, until it no longer was");
    }

    #[test]
    fn scalars_tell_of_the_nodes_that_they_record() {
        let def = graph("loss = Mean()\nrate = Mean()\ns/loss = ScalarSummary(loss)\ns/rate = ScalarSummary(rate)");
        let mut run = Run::default();
        for (tag, node, values) in
            [("loss", "s/loss", [1.0, f64::NAN]), ("rate", "s/rate", [1.0, 0.5]), ("else", "", [f64::NAN; 2])]
        {
            let mut scalars = ScalarSeries::default();
            scalars.node_name = node.to_owned();
            for (step, value) in (0..).zip(values) {
                scalars.push(Point { step, wall: 0.0, value });
            }
            run.series.insert(tag.to_owned(), Series::Scalar(Box::new(scalars)));
        }
        let runs = Runs { by_name: [("a".to_owned(), run)].into_iter().collect(), ..Runs::default() };
        let data = Data::default().with_graph("g", (*def).clone()).with_runs("logs", runs);
        let recorded = summary_kinds(&mut SummaryTargets::default(), &data);
        let model = Model::build(def);
        let observed = ObservedKinds::new(&model, &recorded);
        assert_eq!(observed.get(model.find("loss").unwrap()), Health { n_checked: 1, n_nan: 1, n_inf: 0 });
        assert_eq!(observed.get(model.find("rate").unwrap()), Health { n_checked: 1, n_nan: 0, n_inf: 0 });
        assert_eq!(observed.get(model.find("s/loss").unwrap()), Health::default());
    }
}
