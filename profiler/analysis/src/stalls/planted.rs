//! Simulated schedules with planted delays. The simulator makes each piece of work wait, so it knows the causes of
//! every delay. It records the history of causes forward in time, while the analysis looks back from the records alone.

use super::{Cause, stalls};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use trace_store::testkit;

/// Intervals without holes, each with its cause, up to some time.
type History = Vec<(i64, i64, Cause)>;

fn extend_history(history: &History, until: i64, cause: Cause) -> History {
    let mut history = history.clone();
    let from = history.last().map_or(0, |last| last.1);
    if from < until {
        history.push((from, until, cause));
    }
    history
}

/// The part of a history that lies in a gap, with adjacent intervals of one cause merged.
fn within(history: &History, gap: (i64, i64)) -> History {
    let mut found = History::new();
    for (start, end, cause) in history {
        let (start, end) = ((*start).max(gap.0), (*end).min(gap.1));
        match found.last_mut() {
            _ if start >= end => {}
            Some(last) if last.2 == *cause && last.1 == start => last.1 = end,
            _ => found.push((start, end, *cause)),
        }
    }
    found
}

/// Gaps by track and start, with their parts.
type Gaps = BTreeMap<(String, i64), History>;

/// The parts that the analysis finds for the gaps with an expected result.
fn analysed_gaps(text: &str, want: &Gaps) -> Gaps {
    let store = testkit::store(text);
    let mut gaps = Gaps::new();
    for stall in stalls(&store, store.range()) {
        let key = (store.track(stall.track).unwrap().name.clone(), stall.gap.start);
        if want.contains_key(&key) {
            gaps.entry(key).or_default().push((stall.start, stall.end, stall.cause));
        }
    }
    for parts in gaps.values_mut() {
        parts.sort_unstable();
        *parts = within(parts, (i64::MIN, i64::MAX));
    }
    gaps
}

/// An act of a host.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Runs code: duration, and the cause of the stall of a stream that waits for it.
    Host(i64, Cause),
    /// Launches work of a duration on a stream, after a latency.
    Launch { stream: usize, dur: i64, latency: i64 },
    /// Waits for a stream, and returns `late` after the call or the end of the work, whichever is later.
    Sync { stream: usize, late: i64 },
    /// Lets a stream's next work wait for the work that was launched on another stream before.
    Event { waits: usize, records: usize },
}

fn act() -> impl Strategy<Value = Act> {
    let host = (1i64..200, prop::sample::select(vec![Cause::HostLate, Cause::InputLate, Cause::Memory]));
    prop_oneof![
        host.prop_map(|(dur, cause)| Act::Host(dur, cause)),
        (0usize..3, 1i64..300, 1i64..9).prop_map(|(stream, dur, latency)| Act::Launch { stream, dur, latency }),
        (0usize..3, 1i64..9).prop_map(|(stream, late)| Act::Sync { stream, late }),
        (0usize..3, 0usize..3).prop_map(|(waits, records)| Act::Event { waits, records }),
    ]
}

/// The end of a piece of work, and the history of causes for which it did not start earlier.
#[derive(Clone, Default)]
struct Completion {
    at: i64,
    start_history: History,
}

#[derive(Default)]
struct Host {
    text: String,
    now: i64,
    /// Why the host did not come to `now` earlier.
    history: History,
    n_calls: u32,
    streams: [Option<Completion>; 3],
    /// The work that each stream's next work waits for.
    awaited: [Option<Completion>; 3],
    gaps: Gaps,
}

impl Host {
    fn call(&mut self) -> u32 {
        self.n_calls += 1;
        self.n_calls
    }

    fn act(&mut self, act: Act) {
        let now = self.now;
        match act {
            Act::Host(dur, cause) => {
                let what = match cause {
                    Cause::InputLate => "input: next",
                    Cause::Memory => "launch: cudaMalloc",
                    _ => "python: code",
                };
                let _ = writeln!(self.text, "main {what} {now}..{}", now + dur);
                self.advance(now + dur, cause);
            }
            Act::Launch { stream, dur, latency } => self.launch(stream, dur, latency),
            Act::Sync { stream, late } => self.sync(stream, late),
            Act::Event { waits, records } => {
                let (record, _) = (self.call(), self.call());
                let _ = writeln!(self.text, "main launch: cudaEventRecord {now}..{} c {record}", now + 1);
                let _ = writeln!(self.text, "gpu{waits} wait {0}..{0} for {records} record {record}", now + 1);
                let _ = writeln!(self.text, "main launch: cudaStreamWaitEvent {}..{}", now + 1, now + 2);
                self.advance(now + 2, Cause::HostLate);
                // A stream waits for all events that it was set to wait for; the work of another stream is in order.
                if waits != records
                    && let Some(work) = &self.streams[records]
                    && self.awaited[waits].as_ref().is_none_or(|other| other.at < work.at)
                {
                    self.awaited[waits] = Some(work.clone());
                }
            }
        }
    }

