//! Figures of each node in the open traces: executions, time, share of the critical paths, bytes at the memory peak,
//! device, whether its values were finite; summed over scopes.

use super::{
    devices::{Devices, TracedDevices},
    health::{self, Health, ObservedKinds, SummaryKinds},
    input::{Input, PtrEq},
};
use crate::{
    Data,
    data::{Shared, Status},
    graph::model::{ItemId, Model},
    recorded::SummaryTargets,
};
use std::{ops::Range, sync::Arc};
use trace_analysis::critical::{PathKind, critical_path};
use trace_analysis::memory::memory_timelines;
use ui::background::{Question, Refresher, Urgency};

/// Least time between two readings of growing traces, in seconds of the window's clock.
const REFRESH_S: f64 = 0.5;

/// A model, the versions of all open data, and the range of one trace to which the sums are limited.
#[derive(Clone, PartialEq)]
struct TimesQuestion {
    model: PtrEq<Model>,
    range: Option<(usize, Range<i64>)>,
    versions: Vec<u64>,
}

impl Question for TimesQuestion {
    fn urgency(&self, asked: &Self) -> Urgency {
        let is_growth = (&self.model, &self.range) == (&asked.model, &asked.range);
        if is_growth { Urgency::WhenCheap } else { Urgency::AtOnce }
    }
}

/// The traces to sum up, each with the range to which it is limited.
struct Request {
    model: Arc<Model>,
    stores: Vec<(Shared<trace_store::Store>, Option<Range<i64>>)>,
    recorded: SummaryKinds,
}

/// The sums for a model, by item.
struct Sums {
    model: Arc<Model>,
    times: Vec<NodeTime>,
    /// The first node with a NaN or an infinity.
    first_non_finite: Option<ItemId>,
    devices: Devices,
}

/// The number of newest steps whose critical paths are computed.
pub(crate) const MAX_STEPS: usize = 20;

/// Executions of a node or of everything below a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NodeTime {
    pub count: u64,
    pub total_ns: i64,
    /// Time on the critical paths.
    pub path_ns: i64,
    /// Bytes that the node had allocated at the memory peak of its device.
    pub peak_bytes: i64,
    /// Whether the values were finite.
    pub health: Health,
}

impl NodeTime {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.path_ns += other.path_ns;
        self.peak_bytes += other.peak_bytes;
        self.health.add(other.health);
    }
}

/// Selects one of a node's figures.
pub(crate) type Metric = fn(&NodeTime) -> i64;

/// The times of a model's items, summed up in a separate thread.
#[derive(Default)]
pub(crate) struct Times {
    sums: Option<Arc<Sums>>,
    refresher: Refresher<TimesQuestion, Request, Sums>,
    recorded: SummaryTargets,
    generation: u64,
}

impl Times {
    /// Requests the sums if the graph, the data or the range changed. `range` limits them to a range of trace
    /// `range.0`.
    pub fn update(&mut self, Input { ctx, model, data }: Input<'_>, range: Option<(usize, Range<i64>)>) {
        if data.traces.is_empty() && data.logdirs.is_empty() {
            return;
        }
        let traces = data.traces.iter().map(|trace| trace.store.version());
        let versions = traces.chain(data.logdirs.iter().map(|logdir| logdir.runs.version)).collect();
        let question = TimesQuestion { model: PtrEq(Arc::clone(model)), range, versions };
        let recorded = &mut self.recorded;
        let request = |TimesQuestion { model, range, .. }: TimesQuestion, _| {
            let ranged_trace = range.as_ref().map(|(idx, _)| *idx);
            let traces =
                data.traces.iter().enumerate().filter(|(idx, _)| ranged_trace.is_none_or(|ranged| ranged == *idx));
            let stores = traces.map(|(_, trace)| (trace.store.shared(), range.as_ref().map(|r| r.1.clone()))).collect();
            Request { model: model.0, stores, recorded: health::summary_kinds(recorded, data) }
        };
        let sums = self.refresher.ask(ctx, ("graph times", sum), REFRESH_S, question, request);
        let sums = sums.filter(|sums| Arc::ptr_eq(&sums.model, model));
        let is_same = self.sums.as_ref().map(Arc::as_ptr) == sums.as_ref().map(Arc::as_ptr);
        self.generation += u64::from(!is_same);
        self.sums = sums;
    }

    /// Whether all open data is loaded and summed up.
    pub fn is_complete(&self, data: &Data) -> bool {
        let is_read = data.sources.iter().all(|source| source.status != Status::Loading);
        let has_nothing = data.traces.is_empty() && data.logdirs.is_empty();
        is_read && (has_nothing || self.sums.is_some() && !self.is_busy())
    }

    /// Grows with each result.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a sum is under way.
    pub fn is_busy(&self) -> bool {
        self.refresher.is_busy()
    }

    /// The first node with a NaN or an infinity in the traces.
    pub fn first_non_finite(&self) -> Option<ItemId> {
        self.sums.as_ref().and_then(|sums| sums.first_non_finite)
    }

