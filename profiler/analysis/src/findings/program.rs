//! Findings about a program without steps: its hottest functions, by samples, and the waits of its threads, by the
//! scheduler.

use super::facts::{Facts, Finding, shorten};
use crate::flame::{samples, stack_names};
use crate::intervals::union_ns;
use crate::threads::ThreadTimes;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;
use text::duration;
use trace_model::{ThreadState, TrackId};
use trace_store::Store;

/// Maximum number of functions that are reported.
const MAX_FUNCTIONS: usize = 3;
/// A thread that ran for less than 1/20 of the busiest thread's time is a helper, for whose sleep nothing waits.
const HELPER_FRACTION: i64 = 20;
/// Maximum number of callers that are reported with a function.
const MAX_CALLERS: usize = 3;

pub(super) fn add_findings(facts: &Facts<'_>, found: &mut Vec<Finding>) {
    if !facts.store.steps().is_empty() {
        return;
    }
    let samples = Samples::new(facts.store, &facts.range);
    let mut findings = samples.find_hottest(facts);
    findings.extend(find_longest_sleep(facts, &samples));
    findings.extend(find_longest_cpu_wait(facts));
    if !findings.is_empty() {
        found.retain(|f| f.title != "unexplained");
    }
    found.extend(findings);
}

/// A sample: the thread's track, the time and the row of the stack.
type Sample = (TrackId, i64, u32);

/// The samples of a range.
struct Samples {
    all: Vec<Sample>,
    /// The time on a CPU that one sample stands for, ns.
    period_ns: i64,
}

/// The samples in which one function was the innermost.
#[derive(Default)]
struct Function {
    n_samples: usize,
    /// The interval that each sample stands for, on any thread.
    intervals: Vec<(i64, i64)>,
    by_track: FxHashMap<TrackId, usize>,
    by_stack: FxHashMap<u32, usize>,
}

impl Samples {
    fn new(store: &Store, range: &Range<i64>) -> Samples {
        let mut all: Vec<Sample> = Vec::new();
        let mut distances: Vec<i64> = Vec::new();
        for track in store.tracks() {
            let n_before = all.len();
            all.extend(samples(store, track, range).map(|(time, stack)| (track.id, time, stack)));
            distances.extend(all[n_before..].windows(2).map(|pair| pair[1].1 - pair[0].1));
        }
        // Samples of a thread that runs are one period apart, samples of a thread that sleeps between them further. The
        // lower quartile is therefore the period.
        distances.sort_unstable();
        Samples { all, period_ns: distances.get(distances.len() / 4).copied().unwrap_or(0) }
    }

    /// The findings about the functions with the most samples of their own.
    fn find_hottest(&self, facts: &Facts<'_>) -> Vec<Finding> {
        let mut functions: FxHashMap<String, Function> = FxHashMap::default();
        let mut names: FxHashMap<u32, String> = FxHashMap::default();
        for (track, time, stack) in &self.all {
            let name = names.entry(*stack).or_insert_with(|| leaf_name(facts.store, *stack));
            let function = functions.entry(name.clone()).or_default();
            function.n_samples += 1;
            function.intervals.push((time - self.period_ns, *time));
            *function.by_track.entry(*track).or_default() += 1;
            *function.by_stack.entry(*stack).or_default() += 1;
        }
        let mut functions: Vec<(String, Function)> = functions.into_iter().collect();
        functions.sort_by(|(a_name, a), (b_name, b)| b.n_samples.cmp(&a.n_samples).then_with(|| a_name.cmp(b_name)));
        let hottest = functions.into_iter().take(MAX_FUNCTIONS);
        hottest.map(|(name, function)| self.hot_function(facts, &name, &function)).collect()
    }

