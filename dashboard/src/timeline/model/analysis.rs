//! Analyses that take longer than a frame: utilisation of tracks, statistics of the selected range, matches of a query.
//! Pure functions of the request, for a background thread.

use super::{
    durations::{DurationHistogram, duration_histograms},
    find::{self, Matches, Query},
    flame::{self, FlameBox},
    log::{self, LogLine},
};
use crate::data::Shared;
use std::{ops::Range, sync::Arc};
use trace_analysis::critical::CriticalPath;
use trace_analysis::ops::critical_paths;
use trace_analysis::stalls;
use trace_analysis::stalls::{CauseTotal, Stall, by_cause};
use trace_analysis::stats::{OpStat, TrackUse, op_stats, track_use};
use trace_store::{Residency, Store};
use ui::background::{self, Urgency};

/// Stalls of a view that are listed: the longest, at most this many.
const TOP_STALLS: usize = 200;
/// Steps that are searched for stalls: the last ones of a range. In a view with more, each is far below a pixel.
const MAX_STEPS: usize = 2_000;
/// Slices that are analysed at once, at most: those of the last steps, at least one step. The search for stalls takes
/// about 170 bytes of memory per slice.
const MAX_SLICES: u64 = 1_000_000;

/// Steps whose critical paths are computed, at most.
const MAX_PATHS: usize = 50;

/// A frame's request for analyses of one version of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    pub trace_idx: usize,
    pub version: u64,
    pub view: Range<i64>,
    /// The selected range.
    pub range: Option<Range<i64>>,
    pub query: Query,
    /// Whether critical paths are requested.
    pub critical: bool,
    /// Whether log messages are requested.
    pub log: bool,
    /// Whether the trace grows.
    pub is_live: bool,
}

impl background::Question for Question {
    fn urgency(&self, previous: &Self) -> Urgency {
        let is_same = Self { version: self.version, view: self.view.clone(), ..previous.clone() } == *self;
        match self.is_moved(previous) {
            _ if !is_same => Urgency::AtOnce,
            true => Urgency::Soon,
            // A live trace changes all the time, which alone is not urgent.
            false => Urgency::WhenCheap,
        }
    }
}

impl Question {
    /// Whether the user moved the view and waits for its findings. A view that moves with the end of a growing trace,
    /// or still contains the previous view, is not urgent. (Slices loaded from disk change the trace's version too.)
    fn is_moved(&self, previous: &Self) -> bool {
        let is_elsewhere = self.view.start > previous.view.start || self.view.end < previous.view.end;
        previous.version == self.version || is_elsewhere && !self.is_live
    }
}

/// The stalls of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stalls {
    /// The longest stalls, at most [`TOP_STALLS`], longest first.
    pub top: Vec<Stall>,
    /// Sums over all stalls by cause, the largest first.
    pub by_cause: Vec<CauseTotal>,
    /// The length of the searched end of the range, ns; `None` where the entire range was searched.
    pub only_last_ns: Option<i64>,
}

/// The statistics of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeFacts {
    pub range: Range<i64>,
    /// Whether the slices are resident; if not, all other fields are empty.
    pub residency: Residency,
    pub n_slices: u64,
    /// Statistics of op types, the greatest total time first.
    pub ops: Vec<OpStat>,
    pub tracks: Vec<TrackUse>,
    /// Durations by slice name, the greatest total time first.
    pub names: Vec<DurationHistogram>,
    /// The flame graph of the slices.
    pub flame: Vec<FlameBox>,
    /// Whether the flame graph lacks slices because there were too many.
    pub flame_is_cut: bool,
    /// The flame graph of the samples.
    pub samples: Vec<FlameBox>,
    pub stalls: Stalls,
}

/// The results of a question. Parts that a new question shares with the previous one are reused.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub question: Question,
    /// Whether the slices on the screen are resident; if not, their stalls are unknown.
    pub residency: Residency,
    pub stalls: Arc<Stalls>,
    pub track_use: Arc<Vec<TrackUse>>,
    pub range: Option<Arc<RangeFacts>>,
    pub matches: Arc<Matches>,
    /// The critical paths of the steps on the screen, or of the last [`MAX_PATHS`] of them.
    pub paths: Arc<Vec<CriticalPath>>,
    /// The log messages; `None` unless requested.
    pub log: Option<Arc<Vec<LogLine>>>,
}

/// A question with the store to analyse and the previous findings.
pub struct Request {
    pub question: Question,
    pub store: Shared<Store>,
    /// The previous findings, parts of which may still be valid.
    pub previous: Option<Arc<Findings>>,
}

/// Computes the findings, reusing the valid parts of the previous ones.
pub fn answer(request: Request) -> Findings {
    // Recursive: a loader that waits to write must not block the window behind this read.
    let store = request.store.read_recursive();
    let question = Question { version: store.version(), ..request.question };
    let q = &question;
    let same_version = |f: &Arc<Findings>| (f.question.trace_idx, f.question.version) == (q.trace_idx, q.version);
    let previous = request.previous.filter(same_version);
    let previous = previous.as_deref();
    let same_view = previous.filter(|f| f.question.view == q.view);
    let residency = store.residency(&q.view);
    let (stalls, track_use) = match same_view {
        Some(f) => (Arc::clone(&f.stalls), Arc::clone(&f.track_use)),
        None if residency != Residency::Resident => Default::default(),
        None => (Arc::new(stalls_of(&store, &q.view)), Arc::new(track_use(&store, q.view.clone()))),
    };
    let range = match (&q.range, previous.and_then(|f| f.range.as_ref())) {
        (Some(range), Some(cached)) if cached.range == *range => Some(Arc::clone(cached)),
        (Some(range), _) => Some(Arc::new(range_facts(&store, range))),
        (None, _) => None,
    };
    let matches = match previous.filter(|f| f.question.query == q.query) {
        Some(f) => Arc::clone(&f.matches),
        None => Arc::new(find::matches(&store, &q.query)),
    };
    let paths = match same_view.filter(|f| f.question.critical || !q.critical) {
        Some(f) => Arc::clone(&f.paths),
        None if q.critical && residency == Residency::Resident => Arc::new(paths_of(&store, &q.view)),
        None => Arc::default(),
    };
    let log = match previous.and_then(|f| f.log.as_ref()) {
        Some(cached) => Some(Arc::clone(cached)),
        None => q.log.then(|| Arc::new(log::lines(&store))),
    };
    Findings { residency, stalls, track_use, range, matches, paths, log, question }
}

