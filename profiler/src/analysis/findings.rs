//! Findings: what to change first, in plain words.
//!
//! Each is ranked by what fixing it would save at most, and that is its time on the critical path: a long op that nobody
//! waited for, or a wait that something else hid, saves nothing.

use super::critical::{CriticalPath, PathKind, Segment};
use super::ops::OpRow;
use super::stragglers::Stragglers;
use crate::stalls::{Cause, duration};
use crate::store::{Category, SliceId, Store};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A finding's evidence lists at most this many slices.
const MAX_SLICES: usize = 5;
/// Letters of a name.
const MAX_NAME: usize = 120;
/// What saves less of the critical paths is not told.
const MIN_SHARE: f64 = 0.01;

/// See the module's notes.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A few words: `launch overhead`.
    pub title: String,
    /// One or two sentences.
    pub text: String,
    /// What fixing it would save at most, ns over all steps.
    pub saves_ns: i64,
    /// The same as a part of all critical paths, 0..=1.
    pub share: f64,
    /// Where to look: the longest of it, ns from the origin.
    pub range: Range<i64>,
    /// The slices to look at, the longest first.
    pub slices: Vec<SliceId>,
}

/// What the rules look at.
pub(crate) struct Facts<'a> {
    pub store: &'a Store,
    pub paths: &'a [CriticalPath],
    pub ops: &'a [OpRow],
    pub stragglers: &'a Stragglers,
}

/// All findings, the one that saves most first.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let total: i64 = facts.paths.iter().map(|p| p.range.end - p.range.start).sum();
    let mut kinds: FxHashMap<PathKind, Vec<&Segment>> = FxHashMap::default();
    for segment in facts.paths.iter().flat_map(|p| &p.segments) {
        kinds.entry(segment.kind).or_default().push(segment);
    }
    let mut found: Vec<Finding> = kinds.into_iter().filter_map(|(kind, s)| on_path(facts, kind, s, total)).collect();
    found.extend(facts.ops.iter().filter_map(|op| slow_op(facts, op, total)));
    found.extend(straggler(facts, total));
    found.retain(|f| f.share >= MIN_SHARE);
    found.sort_by(|a, b| b.saves_ns.cmp(&a.saves_ns).then_with(|| a.title.cmp(&b.title)));
    found
}

fn per_step(facts: &Facts<'_>, ns: i64) -> String {
    let n = facts.paths.iter().filter(|p| p.step_id.is_some()).count();
    match n {
        0 | 1 => duration(ns),
        n => format!("{} a step", duration(ns / n as i64)),
    }
}

/// Kinds of segments that can be shortened without a faster op.
fn on_path(facts: &Facts<'_>, kind: PathKind, mut segments: Vec<&Segment>, total: i64) -> Option<Finding> {
    let (title, what, mut remedy) = words(kind)?;
    if kind == PathKind::Stall(Cause::Unexplained) && facts.store.sites().iter().any(|s| s.category == Category::OffCpu)
    {
        remedy = "Scheduling tells when threads waited and who woke them; for what, slices of the program's own would tell \
                  (`tracing`, or `stepscope-events`).";
    }
    segments.sort_by_key(|s| (std::cmp::Reverse(s.dur()), s.start));
    let saves_ns = segments.iter().map(|s| s.dur()).sum();
    let longest = segments.first()?;
    let share = saves_ns as f64 / total.max(1) as f64;
    let culprit = longest.slice.and_then(|id| facts.store.slice(id));
    let at = culprit.map_or_else(String::new, |slice| {
        let track = facts.store.track(longest.track).map_or("?", |t| &t.name);
        format!(" The longest, {}, at `{}` on {track}.", duration(longest.dur()), short(facts.store.slice_name(&slice)))
    });
    let time = per_step(facts, saves_ns);
    let text = format!("{what}: {time}, {:.1} % of the critical path.{at} {remedy}", share * 100.0);
    let range = longest.start..longest.end;
    Some(Finding { title: title.to_owned(), text, saves_ns, share, range, slices: slices(facts.store, &segments) })
}

/// As much of a name as a sentence takes: kernels' have hundreds of letters.
fn short(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// The slices that held paths up longest, the longest first.
fn slices(store: &Store, segments: &[&Segment]) -> Vec<SliceId> {
    let mut slices: Vec<SliceId> = Vec::new();
    for id in segments.iter().filter_map(|s| s.slice) {
        if !slices.contains(&id) {
            slices.push(id);
        }
        if slices.len() == MAX_SLICES {
            break;
        }
    }
    slices.sort_by_key(|id| std::cmp::Reverse(store.slice(*id).map_or(0, |slice| slice.dur())));
    slices
}

/// Title, what happens, what helps.
fn words(kind: PathKind) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match kind {
        PathKind::Op | PathKind::Kernel => return None,
        PathKind::Copy => (
            "copies",
            "Steps wait for memory to be copied",
            "Pinned host memory, copies on a stream of their own, or data that stays on the device help.",
        ),
        PathKind::Collective => (
            "exposed communication",
            "Steps wait for collectives that no compute hides",
            "Larger buckets that start earlier, or fewer bytes, help.",
        ),
        PathKind::Launch => (
            "launches",
            "Steps wait for the host to launch work",
            "Fused kernels, captured graphs or larger batches launch less.",
        ),
        PathKind::Input => (
            "input",
            "Steps wait for their input to be made",
            "More loader threads, or loading ahead while the step before runs, helps.",
        ),
        PathKind::Host => {
            ("host code", "Steps wait for code on the host", "Move it off the step's thread, or make it cheaper.")
        }
        PathKind::Stall(cause) => return stall_words(cause),
        PathKind::Memory => (
            "memory",
            "Steps wait for memory to be taken or given back",
            "A caching allocator, or buffers that are reused, avoids it.",
        ),
    })
}

