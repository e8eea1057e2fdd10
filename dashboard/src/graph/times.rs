//! What the open traces say about each node: how often it ran and for how long, summed over scopes.

use super::model::{ItemId, Model};
use crate::Data;
use std::{ops::Range, sync::Arc};

/// Least time between two readings of growing traces, in seconds of the window's clock.
const EVERY: f64 = 0.5;

/// Executions of a node or of everything below a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Time {
    pub count: u64,
    pub total_ns: i64,
}

/// Times of a model's items.
#[derive(Default)]
pub(super) struct Times {
    of: Vec<Time>,
    seen: Vec<u64>,
    range: Option<Range<i64>>,
    model: Option<Arc<Model>>,
    next: f64,
}

impl Times {
    /// Takes in what is new. `range` limits the time to look at, in trace `range.0`.
    pub fn update(&mut self, model: &Arc<Model>, data: &Data, range: Option<&(usize, Range<i64>)>, now: f64) {
        let seen: Vec<u64> = data.traces.iter().map(|trace| trace.store.version()).collect();
        let same_model = self.model.as_ref().is_some_and(|known| Arc::ptr_eq(known, model));
        let same_range = self.range.as_ref() == range.map(|r| &r.1);
        if same_model && same_range && (seen == self.seen || now < self.next) {
            return;
        }
        (self.seen, self.next) = (seen, now + EVERY);
        (self.range, self.model) = (range.map(|r| r.1.clone()), Some(Arc::clone(model)));
        self.of.clear();
        self.of.resize(model.n_items(), Time::default());
        for (idx, trace) in data.traces.iter().enumerate() {
            let span = match range {
                Some((of, _)) if *of != idx => continue,
                Some((_, span)) => span.clone(),
                None => trace.store.range(),
            };
            for stat in profiler::node_stats(&trace.store, span) {
                if let Some(item) = model.find(&stat.name) {
                    let time = &mut self.of[item.idx()];
                    time.count += stat.figures.count;
                    time.total_ns += stat.figures.total_ns;
                }
            }
        }
        for item in (1..model.n_items() as u32).rev().map(ItemId) {
            let own = self.of[item.idx()];
            let above = &mut self.of[model.parent(item).idx()];
            above.count += own.count;
            above.total_ns += own.total_ns;
        }
    }

    /// Executions of an item; zero where no trace knows it.
    pub fn of(&self, item: ItemId) -> Time {
        self.of.get(item.idx()).copied().unwrap_or_default()
    }

    /// Whether any trace knows any node.
    pub fn is_known(&self) -> bool {
        self.of(ItemId::ROOT).count > 0
    }

    /// Share of all time, 0..=1.
    pub fn share(&self, item: ItemId) -> f32 {
        let all = self.of(ItemId::ROOT).total_ns;
        if all > 0 { self.of(item).total_ns as f32 / all as f32 } else { 0.0 }
    }
}