    fn advance(&mut self, until: i64, cause: Cause) {
        self.history = extend_history(&self.history, until, cause);
        self.now = until;
    }

    fn launch(&mut self, stream: usize, dur: i64, latency: i64) {
        let (now, call) = (self.now, self.call());
        let (before, event) = (self.streams[stream].clone(), self.awaited[stream].take());
        let free = before.as_ref().map_or(0, |b| b.at);
        let start = (now + latency).max(free + 1).max(event.as_ref().map_or(0, |e| e.at + 1));
        // The last arrival decides; of equal arrivals, the need of the work itself.
        let mut last = (now, extend_history(&self.history, start, Cause::Launch));
        if let Some(event) = event.filter(|e| e.at >= last.0) {
            let why = extend_history(&event.start_history, event.at, Cause::Synchronisation);
            last = (event.at, extend_history(&why, start, Cause::Synchronisation));
        }
        if let Some(before) = before.filter(|b| b.at > last.0) {
            last.1 = extend_history(
                &extend_history(&before.start_history, before.at, Cause::InputLate),
                start,
                Cause::Launch,
            );
        }
        if free > 0 {
            self.gaps.insert((format!("gpu{stream}"), free), within(&last.1, (free, start)));
        }
        let end = start + dur;
        let _ = writeln!(self.text, "main launch: cudaLaunchKernel {now}..{} c {call}", now + 2);
        let _ = writeln!(self.text, "gpu{stream} kernel: k{call} {start}..{end} c {call}");
        self.streams[stream] = Some(Completion { at: end, start_history: last.1 });
        self.advance(now + 2, Cause::Launch);
    }

    fn sync(&mut self, stream: usize, late: i64) {
        let (now, call) = (self.now, self.call());
        let Some(work) = self.streams[stream].clone() else { return };
        let end = now.max(work.at) + late;
        let _ = writeln!(self.text, "main synced {now}..{end} for {stream} c {call}");
        if work.at > now {
            self.history = extend_history(&work.start_history, work.at, Cause::Synchronisation);
        }
        self.advance(end, Cause::Synchronisation);
    }
}

/// An op: worker, distance back to the op that makes it ready, delay before a worker takes it, duration.
type Op = (usize, usize, i64, i64);

#[derive(Default)]
struct Workers {
    text: String,
    ops: Vec<Completion>,
    workers: [Option<Completion>; 4],
    gaps: Gaps,
}

impl Workers {
    fn run(&mut self, (worker, by, late, dur): Op) {
        let id = self.ops.len();
        let by = self.ops.len().checked_sub(1 + by % (id.max(1)));
        let ready = by.map_or(0, |by| self.ops[by].at);
        let before = self.workers[worker].clone();
        let free = before.as_ref().map_or(0, |b| b.at);
        let start = ready.max(free) + late;
        let needed =
            by.map(|by| extend_history(&self.ops[by].start_history, ready, Cause::InputLate)).unwrap_or_default();
        let why = match before {
            Some(before) if free > ready => extend_history(&before.start_history, free, Cause::Dispatch),
            _ => needed,
        };
        let why = extend_history(&why, start, Cause::Dispatch);
        if free > 0 && start > free {
            self.gaps.insert((format!("w{worker}"), free), within(&why, (free, start)));
        }
        let (end, wait) = (start + dur, start - ready);
        let by = by.map_or_else(String::new, |by| format!("by n{by}x"));
        let _ = writeln!(self.text, "w{worker} n{id}x {start}..{end} {by} queue {wait}");
        let done = Completion { at: end, start_history: why };
        self.workers[worker] = Some(done.clone());
        self.ops.push(done);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A host, three streams, events and synchronisations.
    #[test]
    fn delays_of_streams_are_recovered(acts in prop::collection::vec(act(), 1..40)) {
        let mut host = Host::default();
        for act in acts {
            host.act(act);
        }
        prop_assume!(!host.text.is_empty());
        prop_assert_eq!(analysed_gaps(&host.text, &host.gaps), host.gaps, "in\n{}", host.text);
    }

    /// Workers that take ops late, or from behind others.
    #[test]
    fn delays_of_workers_are_recovered(ops in prop::collection::vec((0usize..4, 0usize..9, 0i64..20, 1i64..99), 1..40)) {
        let mut workers = Workers { text: "step 1: 0..9999\n".to_owned(), ..Workers::default() };
        for op in ops {
            workers.run(op);
        }
        prop_assert_eq!(analysed_gaps(&workers.text, &workers.gaps), workers.gaps, "in\n{}", workers.text);
    }
}