    fn hot_function(&self, facts: &Facts<'_>, name: &str, function: &Function) -> Finding {
        let running_ns = union_ns(function.intervals.clone());
        let intervals = || function.intervals.iter();
        let range = intervals().map(|r| r.0).min().unwrap_or(0)..intervals().map(|r| r.1).max().unwrap_or(0);
        let mut finding = facts.finding("hot function", running_ns / 2, range, Vec::new());
        let thread = most_frequent(&function.by_track).and_then(|track| facts.store.track(track));
        let threads = function.by_track.len();
        let on = match (thread, threads) {
            (Some(thread), 1) => format!(" on {}", thread_name(&thread.name)),
            (Some(thread), n) => format!(" on {n} threads, most on {}", thread_name(&thread.name)),
            (None, _) => String::new(),
        };
        let callers = most_frequent(&function.by_stack).map(|stack| callers(facts.store, stack)).unwrap_or_default();
        let callers = if callers.is_empty() { String::new() } else { format!(", called by {}", callers.join(" ← ")) };
        finding.text = format!(
            "`{}`{callers} has {:.1} % of the samples ({} of {}, {} on a CPU){on}. A 2× speed-up would save {}.",
            shorten(name),
            function.n_samples as f64 * 100.0 / self.all.len().max(1) as f64,
            function.n_samples,
            self.all.len(),
            duration(function.n_samples as i64 * self.period_ns),
            duration(finding.saves_ns),
        );
        finding
    }

    /// The function with the most samples of a thread in the intervals `parts`, and the number of those samples.
    fn hottest_during(&self, store: &Store, track: TrackId, parts: &[(i64, i64)]) -> Option<(String, usize)> {
        let is_inside = |time: i64| {
            let n_begun = parts.partition_point(|(start, _)| *start <= time);
            n_begun.checked_sub(1).is_some_and(|i| time < parts[i].1)
        };
        let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
        for (_, _, stack) in self.all.iter().filter(|(sampled, time, _)| *sampled == track && is_inside(*time)) {
            *by_name.entry(leaf_name(store, *stack)).or_default() += 1;
        }
        by_name.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))
    }
}

/// The key with the largest count; of equal counts the smallest key.
fn most_frequent<K: Copy + Ord>(counts: &FxHashMap<K, usize>) -> Option<K> {
    counts.iter().max_by_key(|(key, n)| (**n, Reverse(**key))).map(|(key, _)| *key)
}

fn leaf_name(store: &Store, stack: u32) -> String {
    stack_names(store, stack).pop().unwrap_or_else(|| "(no stack)".to_owned())
}

/// The callers of a stack's innermost function, the innermost caller first.
fn callers(store: &Store, stack: u32) -> Vec<String> {
    let names = stack_names(store, stack);
    names.iter().rev().skip(1).take(MAX_CALLERS).map(|name| format!("`{}`", shorten(name))).collect()
}

/// A thread's name: its track's name without the suffix of scheduling tracks.
fn thread_name(name: &str) -> &str {
    name.trim().trim_end_matches(", scheduling")
}

fn name_of(store: &Store, track: TrackId) -> &str {
    store.track(track).map_or("?", |track| thread_name(&track.name))
}

/// Prefixes of the names of Linux's kernel threads, which sleep until they have work.
const KERNEL_THREADS: &str = "cpuhp/ irq/ jbd2/ kcompactd khugepaged ksoftirqd/ kswapd kthreadd kworker/ migration/ mmcqd/ \
                             rcu_ rcuc/ rcuop/ rcuos/ swapper watchdog/";

/// The threads whose sleep may delay the program: the first thread of each process, and threads that ran for long.
fn main_threads<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = &'a ThreadTimes> {
    let busiest = facts.threads.iter().map(|t| t.running_ns).max().unwrap_or(0);
    facts.threads.iter().filter(move |t| {
        let track = facts.store.track(t.track);
        if track.is_some_and(|track| KERNEL_THREADS.split(' ').any(|begin| track.name.starts_with(begin))) {
            return false;
        }
        let pid = track.and_then(|track| facts.store.processes().get(track.process as usize)).map(|p| p.pid);
        t.running_ns.saturating_mul(HELPER_FRACTION) >= busiest
            || (track.is_some() && pid == track.map(|track| track.tid))
    })
}

