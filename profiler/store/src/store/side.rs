//! What a trace has besides slices: steps, counters, flows, memory, warnings.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use trace_model::{Counter, CounterKey, Flow, FlowEnd, Point, Warning, WarningKind};

/// Counters found by what they count.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    rows: Vec<Counter>,
    by_key: FxHashMap<CounterKey, u32>,
}

impl Counters {
    /// Gives away all points.
    pub(crate) fn drain(&mut self) -> Vec<Point> {
        let mut points = Vec::new();
        for counter in &mut self.rows {
            let key = counter.key();
            let of_counter = counter.time.drain(..).zip(counter.value.drain(..));
            points.extend(of_counter.map(|(time, value)| Point { key, time, value }));
        }
        points
    }

    /// Evicts the oldest points over `keep` of each counter; returns how many.
    pub(crate) fn keep_last(&mut self, keep: usize) -> u64 {
        let mut n = 0;
        for counter in &mut self.rows {
            let over = counter.time.len().saturating_sub(keep);
            counter.time.drain(..over);
            counter.value.drain(..over);
            n += over as u64;
        }
        n
    }

    pub(crate) fn rows(&self) -> &[Counter] {
        &self.rows
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.iter().map(|c| c.time.capacity() * 8 + c.value.capacity() * 8).sum()
    }

    /// Adds a point at its place in time (threads that share a counter arrive a little out of order).
    /// Returns how many old points were evicted to keep at most `keep`.
    pub(crate) fn push(&mut self, key: CounterKey, time: i64, value: f64, keep: usize) -> u64 {
        let rows = &mut self.rows;
        let row = *self.by_key.entry(key).or_insert_with(|| {
            let CounterKey { process, site, track } = key;
            rows.push(Counter { process, site, track, time: VecDeque::new(), value: VecDeque::new() });
            rows.len() as u32 - 1
        });
        let counter = &mut self.rows[row as usize];
        let at = match counter.time.back() {
            Some(last) if *last > time => counter.time.partition_point(|t| *t <= time),
            _ => counter.time.len(),
        };
        counter.time.insert(at, time);
        counter.value.insert(at, value);
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

/// Flows, paired by (scope, site, correlation) and never by order.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    rows: VecDeque<Flow>,
    evicted: u64,
    /// Ordinals of flows of which one end is missing.
    pending: FxHashMap<FlowKey, u64>,
}

impl Flows {
    pub(crate) fn of_rows(rows: Vec<Flow>) -> Flows {
        let is_half = |f: &Flow| f.from.is_none() || f.to.is_none();
        let halves = rows.iter().enumerate().filter(|(_, f)| is_half(f));
        let pending = halves.map(|(row, f)| ((f.scope, f.site, f.correlation), row as u64)).collect();
        Flows { rows: rows.into(), evicted: 0, pending }
    }

    /// Gives away the oldest as long as they are complete, or more than `pending`.
    pub(crate) fn drain(&mut self, pending: usize) -> Vec<Flow> {
        let mut rows = Vec::new();
        while let Some(flow) = self.rows.front()
            && (self.rows.len() > pending || (flow.from.is_some() && flow.to.is_some()))
        {
            rows.extend(self.pop());
        }
        rows
    }

    /// Evicts the oldest over `keep`; returns how many.
    pub(crate) fn keep_last(&mut self, keep: usize) -> u64 {
        let over = self.rows.len().saturating_sub(keep);
        (0..over).filter_map(|_| self.pop()).count() as u64
    }

    fn pop(&mut self) -> Option<Flow> {
        let old = self.rows.pop_front()?;
        let key = (old.scope, old.site, old.correlation);
        if self.pending.get(&key) == Some(&self.evicted) {
            self.pending.remove(&key);
        }
        self.evicted += 1;
        Some(old)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Flow> + '_ {
        self.rows.iter()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Flow>()
    }

    /// Adds an end. Returns how many old flows were evicted to keep at most `keep`.
    pub(crate) fn push(&mut self, key: FlowKey, end: FlowEnd, is_tail: bool, keep: usize) -> u64 {
        let ordinal = self.pending.get(&key).copied();
        let waiting = ordinal.and_then(|o| self.rows.get_mut(o.checked_sub(self.evicted)? as usize));
        if let Some(flow) = waiting {
            let slot = if is_tail { &mut flow.from } else { &mut flow.to };
            if slot.is_none() {
                *slot = Some(end);
                self.pending.remove(&key);
                return 0;
            }
        }
        let (from, to) = if is_tail { (Some(end), None) } else { (None, Some(end)) };
        self.pending.insert(key, self.evicted + self.rows.len() as u64);
        let (scope, site, correlation) = key;
        self.rows.push_back(Flow { scope, site, correlation, from, to });
        self.keep_last(keep)
    }
}

/// Warnings, one line per kind and source.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    rows: Vec<Warning>,
    by_source: FxHashMap<(WarningKind, String), usize>,
}

impl Warnings {
    pub(crate) fn of_rows(rows: Vec<Warning>) -> Warnings {
        let by_source = rows.iter().enumerate().map(|(row, w)| ((w.kind, w.source.clone()), row)).collect();
        Warnings { rows, by_source }
    }

    pub(crate) fn rows(&self) -> &[Warning] {
        &self.rows
    }

    /// What the line of this kind and source counts so far.
    pub(crate) fn count(&self, kind: WarningKind, source: &str) -> u64 {
        self.by_source.get(&(kind, source.to_owned())).map_or(0, |row| self.rows[*row].count)
    }

    /// Sets the line of this kind and source. True if it changed.
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
