//! What the open traces say about each node: how often it ran and for how long, summed over scopes.

use super::model::{ItemId, Model};
use crate::{Data, data::Shared, timeline::background::Background};
use egui::Context;
use std::{ops::Range, sync::Arc};

/// Least time between two readings of growing traces, in seconds of the window's clock.
const EVERY: f64 = 0.5;

/// What to sum up: the traces with the part of their time that counts.
struct Request {
    model: Arc<Model>,
    stores: Vec<(Shared<profiler::Store>, Option<Range<i64>>)>,
}

/// Times by item of the model they were summed for.
struct Sums {
    model: Arc<Model>,
    of: Vec<Time>,
}

/// Executions of a node or of everything below a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Time {
    pub count: u64,
    pub total_ns: i64,
}

/// Times of a model's items, summed up in a thread of its own.
#[derive(Default)]
pub(super) struct Times {
    sums: Option<Arc<Sums>>,
    thread: Option<Background<Request, Sums>>,
    seen: Vec<u64>,
    range: Option<Range<i64>>,
    model: Option<Arc<Model>>,
    asked: f64,
}

impl Times {
    /// Takes in what is new. `range` limits the time to look at, in trace `range.0`.
    pub fn update(
        &mut self,
        ctx: &Context,
        model: &Arc<Model>,
        data: &Data,
        range: Option<&(usize, Range<i64>)>,
        now: f64,
    ) {
        if data.traces.is_empty() {
            return;
        }
        let ctx = ctx.clone();
        let thread = self.thread.get_or_insert_with(|| {
            let wake = ctx.clone();
            Background::start("graph times", sum, move || wake.request_repaint())
        });
        self.sums = thread.result().filter(|sums| Arc::ptr_eq(&sums.model, model));
        let seen: Vec<u64> = data.traces.iter().map(|trace| trace.store.version()).collect();
        let same_model = self.model.as_ref().is_some_and(|known| Arc::ptr_eq(known, model));
        let same_question = same_model && self.range.as_ref() == range.map(|r| &r.1);
        if same_question && seen == self.seen {
            return;
        }
        let due = self.asked + thread.refresh_s(EVERY);
        if (same_question && now < due) || thread.is_busy() {
            ctx.request_repaint_after_secs((due - now).max(EVERY) as f32);
            return;
        }
        (self.seen, self.asked) = (seen, now);
        (self.range, self.model) = (range.map(|r| r.1.clone()), Some(Arc::clone(model)));
        let traces = data.traces.iter().enumerate().filter(|(idx, _)| range.is_none_or(|(of, _)| of == idx));
        let stores = traces.map(|(_, trace)| (trace.store.shared(), range.map(|r| r.1.clone()))).collect();
        thread.request(Request { model: Arc::clone(model), stores });
    }

    /// Executions of an item; zero where no trace knows it.
    pub fn of(&self, item: ItemId) -> Time {
        self.sums.as_ref().and_then(|sums| sums.of.get(item.idx())).copied().unwrap_or_default()
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

/// Sums up what each node took, and everything below each scope.
fn sum(Request { model, stores }: Request) -> Sums {
    let mut of = vec![Time::default(); model.n_items()];
    for (store, range) in &stores {
        // Recursive: a loader that waits to write must not hold up the window behind this read.
        let store = store.read_recursive();
        let span = range.clone().unwrap_or_else(|| store.range());
        if store.at_hand(&span) != profiler::AtHand::All {
            continue;
        }
        for stat in profiler::node_stats(&store, span) {
            if let Some(item) = model.find(&stat.name) {
                let time = &mut of[item.idx()];
                time.count += stat.figures.count;
                time.total_ns += stat.figures.total_ns;
            }
        }
    }
    for item in (1..model.n_items() as u32).rev().map(ItemId) {
        let own = of[item.idx()];
        let above = &mut of[model.parent(item).idx()];
        above.count += own.count;
        above.total_ns += own.total_ns;
    }
    Sums { model, of }
}