/// The intervals in which a thread was off the CPU in a state, cut to the range, in order: start, end, and the thread
/// that woke or preempted it.
fn off_cpu(facts: &Facts<'_>, thread: &ThreadTimes, state: ThreadState) -> Vec<(i64, i64, u32)> {
    let Some(track) = facts.store.track(thread.track) else { return Vec::new() };
    let slices = track.lanes.iter().flat_map(|lane| lane.slices(&facts.range));
    let of_state = slices.filter(|s| facts.store.thread_state(s) == Some(state));
    let mut found: Vec<_> =
        of_state.map(|s| (s.start.max(facts.range.start), s.end.min(facts.range.end), s.correlation)).collect();
    found.sort_unstable();
    found
}

/// The finding about the main thread that slept longest, and the thread that ended most of its sleep.
fn find_longest_sleep(facts: &Facts<'_>, samples: &Samples) -> Option<Finding> {
    let thread = main_threads(facts).max_by_key(|t| (t.sleeping_ns, Reverse(t.track)))?;
    let slept = off_cpu(facts, thread, ThreadState::Sleeping);
    let longest = slept.iter().max_by_key(|(start, end, _)| end - start)?;
    let mut finding = facts.finding("asleep", thread.sleeping_ns, longest.0..longest.1, Vec::new());
    let name = name_of(facts.store, thread.track);
    let total = facts.range.end - facts.range.start;
    let woken = match thread.woken_by {
        None => String::new(),
        Some((0, ns)) => format!("; a timer or a device ended {} of that", duration(ns)),
        Some((waker, ns)) => {
            let track = facts.store.tracks().iter().find(|t| t.tid == waker);
            let who = track.map_or_else(|| format!("thread {waker}"), |t| format!("`{}`", thread_name(&t.name)));
            let parts: Vec<(i64, i64)> =
                slept.iter().filter(|(.., by)| *by == waker).map(|(start, end, _)| (*start, *end)).collect();
            let ran = track.and_then(|t| samples.hottest_during(facts.store, t.id, &parts));
            let ran = ran.map_or_else(String::new, |(name, n)| {
                format!(", which ran `{}` meanwhile ({n} samples)", shorten(&name))
            });
            format!("; {who} ended {} of that{ran}", duration(ns))
        }
    };
    let waits = match slept.len() {
        1 => "in one wait".to_owned(),
        n => format!("in {n} waits, the longest {}", duration(longest.1 - longest.0)),
    };
    let (slept, total) = (duration(thread.sleeping_ns), duration(total));
    finding.text = format!("`{name}` slept for {slept} of {total} {waits}{woken}.");
    Some(finding)
}

/// The finding about the thread that waited longest for a CPU, and the thread that preempted it most.
fn find_longest_cpu_wait(facts: &Facts<'_>) -> Option<Finding> {
    let thread = facts.threads.iter().max_by_key(|t| (t.ready_ns, Reverse(t.track))).filter(|t| t.ready_ns > 0)?;
    let preemptions = off_cpu(facts, thread, ThreadState::Preempted);
    let mut preemptors: FxHashMap<u32, i64> = FxHashMap::default();
    preemptions.iter().for_each(|(start, end, by)| *preemptors.entry(*by).or_default() += end - start);
    let waits = preemptions.iter().copied().chain(off_cpu(facts, thread, ThreadState::Runnable));
    let range = waits.max_by_key(|(start, end, _)| end - start).map_or(facts.range.clone(), |l| l.0..l.1);
    let mut finding = facts.finding("no CPU", thread.ready_ns, range, Vec::new());
    let preemptor = preemptors.into_iter().max_by_key(|(thread, ns)| (*ns, Reverse(*thread)));
    let preemptor = preemptor.filter(|(thread, _)| *thread != 0).map_or_else(String::new, |(thread, ns)| {
        let track = facts.store.tracks().iter().find(|t| t.tid == thread);
        let who = track
            .map_or_else(|| format!("thread {thread}, of another program"), |t| format!("`{}`", thread_name(&t.name)));
        format!("; {who} took it for {} of that", duration(ns))
    });
    let name = name_of(facts.store, thread.track);
    finding.text = format!(
        "`{name}` could run for {} longer than it did, and had no CPU{preemptor}. Fewer threads than cores, or pinned ones, help.",
        duration(thread.ready_ns),
    );
    Some(finding)
}
