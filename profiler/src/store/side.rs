//! What a trace tells beside slices: steps, counters, flows, memory, warnings.

use super::{SliceId, TrackId};
use crate::seal::Point;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// One execution of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The execution's id (`StepId`), unique in the process.
    pub id: u32,
    /// The step on the summaries' axis that the caller gave, another thing than the id.
    pub summary_step: i64,
    /// Row of the sites; its name is the caller's label (`train`).
    pub site: u32,
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Its slice.
    pub slice: SliceId,
}

/// A value over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Row of the processes.
    pub process: u32,
    /// Row of the sites: category and name.
    pub site: u32,
    /// Of a counter of one thread: a track of that thread.
    pub track: Option<TrackId>,
    /// When, ns from the origin, in order.
    pub time: VecDeque<i64>,
    /// The value from then on.
    pub value: VecDeque<f64>,
}

/// Counters found by what they count.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    rows: Vec<Counter>,
    by_key: FxHashMap<CounterKey, u32>,
}

/// What tells counters apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CounterKey {
    pub(crate) process: u32,
    pub(crate) site: u32,
    pub(crate) track: Option<TrackId>,
}

impl Counter {
    pub(crate) fn key(&self) -> CounterKey {
        CounterKey { process: self.process, site: self.site, track: self.track }
    }
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

    /// Gives up the oldest points over `keep` of each counter; gives back how many.
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
    /// Gives back how many old points were given up to keep at most `keep`.
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

/// One end of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// Where.
    pub track: TrackId,
    /// When, ns from the origin.
    pub time: i64,
}

/// An arrow from one place in time to another. The other end may not have come (yet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Row of the processes in which `correlation` is unique; `u32::MAX` where it is in the whole trace.
    pub scope: u32,
    /// Row of the sites.
    pub site: u32,
    /// What pairs the two ends.
    pub correlation: u32,
    /// Tail.
    pub from: Option<FlowEnd>,
    /// Head.
    pub to: Option<FlowEnd>,
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

    /// Gives up the oldest over `keep`; gives back how many.
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

    /// Adds an end. Gives back how many old flows were given up to keep at most `keep`.
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

/// Memory of a device that was taken or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// When, ns from the origin.
    pub time: i64,
    /// Which thread did it.
    pub track: TrackId,
    /// Row of the sites: its name is the device.
    pub site: u32,
    /// Row of the nodes, or `u32::MAX`.
    pub node: u32,
    /// Bytes taken; negative when given back.
    pub bytes: i64,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A producer's ring was full: events are missing.
    Dropped,
    /// A file has damaged parts, which were skipped.
    Damage,
    /// A file's last chunk was cut in the middle of being written.
    TornTail,
    /// A file could not be read or written.
    Io,
    /// The trace reached its size limit.
    SizeLimit,
    /// A time could not be placed.
    Clock,
    /// Events refer to names that the trace does not have.
    UnknownName,
    /// Begins, ends or arrows without their other half.
    Unpaired,
    /// A file holds what is not read.
    Unsupported,
    /// Slices were clipped because all lanes were taken.
    Clipped,
    /// Old slices or events were given up to stay in the memory budget.
    Evicted,
    /// Something cannot be recorded on the machine; the sentence says how to get it.
    Unavailable,
    /// The collector ended without finishing the trace; what was left in the rings was read.
    Recovered,
}

impl WarningKind {
    const NAMES: [(WarningKind, &'static str); 13] = [
        (WarningKind::Dropped, "dropped"),
        (WarningKind::Damage, "damage"),
        (WarningKind::TornTail, "torn tail"),
        (WarningKind::Io, "io"),
        (WarningKind::SizeLimit, "size limit"),
        (WarningKind::Clock, "clock"),
        (WarningKind::UnknownName, "unknown name"),
        (WarningKind::Unpaired, "unpaired"),
        (WarningKind::Unsupported, "unsupported"),
        (WarningKind::Clipped, "clipped"),
        (WarningKind::Evicted, "evicted"),
        (WarningKind::Unavailable, "unavailable"),
        (WarningKind::Recovered, "recovered"),
    ];

    /// What it is called in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("damage", |(_, name)| name)
    }

    /// The inverse of [`WarningKind::name`]; damage, where the name is of a later version.
    pub(crate) fn from_name(name: &str) -> WarningKind {
        Self::NAMES.iter().find(|(_, n)| *n == name).map_or(WarningKind::Damage, |(kind, _)| *kind)
    }
}

/// Something that the user has to know, with how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The file or thread.
    pub source: String,
    /// How many.
    pub count: u64,
    /// The sentence.
    pub text: String,
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
