//! Counters, flows and warnings of a store.

use super::queue::KeyedQueue;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use trace_model::{Counter, CounterKey, Flow, FlowEnd, Point, Warning, WarningKind};

/// Counters, found by their keys.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    rows: Vec<Counter>,
    by_key: FxHashMap<CounterKey, u32>,
}

impl Counters {
    /// Removes and returns all points.
    pub(crate) fn drain(&mut self) -> Vec<Point> {
        let mut points = Vec::new();
        for counter in &mut self.rows {
            let key = counter.key();
            let drained = counter.time.drain(..).zip(counter.value.drain(..));
            points.extend(drained.map(|(time, value)| Point { key, time, value }));
        }
        points
    }

    /// Evicts the oldest points of each counter over `keep`; returns their number.
    pub(crate) fn keep_last(&mut self, keep: usize) -> u64 {
        let mut n = 0;
        for counter in &mut self.rows {
            let n_over = counter.time.len().saturating_sub(keep);
            counter.time.drain(..n_over);
            counter.value.drain(..n_over);
            n += n_over as u64;
        }
        n
    }

    pub(crate) fn rows(&self) -> &[Counter] {
        &self.rows
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.iter().map(|c| c.time.capacity() * 8 + c.value.capacity() * 8).sum()
    }

    /// Inserts a point by its time: points of threads that share a counter arrive slightly out of order. Returns the
    /// number of points that were evicted to retain at most `keep`.
    pub(crate) fn push(&mut self, key: CounterKey, time: i64, value: f64, keep: usize) -> u64 {
        let rows = &mut self.rows;
        let row = *self.by_key.entry(key).or_insert_with(|| {
            let CounterKey { process, site, track } = key;
            rows.push(Counter { process, site, track, time: VecDeque::new(), value: VecDeque::new() });
            rows.len() as u32 - 1
        });
        let counter = &mut self.rows[row as usize];
        let position = match counter.time.back() {
            Some(last) if *last > time => counter.time.partition_point(|t| *t <= time),
            _ => counter.time.len(),
        };
        counter.time.insert(position, time);
        counter.value.insert(position, value);
        if counter.time.len() <= keep {
            return 0;
        }
        counter.time.pop_front();
        counter.value.pop_front();
        1
    }
}

/// (scope, site, correlation), as in [`Flow`].
pub(crate) type FlowKey = (u32, u32, u32);

/// Flows, whose ends are paired by key, never by order.
#[derive(Debug, Default)]
pub(crate) struct Flows(KeyedQueue<FlowKey, Flow>);

fn flow_key(flow: &Flow) -> FlowKey {
    (flow.scope, flow.site, flow.correlation)
}

fn is_complete(flow: &Flow) -> bool {
    flow.from.is_some() && flow.to.is_some()
}

impl Flows {
    pub(crate) fn from_rows(rows: Vec<Flow>) -> Flows {
        Flows(KeyedQueue::from_rows(rows, |flow| (!is_complete(flow)).then(|| flow_key(flow))))
    }

    pub(crate) fn rows(&self) -> &VecDeque<Flow> {
        self.0.rows()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Removes and returns the oldest flows, as long as they are complete or more than `n_pending` are left.
    pub(crate) fn drain(&mut self, n_pending: usize) -> Vec<Flow> {
        let mut rows = Vec::new();
        while self.rows().front().is_some_and(|flow| self.rows().len() > n_pending || is_complete(flow)) {
            rows.extend(self.0.pop(flow_key));
        }
        rows
    }

    /// Evicts the oldest flows over `keep`; returns their number.
    pub(crate) fn keep_last(&mut self, keep: usize) -> u64 {
        let n_over = self.rows().len().saturating_sub(keep);
        (0..n_over).filter_map(|_| self.0.pop(flow_key)).count() as u64
    }

    /// Adds an end of a flow: its beginning if `is_tail`. Returns the number of flows evicted to retain at most `keep`.
    pub(crate) fn push(&mut self, key: FlowKey, end: FlowEnd, is_tail: bool, keep: usize) -> u64 {
        let end_slot = self.0.get_mut(&key).map(|flow| if is_tail { &mut flow.from } else { &mut flow.to });
        if let Some(slot) = end_slot.filter(|slot| slot.is_none()) {
            *slot = Some(end);
            self.0.remove_key(&key);
            return 0;
        }
        let (from, to) = if is_tail { (Some(end), None) } else { (None, Some(end)) };
        let (scope, site, correlation) = key;
        self.0.push(key, Flow { scope, site, correlation, from, to });
        self.keep_last(keep)
    }
}

/// Warnings, one for each kind and source.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    rows: Vec<Warning>,
    by_source: FxHashMap<(WarningKind, String), usize>,
}

impl Warnings {
    pub(crate) fn from_rows(rows: Vec<Warning>) -> Warnings {
        let by_source = rows.iter().enumerate().map(|(row, w)| ((w.kind, w.source.clone()), row)).collect();
        Warnings { rows, by_source }
    }

    pub(crate) fn rows(&self) -> &[Warning] {
        &self.rows
    }

    /// The count of the warning with this kind and source; 0 if there is none.
    pub(crate) fn count(&self, kind: WarningKind, source: &str) -> u64 {
        self.by_source.get(&(kind, source.to_owned())).map_or(0, |row| self.rows[*row].count)
    }

    /// Sets the warning with this kind and source. Returns whether it changed.
    pub(crate) fn set(&mut self, warning: Warning) -> bool {
        let rows = &mut self.rows;
        let row = *self.by_source.entry((warning.kind, warning.source.clone())).or_insert_with(|| {
            rows.push(Warning { count: 0, text: String::new(), ..warning.clone() });
            rows.len() - 1
        });
        let changed = rows[row] != warning;
        rows[row] = warning;
        changed
    }
}
