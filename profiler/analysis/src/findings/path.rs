//! Findings from the critical path: its delays by kind, and its slow ops.

use super::facts::{Facts, Finding, MIN_SHARE, evidence_slices, shorten};
use super::words::{SegmentGroup, texts_of};
use crate::activity::{Activities, Activity};
use crate::critical::{PathKind, Segment};
use crate::ops::OpRow;
use crate::stalls::cause::{Advice, Cause};
use crate::whatif::Candidate;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use text::duration;
use trace_model::{Category, SliceRef, TrackId};
use trace_store::Store;

/// The maximum duration that launch overhead explains (2 to 100 µs, by HTA and NVIDIA, with a margin). In a longer
/// launch the work, or the call itself, waited for something else.
const LONG_LAUNCH_NS: i64 = 1_000_000;

/// The least share of the critical path at which one function of the host's code is a finding of its own.
const MIN_FUNCTION_SHARE: f64 = 0.05;

/// The segments of one finding: kind, group, and for a function of the host's code its site.
type Key = (PathKind, SegmentGroup, Option<u32>);

pub(super) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let activities = Activities::new(facts.store);
    let mut groups: FxHashMap<Key, Vec<&Segment>> = FxHashMap::default();
    for segment in facts.paths.iter().flat_map(|p| &p.segments) {
        let group = group_of(facts.store, &activities, segment);
        let kind = match segment.kind {
            _ if group == SegmentGroup::LongCall => PathKind::Launch,
            PathKind::Host if facts.what_if.is_some_and(|what_if| what_if.is_launching(segment)) => PathKind::Launch,
            kind => kind,
        };
        let slice = segment.slice.filter(|_| kind == PathKind::Host).and_then(|id| facts.store.slice(id));
        groups.entry((kind, group, slice.map(|slice| slice.site))).or_default().push(segment);
    }
    merge_small_functions(facts, &mut groups);
    let (has_steps, has_scheduling) = (facts.has_steps(), has_scheduling(facts.store));
    let mut found: Vec<Finding> = groups
        .into_iter()
        .filter_map(|(key, segments)| {
            Some(finding(facts, key, texts_of(key.0, key.1, has_steps, has_scheduling)?, segments))
        })
        .collect();
    found.extend(facts.ops.iter().filter_map(|op| slow_op(facts, op)));
    found
}

/// Joins the functions of the host's code that take little of the path.
fn merge_small_functions(facts: &Facts<'_>, groups: &mut FxHashMap<Key, Vec<&Segment>>) {
    let least_ns = (facts.path_ns() as f64 * MIN_FUNCTION_SHARE) as i64;
    let is_small = |key: &Key, segments: &mut Vec<&Segment>| {
        key.2.is_some() && segments.iter().map(|segment| segment.dur()).sum::<i64>() < least_ns
    };
    let small: Vec<(Key, Vec<&Segment>)> = groups.extract_if(is_small).collect();
    for ((kind, group, _), segments) in small {
        groups.entry((kind, group, None)).or_default().extend(segments);
    }
}

fn group_of(store: &Store, activities: &Activities<'_>, segment: &Segment) -> SegmentGroup {
    let slice = segment.slice.and_then(|id| store.slice(id));
    match segment.kind {
        PathKind::Launch if segment.dur() > LONG_LAUNCH_NS => SegmentGroup::LongCall,
        PathKind::Stall(Cause::Launch) if segment.dur() > LONG_LAUNCH_NS => {
            let is_call = slice.is_some_and(|call| 2 * (call.end.min(segment.end) - segment.start) > segment.dur());
            if is_call { SegmentGroup::LongCall } else { SegmentGroup::LateWork }
        }
        PathKind::Stall(Cause::ScheduledOut) => {
            if slice.is_some_and(|slice| activities.get(&slice) == Activity::Asleep) {
                SegmentGroup::Asleep
            } else {
                SegmentGroup::Usual
            }
        }
        _ => SegmentGroup::Usual,
    }
}

fn has_scheduling(store: &Store) -> bool {
    store.sites().iter().any(|site| site.category == Category::OffCpu)
}

fn finding(facts: &Facts<'_>, key: Key, (title, advice): (&str, Advice), mut segments: Vec<&Segment>) -> Finding {
    segments.sort_by_key(|s| (Reverse(s.dur()), s.start));
    let time: i64 = segments.iter().map(|s| s.dur()).sum();
    let range = segments.first().map_or(0..0, |longest| longest.start..longest.end);
    let replayed = facts.what_if.zip(candidate(key)).map(|(what_if, (change, _))| what_if.saves_ns(change));
    let saves_ns = replayed.unwrap_or(time);
    let mut found = facts.finding(title, saves_ns, range, evidence_slices(facts.store, &segments));
    found.is_replayed = replayed.is_some();
    let location =
        segments.first().map_or_else(String::new, |longest| locate_longest(facts.store, longest, segments.len()));
    let (what, share) = (advice.problem.text(facts.has_steps()), time as f64 * 100.0 / facts.path_ns().max(1) as f64);
    let change = candidate(key).filter(|_| replayed.is_some());
    let outcome = change.map_or_else(String::new, |(_, change)| facts.outcome(change, found.saves_ns));
    let time = facts.per_step(time);
    found.text = format!("{what}: {time}, {share:.1} % of the critical path.{location}{outcome} {}", advice.remedy);
    found
}

