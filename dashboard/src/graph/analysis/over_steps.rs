//! The time of the selected item in each of the newest steps, summed up in a separate thread.

use super::input::{Input, PtrEq};
use crate::{
    data::Shared,
    graph::model::{ItemId, Model},
};
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::Arc};
use trace_model::Category;
use trace_store::{Residency, Store};
use ui::background::{Question, Refresher, Urgency};
use ui::format;

/// The number of newest steps of each trace that are shown.
const MAX_STEPS: usize = 120;
/// Least time between two readings of growing traces, seconds.
const REFRESH_S: f64 = 1.0;

/// The time of an item in a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepCost {
    pub trace_idx: usize,
    /// The step's name: `train 120`.
    pub name: String,
    pub range: Range<i64>,
    /// Total time of the item's kernels; kernels that run in parallel are all counted.
    pub total_ns: i64,
}

/// An item of a model, and the versions of the traces.
#[derive(Clone, PartialEq)]
struct StepQuestion {
    model: PtrEq<Model>,
    item: ItemId,
    versions: Vec<u64>,
}

impl Question for StepQuestion {
    fn urgency(&self, asked: &Self) -> Urgency {
        if asked.item == self.item { Urgency::WhenCheap } else { Urgency::AtOnce }
    }
}

type Request = (StepQuestion, Vec<Shared<Store>>);

/// The costs of the selected item by step.
#[derive(Default)]
pub(crate) struct StepCosts {
    sums: Refresher<StepQuestion, Request, (StepQuestion, Vec<StepCost>)>,
    costs: Option<Arc<(StepQuestion, Vec<StepCost>)>>,
}

impl StepCosts {
    /// Requests the costs of `item` if the item, the graph or the traces changed.
    pub fn update(&mut self, Input { ctx, model, data }: Input<'_>, item: ItemId) {
        if data.traces.is_empty() {
            return;
        }
        let versions = data.traces.iter().map(|trace| trace.store.version()).collect();
        let question = StepQuestion { model: PtrEq(Arc::clone(model)), item, versions };
        let request = |question, _| (question, data.traces.iter().map(|trace| trace.store.shared()).collect());
        let costs = self.sums.ask(ctx, ("graph steps", sum), REFRESH_S, question.clone(), request);
        self.costs = costs.filter(|costs| costs.0.item == item && costs.0.model == question.model);
    }

    pub fn steps(&self) -> &[StepCost] {
        self.costs.as_ref().map_or(&[], |costs| &costs.1)
    }
}

/// Sums up all traces.
fn sum((question, stores): Request) -> (StepQuestion, Vec<StepCost>) {
    let trace_costs = |(trace_idx, store): (usize, &Shared<Store>)| {
        // Recursive: a loader that waits to write must not hold up the window behind this read.
        costs(&store.read_recursive(), trace_idx, &question.model.0, question.item)
    };
    let steps = stores.iter().enumerate().flat_map(trace_costs).collect();
    (question, steps)
}

/// Returns the newest steps of a trace with the item's time; empty if the item ran in none or not all are resident.
fn costs(store: &Store, trace_idx: usize, model: &Model, item: ItemId) -> Vec<StepCost> {
    let newest = &store.steps()[store.steps().len().saturating_sub(MAX_STEPS)..];
    let (Some(start), Some(end)) = (newest.iter().map(|s| s.start).min(), newest.iter().map(|s| s.end).max()) else {
        return Vec::new();
    };
    let span = start..end;
    if store.residency(&span) != Residency::Resident {
        return Vec::new();
    }
    let is_of_item = |name: &str| model.find(name).is_some_and(|node| model.is_below(node, item));
    let is_item_node: Vec<bool> = store.nodes().iter().map(|node| is_of_item(&node.name)).collect();
    // A step's number is unique in its process.
    let process = |track: u32| store.tracks().get(track as usize).map_or(0, |track| track.process);
    let key = |(i, step): (usize, &trace_model::Step)| ((process(step.slice.track), step.id), i);
    let idx_of_step: FxHashMap<(u32, u32), usize> = newest.iter().enumerate().map(key).collect();
    let mut totals = vec![0; newest.len()];
    for track in store.tracks() {
        for slice in track.lanes.iter().flat_map(|lane| lane.slices(&span)) {
            let is_run = is_item_node.get(slice.node as usize) == Some(&true) && store.category(&slice) == Category::Op;
            let id = is_run.then(|| store.step_id_of(&slice)).flatten();
            if let Some(i) = id.and_then(|id| idx_of_step.get(&(track.process, id))) {
                totals[*i] += slice.dur();
            }
        }
    }
    if totals.iter().all(|total| *total == 0) {
        return Vec::new();
    }
    let cost = |(step, total_ns): (&trace_model::Step, i64)| {
        let label = store.sites().get(step.site as usize).map_or("step", |site| &site.name);
        let number = if step.summary_step >= 0 { step.summary_step } else { i64::from(step.id) };
        let name = format!("{label} {}", format::step(number));
        StepCost { trace_idx, name, range: step.start..step.end, total_ns }
    };
    newest.iter().zip(totals).map(cost).collect()
}

/// Returns the steps in one sentence.
pub(crate) fn summary(steps: &[StepCost]) -> String {
    let reduced = |f: fn(i64, i64) -> i64| steps.iter().map(|s| s.total_ns).reduce(f).unwrap_or(0);
    let mean = steps.iter().map(|s| s.total_ns).sum::<i64>() / steps.len().max(1) as i64;
    let [min, mean, max] = [reduced(i64::min), mean, reduced(i64::max)].map(format::duration_ns);
    format!("Over {}: {mean} on average, from {min} to {max}", format::count_of(steps.len() as u64, "step"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph::model::tests::graph, timeline::testing::demo};

    #[test]
    fn a_node_and_its_scope_over_the_steps() {
        let model = Model::build(graph("layer1/MatMul = MatMul()\nlayer1/Add = Add()\nlayer2/never = MatMul()"));
        let store = demo(3);
        let of = |name: &str| {
            let found = costs(&store, 0, &model, model.find(name).unwrap());
            found.iter().map(|step| step.total_ns).collect::<Vec<_>>()
        };
        assert_eq!(of("layer1/MatMul"), [50_000; 3]);
        assert_eq!(of("layer1"), [58_000; 3], "a scope has what is in it");
        assert!(of("layer2/never").is_empty());
        let found = costs(&store, 0, &model, model.find("layer1").unwrap());
        assert_eq!(summary(&found), "Over 3 steps: 58.0 µs on average, from 58.0 µs to 58.0 µs");
        assert_eq!(found[1].range, store.steps()[1].start..store.steps()[1].end);
    }
}