fn stall_words(cause: Cause) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match cause {
        Cause::HostLate | Cause::InputLate => {
            ("host late", "Steps wait for host code that left no slices", "Record the host's functions to see which.")
        }
        Cause::PeerLate => ("peer late", "Steps wait for another process", "See the stragglers."),
        Cause::Network => (
            "network",
            "Steps wait for values on their way between processes",
            "Fewer or smaller transfers, or sending earlier, helps.",
        ),
        Cause::Dma => (
            "transfers between devices",
            "Steps wait for values on their way between devices",
            "Keep what exchanges values on one device.",
        ),
        Cause::Synchronisation => (
            "synchronisation",
            "Steps wait for synchronisation calls to return",
            "Fewer synchronisations (`.item()`, blocking copies) help.",
        ),
        Cause::ScheduledOut => (
            "scheduled out",
            "The operating system did not run the thread that everything waited for",
            "Fewer threads than cores, or pinned ones, help.",
        ),
        Cause::QueueEmpty => (
            "queue empty",
            "Steps wait for a queue that is not filled in time",
            "More threads that fill it, or a larger queue, helps.",
        ),
        Cause::OtherStep => (
            "other steps",
            "Steps wait for what other steps hold or bring: locks, gradients",
            "Shorter locked parts help; late gradients point to a slow peer.",
        ),
        Cause::Launch => (
            "launch overhead",
            "Devices wait between the launch of work and its begin",
            "Fused kernels or captured graphs launch less.",
        ),
        Cause::Dispatch => (
            "dispatch",
            "Ops were ready and not started, since all workers were busy or the executor was",
            "More workers, or fewer and larger ops, help.",
        ),
        Cause::WakeUp => (
            "wake-ups",
            "Ops were ready while their worker slept",
            "Larger ops, or workers that spin longer before they sleep, help.",
        ),
        Cause::StepBegin => {
            ("begin of steps", "Time passes in steps before their first op", "Larger steps, or fewer feeds, help.")
        }
        Cause::StepEnd => {
            ("end of steps", "Time passes in steps after their last op", "Larger steps, or fewer fetches, help.")
        }
        Cause::Unexplained => (
            "unexplained",
            "The trace does not tell what steps waited for",
            "Record more: scheduling (`record --sched`), device activity, or the host's functions.",
        ),
        // A step that waits for room is ahead of who takes from the queue: nobody waits for it.
        Cause::QueueFull | Cause::Memory | Cause::NothingReady => return None,
    })
}

/// An op that steps wait for: twice as fast it would save half of its time on the path.
fn slow_op(facts: &Facts<'_>, op: &OpRow, total: i64) -> Option<Finding> {
    if !matches!(op.category.as_str(), "op" | "kernel" | "shard") {
        return None;
    }
    let is_it = |s: &&Segment| {
        let slice = s.slice.filter(|_| matches!(s.kind, PathKind::Op | PathKind::Kernel));
        let slice = slice.and_then(|id| facts.store.slice(id));
        let site = slice.and_then(|slice| facts.store.sites().get(slice.site as usize));
        site.is_some_and(|site| site.name == op.name && site.category_name == op.category)
    };
    let saves_ns = op.critical_ns / 2;
    let share = saves_ns as f64 / total.max(1) as f64;
    if share < MIN_SHARE {
        return None;
    }
    let mut segments: Vec<&Segment> = facts.paths.iter().flat_map(|p| &p.segments).filter(is_it).collect();
    segments.sort_by_key(|s| (std::cmp::Reverse(s.dur()), s.start));
    let longest = segments.first()?;
    let name = short(&op.name);
    let (what, times) = match op.category.as_str() {
        "shard" => (format!("Parts of `{name}` that ran on other threads are"), "parts"),
        _ => (format!("`{name}` is"), "executions"),
    };
    let text = format!(
        "{what} {:.1} % of the critical path in {} {times}; twice as fast it would save {}.",
        op.critical_share * 100.0,
        op.figures.count,
        per_step(facts, saves_ns),
    );
    let range = longest.start..longest.end;
    Some(Finding {
        title: format!("slow {}", op.category),
        text,
        saves_ns,
        share,
        range,
        slices: slices(facts.store, &segments),
    })
}

/// The process that made the others wait longest.
fn straggler(facts: &Facts<'_>, total: i64) -> Option<Finding> {
    let worst = facts.stragglers.processes.first()?;
    let mut times: Vec<_> = facts.stragglers.collectives.iter().filter(|l| l.process == worst.process).collect();
    let exchanges = facts.stragglers.collectives.len();
    times.sort_by_key(|l| std::cmp::Reverse(l.late_ns));
    let first = times.first()?;
    let slice = facts.store.slice(first.slice)?;
    let saves_ns: i64 = times.iter().map(|l| l.late_ns).sum();
    let process = facts.store.processes().get(worst.process as usize)?;
    let text = format!(
        "{} on {} came last to {} of {exchanges} collectives, {} after the first; the others waited {} together.",
        process.title(),
        process.host,
        times.len(),
        duration(saves_ns / times.len().max(1) as i64),
        duration(times.iter().map(|l| l.waited_ns).sum()),
    );
    let share = saves_ns as f64 / total.max(1) as f64;
    let slices = times.iter().take(MAX_SLICES).map(|l| l.slice).collect();
    Some(Finding { title: "straggler".to_owned(), text, saves_ns, share, range: slice.start..slice.end, slices })
}