    /// The device of a node, from the graph or else from the traces.
    pub fn device<'a>(&'a self, model: &'a Model, item: ItemId) -> &'a str {
        self.sums.as_ref().map_or_else(|| model.device(item), |sums| sums.devices.device(model, item))
    }

    /// Whether a node's device is known from a trace only.
    pub fn is_device_traced(&self, model: &Model, item: ItemId) -> bool {
        self.sums.as_ref().is_some_and(|sums| sums.devices.is_traced(model, item))
    }

    /// Returns the devices of a scope's nodes with the number of nodes on each, most frequent first.
    pub fn device_counts<'a>(&'a self, model: &'a Model, scope: ItemId) -> Vec<(&'a str, u32)> {
        let from_graph = || model.device_counts(scope).collect();
        self.sums.as_ref().map_or_else(from_graph, |sums| sums.devices.nodes_by_device(model, scope))
    }

    /// Returns the figures of an item; zero if no trace has the item.
    pub fn get(&self, item: ItemId) -> NodeTime {
        self.sums.as_ref().and_then(|sums| sums.times.get(item.idx())).copied().unwrap_or_default()
    }

    /// Share of the total time, 0..=1.
    pub fn share(&self, item: ItemId) -> f32 {
        self.share_of(item, |time| time.total_ns)
    }

    /// Share of the total of a figure, 0..=1.
    pub fn share_of(&self, item: ItemId, metric: Metric) -> f32 {
        let total = metric(&self.get(ItemId::ROOT));
        if total > 0 { metric(&self.get(item)).max(0) as f32 / total as f32 } else { 0.0 }
    }
}

/// Sums up the figures of each node, then of each scope.
fn sum(Request { model, stores, recorded }: Request) -> Sums {
    let mut times = vec![NodeTime::default(); model.n_items()];
    let mut observed = ObservedKinds::new(&model, &recorded);
    let mut traced = TracedDevices::default();
    for (store, range) in &stores {
        // Recursive: a loader that waits to write must not hold up the window behind this read.
        let store = store.read_recursive();
        // The range is half-open; one more nanosecond includes an event at the very end.
        let span = range.clone().unwrap_or_else(|| store.range().start..store.range().end.saturating_add(1));
        observed.add(&model, &store, &span);
        traced.add(&model, &store);
        if store.residency(&span) != trace_store::Residency::Resident {
            continue;
        }
        let mut add = |node: &str, time: NodeTime| {
            if let Some(item) = model.find(node) {
                times[item.idx()].add(time);
            }
        };
        for stat in trace_analysis::stats::node_stats(&store, span.clone()) {
            let (count, total_ns) = (stat.figures.count, stat.figures.total_ns);
            add(&stat.name, NodeTime { count, total_ns, ..NodeTime::default() });
        }
        let is_inside = |step: &&trace_model::Step| span.start <= step.start && step.end <= span.end;
        for step in store.steps().iter().rev().filter(is_inside).take(MAX_STEPS) {
            for segment in critical_path(&store, step).segments {
                let slice_id = segment.slice.filter(|_| !matches!(segment.kind, PathKind::Stall(_)));
                if let Some(node) = slice_id.and_then(|id| store.slice(id)).and_then(|slice| store.node_of(&slice)) {
                    add(&node.name, NodeTime { path_ns: segment.dur(), ..NodeTime::default() });
                }
            }
        }
        for (node, peak_bytes) in memory_timelines(&store).into_iter().flat_map(|device| device.live_at_peak) {
            add(&node, NodeTime { peak_bytes, ..NodeTime::default() });
        }
    }
    for item in model.items() {
        times[item.idx()].health = observed.get(item);
    }
    model.add_to_scopes(&mut times, NodeTime::add);
    let devices = Devices::new(&model, &traced);
    Sums { model, times, first_non_finite: observed.first_bad_node(), devices }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;
    use formats::proto::{GraphDef, NodeDef};
    use parking_lot::RwLock;

    #[test]
    fn times_and_parts_of_critical_paths_of_nodes_and_scopes() {
        let node = |name: &str| NodeDef { name: name.into(), op: "MatMul".into(), ..NodeDef::default() };
        let names = ["layer1/MatMul", "layer1/Add", "layer2/MatMul", "layer2/never"];
        let def = GraphDef { node: names.map(node).to_vec(), ..GraphDef::default() };
        let model = Arc::new(Model::build(Arc::new(def)));
        let store = Arc::new(RwLock::new(demo(3)));
        let sums =
            sum(Request { model: Arc::clone(&model), stores: vec![(store, None)], recorded: SummaryKinds::new() });
        let of = |name: &str| {
            let time = sums.times[model.find(name).unwrap().idx()];
            (time.count, time.total_ns / 3, time.path_ns / 3)
        };
        assert_eq!(of("layer1/MatMul"), (3, 50_000, 50_000));
        assert_eq!(of("layer1/Add"), (3, 8_000, 8_000));
        assert_eq!(of("layer1"), (6, 58_000, 58_000), "a scope has what is in it");
        assert_eq!((of("layer2/MatMul"), of("layer2/never")), ((3, 13_000, 13_000), (0, 0, 0)));
    }
}