/// Statistics of a range. Reads every slice in the range.
fn range_facts(store: &Store, range: &Range<i64>) -> RangeFacts {
    let residency = store.residency(range);
    if residency != Residency::Resident {
        return RangeFacts { range: range.clone(), residency, ..RangeFacts::default() };
    }
    let (flame, flame_is_cut) = flame::of_slices(store, range, |_| true);
    RangeFacts {
        range: range.clone(),
        residency,
        n_slices: find::count_in(store, range),
        ops: op_stats(store, range.clone()),
        tracks: track_use(store, range.clone()),
        names: duration_histograms(store, range),
        flame,
        flame_is_cut,
        samples: flame::of_samples(store, range),
        stalls: stalls_of(store, range),
    }
}

/// The critical paths of the last [`MAX_PATHS`] steps in a range, or of the range itself where it has no steps.
fn paths_of(store: &Store, range: &Range<i64>) -> Vec<CriticalPath> {
    let touching = store.steps().iter().rev().filter(|s| s.start < range.end && s.end > range.start);
    let first = touching.take(MAX_PATHS).last().map_or(range.start, |s| s.start.max(range.start));
    critical_paths(store, first..range.end)
}

/// Returns the last part of a range, short enough to be analysed at once: at most `max_steps` steps and [`MAX_SLICES`]
/// slices, but at least one step.
pub fn recent_part(store: &Store, range: &Range<i64>, max_steps: usize) -> Range<i64> {
    let touching = store.steps().iter().filter(|s| s.start < range.end && s.end > range.start);
    let starts: Vec<i64> = touching.map(|s| s.start).collect();
    last_part(&starts, range, max_steps, |part| find::count_in(store, part) <= MAX_SLICES)
}

/// Returns the longest part at the end of a range for which `fits` returns true: the last steps, at most `max_steps`
/// and at least one; without steps, the last part of the time. `starts`: the starts of the steps, ns.
fn last_part(starts: &[i64], range: &Range<i64>, max_steps: usize, fits: impl Fn(&Range<i64>) -> bool) -> Range<i64> {
    let part_from = |start: i64| start.max(range.start)..range.end;
    if starts.len() <= max_steps && fits(range) {
        return range.clone();
    }
    let last_starts = &starts[starts.len().saturating_sub(max_steps)..];
    if let Some(&newest) = last_starts.last() {
        let first = last_starts.partition_point(|&start| !fits(&part_from(start)));
        return part_from(last_starts.get(first).copied().unwrap_or(newest));
    }
    let (mut too_early, mut fitting) = (range.start, range.end);
    while fitting - too_early > 1 {
        let middle = too_early + (fitting - too_early) / 2;
        if fits(&part_from(middle)) { fitting = middle } else { too_early = middle }
    }
    part_from(fitting)
}

/// The stalls of the [`recent_part`] of a range.
pub fn stalls_of(store: &Store, range: &Range<i64>) -> Stalls {
    let recent_part = recent_part(store, range, MAX_STEPS);
    let only_last_ns = (recent_part.start > range.start).then(|| recent_part.end - recent_part.start);
    let mut top = stalls(store, recent_part);
    let by_cause = by_cause(&top);
    top.truncate(TOP_STALLS);
    Stalls { top, by_cause, only_last_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_view_is_not_one_that_grows() {
        let question = |version, view: Range<i64>, is_live| Question { version, view, is_live, ..Question::default() };
        let is_moved = |moved: Question| moved.is_moved(&question(1, 0..100, true));
        assert!(is_moved(question(1, 40..60, true)) && is_moved(question(1, 0..200, false)));
        assert!(is_moved(question(2, 40..60, false)), "closer, and slices came from the disk");
        assert!(!is_moved(question(2, 40..140, true)), "follows the end");
        assert!(!is_moved(question(2, -1..120, false)), "all of a trace that is read");
    }

    #[test]
    fn of_many_slices_those_of_the_last_steps() {
        let starts = [0, 100, 200, 300];
        let at_most = |n: i64| move |range: &Range<i64>| range.end - range.start <= n;
        assert_eq!(last_part(&starts, &(0..400), 9, at_most(400)), 0..400);
        assert_eq!(last_part(&starts, &(0..400), 9, at_most(250)), 200..400);
        assert_eq!(last_part(&starts, &(0..400), 9, at_most(10)), 300..400, "one step, however large");
        assert_eq!(last_part(&[], &(0..400), 9, at_most(150)), 250..400, "no steps: the last part");
        assert_eq!(last_part(&[], &(0..400), 9, |_| false), 400..400);
        assert_eq!(last_part(&starts, &(0..400), 2, at_most(400)), 200..400);
        assert_eq!(last_part(&[], &(7..7), 9, |_| true), 7..7);
    }
}