/// The change that does away with the segments of a finding, and its words.
fn candidate((kind, group, site): Key) -> Option<(Candidate<'static>, &'static str)> {
    use Activity as A;
    Some(match (kind, site) {
        (PathKind::Copy, _) => (Candidate::WithoutCopies, "Without copies"),
        (PathKind::Collective, _) => (Candidate::Without(&[A::Collective]), "Without them"),
        (PathKind::Launch, _) if group == SegmentGroup::LongCall => {
            (Candidate::Without(&[A::Launch]), "Without such calls")
        }
        (PathKind::Launch, _) => (Candidate::Captured, "With all work launched from a captured graph"),
        (PathKind::Input, _) => (Candidate::Without(&[A::Input]), "With its input ready"),
        (PathKind::Memory, _) => (Candidate::Without(&[A::Memory]), "Without these calls"),
        (PathKind::Host, Some(site)) => (Candidate::Scaled(site, 0.0), "Without it"),
        (PathKind::Stall(Cause::Synchronisation), _) => (Candidate::WithoutHostWaits, "Without such calls"),
        _ => return None,
    })
}

/// Returns the sentence that locates the longest segment: ` The longest of 12, 3.4 ms, at `f` on main.`
fn locate_longest(store: &Store, longest: &Segment, n: usize) -> String {
    let culprit = longest.slice.and_then(|id| store.slice(id));
    let track = culprit.map_or(longest.track, |slice| TrackId(slice.id.track));
    let track = store.track(track).map_or("?", |t| t.name.trim());
    let enclosing_slice = || enclosing(store, longest.track, longest.start);
    let name = |slice: &SliceRef| shorten(store.slice_name(slice));
    let place = match culprit {
        Some(slice) => format!("at `{}` on {track}", name(&slice)),
        None => match enclosing_slice() {
            Some(slice) => format!("within `{}` on {track}", name(&slice)),
            None => return String::new(),
        },
    };
    let dur = duration(longest.dur());
    if n == 1 { format!(" It is one piece, {place}.") } else { format!(" The longest of {n}, {dur}, {place}.") }
}

/// The innermost slice of a track that was open at a time.
fn enclosing(store: &Store, track: TrackId, time: i64) -> Option<SliceRef> {
    let at = time..time + 1;
    let slices = store.track(track)?.lanes.iter().flat_map(|lane| lane.slices(&at));
    slices.filter(|slice| slice.start <= time && time < slice.end).min_by_key(|slice| slice.dur())
}

/// The finding of a slow op: a 2× speed-up would save half of its time on the path.
fn slow_op(facts: &Facts<'_>, op: &OpRow) -> Option<Finding> {
    if !matches!(op.category.as_str(), "op" | "kernel" | "shard") {
        return None;
    }
    let is_of_op = |s: &&Segment| {
        let slice = s.slice.filter(|_| matches!(s.kind, PathKind::Op | PathKind::Kernel));
        let slice = slice.and_then(|id| facts.store.slice(id));
        let site = slice.and_then(|slice| facts.store.sites().get(slice.site as usize));
        site.is_some_and(|site| site.name == op.name && site.category_name == op.category)
    };
    let total = facts.path_ns().max(1) as f64;
    if (op.critical_ns / 2) as f64 / total < MIN_SHARE {
        return None;
    }
    let mut segments: Vec<&Segment> = facts.paths.iter().flat_map(|p| &p.segments).filter(is_of_op).collect();
    segments.sort_by_key(|s| (Reverse(s.dur()), s.start));
    let longest = segments.first()?;
    let name = shorten(&op.name);
    let (what, times) = match op.category.as_str() {
        "shard" => (format!("Parts of `{name}` that ran on other threads are"), "parts"),
        _ => (format!("`{name}` is"), "executions"),
    };
    let range = longest.start..longest.end;
    let title = format!("slow {}", op.category);
    let site = facts.store.slice(longest.slice?)?.site;
    let replayed = facts.what_if.map(|what_if| what_if.saves_ns(Candidate::Scaled(site, 0.5)));
    let saves_ns = replayed.unwrap_or(op.critical_ns / 2);
    let mut found = facts.finding(&title, saves_ns, range, evidence_slices(facts.store, &segments));
    found.is_replayed = replayed.is_some();
    found.text = format!(
        "{what} {:.1} % of the critical path in {} {times}; a 2× speed-up would save {}.",
        op.critical_ns as f64 * 100.0 / total,
        op.figures.count,
        facts.per_step(found.saves_ns),
    );
    Some(found)
}
