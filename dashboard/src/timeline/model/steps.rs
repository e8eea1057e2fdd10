//! Pairs of steps for a comparison.

use std::ops::Range;
use trace_model::Step;
use trace_store::Store;
use ui::format;

/// One of two compared steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedStep {
    /// The step's name: `train 12`.
    pub name: String,
    pub range: Range<i64>,
}

impl ComparedStep {
    pub fn new(store: &Store, step: &Step) -> Self {
        let label = store.sites().get(step.site as usize).map_or("step", |s| &s.name);
        Self { name: format::step_name(label, step.summary_step), range: step.start..step.end }
    }
}

/// The step that covers a time, or else the step with the nearest start.
pub fn step_near(store: &Store, time: i64) -> Option<&Step> {
    let covering = store.steps().iter().rev().find(|s| (s.start..s.end).contains(&time));
    covering.or_else(|| store.steps().iter().min_by_key(|s| s.start.abs_diff(time)))
}

/// The process and site of a step. Only steps of the same kind are compared.
fn kind(store: &Store, step: &Step) -> (u32, u32) {
    (store.tracks().get(step.slice.track as usize).map_or(u32::MAX, |t| t.process), step.site)
}

/// Another step of the same trace and kind: the step of median length, or else the next or previous step.
pub fn other_step<'a>(store: &'a Store, step: &Step) -> Option<&'a Step> {
    let steps_of_kind = store.steps().iter().filter(|s| kind(store, s) == kind(store, step));
    let typical = median(steps_of_kind.collect()).filter(|s| s.start != step.start);
    typical.or_else(|| {
        let range = step.start..step.end;
        neighbour(store, &range, true).or_else(|| neighbour(store, &range, false))
    })
}

/// The step of another trace with the same number, or else the step of median length.
pub fn same_step<'a>(store: &'a Store, step: &Step) -> Option<&'a Step> {
    let same_number = store.steps().iter().find(|s| s.summary_step == step.summary_step);
    same_number.or_else(|| median(store.steps().iter().collect()))
}

/// The step of median length.
fn median(mut steps: Vec<&Step>) -> Option<&Step> {
    steps.sort_by_key(|s| (s.end - s.start, s.start));
    steps.get(steps.len() / 2).copied()
}

/// The next or previous step of the same kind.
pub fn neighbour<'a>(store: &'a Store, range: &Range<i64>, forward: bool) -> Option<&'a Step> {
    let steps = store.steps();
    let current = steps.iter().find(|s| s.start == range.start && s.end == range.end)?;
    let is_same_kind = |s: &&Step| kind(store, s) == kind(store, current);
    if forward {
        steps.iter().filter(is_same_kind).find(|s| s.start > range.start)
    } else {
        steps.iter().rev().filter(is_same_kind).find(|s| s.start < range.start)
    }
}
