//! What takes longer than a frame: the use of tracks, statistics of the selected range, matches of a query.
//! Computed by a [`Background`] thread from the shared store; pure functions of the request.

use super::{
    background::Background,
    find::{self, Matches, Query},
    flame::{self, FlameBox},
    log::{self, LogLine},
    spread::{Spread, spreads},
};
use crate::data::{ReadGuard, Shared};
use egui::Context;
use profiler::{
    AtHand, CauseTotal, OpStat, Stall, Store, TrackUse,
    analysis::{critical::CriticalPath, ops::critical_paths},
    by_cause, op_stats, stalls, track_use,
};
use std::{ops::Range, sync::Arc};

/// How often a growing trace is analysed anew, seconds.
const REFRESH_S: f64 = 0.25;
/// Stalls that a view shows, at most: the longest.
pub const TOP_STALLS: usize = 200;
/// Steps whose stalls are looked for, at most: the last ones of a range. In a view with more, each is far below a pixel.
pub const MAX_STEPS: usize = 2_000;
/// Slices that are analysed at once, at most: those of the last steps, at least of one. Stalls take about 170 bytes a slice
/// while they are looked for.
pub const MAX_SLICES: u64 = 1_000_000;

/// Steps whose critical paths are marked, at most.
pub const MAX_PATHS: usize = 50;

/// What a frame wants to know about one version of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Index of the trace.
    pub trace_idx: usize,
    /// The store's version.
    pub version: u64,
    /// What is on the screen.
    pub view: Range<i64>,
    /// The selected range.
    pub range: Option<Range<i64>>,
    /// What stands out.
    pub query: Query,
    /// Whether critical paths are asked for.
    pub critical: bool,
    /// Whether log messages are asked for.
    pub log: bool,
}

/// The stalls of some steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stalls {
    /// The longest, at most [`TOP_STALLS`], longest first.
    pub top: Vec<Stall>,
    /// Sums of all by cause, the largest first.
    pub by_cause: Vec<CauseTotal>,
    /// The last part of the range that was looked at, ns, where that is not all of it.
    pub only_last_ns: Option<i64>,
}

/// Statistics of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeFacts {
    /// Which range.
    pub range: Range<i64>,
    /// Whether its slices were here; else what follows is empty.
    pub hand: AtHand,
    /// Slices that touch it.
    pub n_slices: u64,
    /// Per op type, the one with most time first.
    pub ops: Vec<OpStat>,
    /// How tracks spent it.
    pub tracks: Vec<TrackUse>,
    /// Per name, the one with most time first.
    pub names: Vec<Spread>,
    /// Slices by what they are nested in.
    pub flame: Vec<FlameBox>,
    /// Whether there were too many for the flame graph.
    pub flame_is_cut: bool,
    /// Samples by call stack.
    pub samples: Vec<FlameBox>,
    /// Stalls of the steps in it.
    pub stalls: Stalls,
}

/// The answer to a question. The parts are shared, so that one that did not change is not computed again.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What was asked.
    pub question: Question,
    /// Whether the slices on the screen were here; else nothing is known of their stalls.
    pub hand: AtHand,
    /// Stalls of the steps on the screen.
    pub stalls: Arc<Stalls>,
    /// How tracks spent the time on the screen.
    pub track_use: Arc<Vec<TrackUse>>,
    /// About the selected range.
    pub range: Option<Arc<RangeFacts>>,
    /// What stands out.
    pub matches: Arc<Matches>,
    /// The critical paths of the steps on the screen, or of the last [`MAX_PATHS`] of them.
    pub paths: Arc<Vec<CriticalPath>>,
    /// The log messages, once they were asked for.
    pub log: Option<Arc<Vec<LogLine>>>,
}

/// A question with the store to ask and the answer before.
pub struct Request {
    /// What to answer.
    pub question: Question,
    /// From what.
    pub store: Shared<Store>,
    /// What is known already.
    pub before: Option<Arc<Findings>>,
}

/// The thread that answers.
pub type Analysis = Background<Request, Findings>;

/// Asks the thread no oftener than is due, and keeps its latest answer.
#[derive(Default)]
pub struct Asker {
    analysis: Option<Analysis>,
    asked: Option<(Question, f64)>,
}

impl Asker {
    /// The latest findings, after asking for newer ones where that is due.
    pub fn findings(
        &mut self,
        ctx: &Context,
        store: &ReadGuard<Store>,
        question: Question,
        now: f64,
    ) -> Option<Arc<Findings>> {
        let analysis = self.analysis.get_or_insert_with(|| {
            let ctx = ctx.clone();
            Background::start("timeline analysis", answer, move || ctx.request_repaint())
        });
        let result = analysis.result();
        let is_short = self.asked.as_ref().is_none_or(|(asked, _)| is_moved(asked, &question, store.is_live()));
        let pause = if is_short { REFRESH_S } else { analysis.refresh_s(REFRESH_S) };
        let due = match &self.asked {
            None => true,
            Some((asked, _)) if *asked == question => false,
            // A live trace changes all the time; that alone does not hurry.
            Some((asked, at)) => {
                let hurried = Question { version: 0, view: 0..0, ..asked.clone() }
                    != Question { version: 0, view: 0..0, ..question.clone() };
                hurried || now - at >= pause
            }
        };
        if due && !analysis.is_busy() {
            let request = Request { question: question.clone(), store: store.shared(), before: result.clone() };
            analysis.request(request);
            self.asked = Some((question, now));
        } else if self.asked.as_ref().is_none_or(|(asked, _)| *asked != question) {
            ctx.request_repaint_after_secs(pause as f32);
        }
        result
    }
}

/// Whether somebody moved the view, who waits for what it shows, and it is not the trace that grew: then the view goes on
/// with its end, or holds all that it held. (Slices that come from the disk are another version of a trace too.)
fn is_moved(asked: &Question, now: &Question, is_live: bool) -> bool {
    let is_elsewhere = now.view.start > asked.view.start || now.view.end < asked.view.end;
    asked.version == now.version || is_elsewhere && !is_live
}

/// Answers, reusing the parts of the answer before that still hold.
pub fn answer(request: Request) -> Findings {
    // Recursive: a loader that waits to write must not hold up the window behind this read.
    let store = request.store.read_recursive();
    let q = request.question;
    let question = Question { version: store.version(), ..q };
    let q = &question;
    let before = request.before.filter(|b| (b.question.trace_idx, b.question.version) == (q.trace_idx, q.version));
    let before = before.as_deref();
    let same_view = before.filter(|b| b.question.view == q.view);
    let hand = store.at_hand(&q.view);
    let (on_screen, uses) = match same_view {
        Some(b) => (Arc::clone(&b.stalls), Arc::clone(&b.track_use)),
        None if hand != AtHand::All => Default::default(),
        None => (Arc::new(stalls_of(&store, &q.view)), Arc::new(track_use(&store, q.view.clone()))),
    };
    let range = match (&q.range, before.and_then(|b| b.range.as_ref())) {
        (Some(range), Some(known)) if known.range == *range => Some(Arc::clone(known)),
        (Some(range), _) => Some(Arc::new(range_facts(&store, range))),
        (None, _) => None,
    };
    let matches = match before.filter(|b| b.question.query == q.query) {
        Some(b) => Arc::clone(&b.matches),
        None => Arc::new(find::matches(&store, &q.query)),
    };
    let paths = match same_view.filter(|b| b.question.critical || !q.critical) {
        Some(b) => Arc::clone(&b.paths),
        None if q.critical && hand == AtHand::All => Arc::new(paths_of(&store, &q.view)),
        None => Arc::default(),
    };
    let log = match before.and_then(|b| b.log.as_ref()) {
        Some(known) => Some(Arc::clone(known)),
        None => q.log.then(|| Arc::new(log::lines(&store))),
    };
    Findings { hand, stalls: on_screen, track_use: uses, range, matches, paths, log, question }
}

/// Statistics of a range; looks at every slice in it.
pub fn range_facts(store: &Store, range: &Range<i64>) -> RangeFacts {
    let hand = store.at_hand(range);
    if hand != AtHand::All {
        return RangeFacts { range: range.clone(), hand, ..RangeFacts::default() };
    }
    let (flame, flame_is_cut) = flame::of_slices(store, range, |_| true);
    RangeFacts {
        range: range.clone(),
        hand,
        n_slices: find::count_in(store, range),
        ops: op_stats(store, range.clone()),
        tracks: track_use(store, range.clone()),
        names: spreads(store, range),
        flame,
        flame_is_cut,
        samples: flame::of_samples(store, range),
        stalls: stalls_of(store, range),
    }
}

/// The critical paths of the steps that touch a range, or of the last [`MAX_PATHS`] of them; without steps the range's.
fn paths_of(store: &Store, range: &Range<i64>) -> Vec<CriticalPath> {
    let touching = store.steps().iter().rev().filter(|s| s.start < range.end && s.end > range.start);
    let first = touching.take(MAX_PATHS).last().map_or(range.start, |s| s.start.max(range.start));
    critical_paths(store, first..range.end)
}

/// The last part of a range that is analysed at once: no more than `max_steps` steps or [`MAX_SLICES`], but at least one step.
pub fn recent(store: &Store, whole: &Range<i64>, max_steps: usize) -> Range<i64> {
    let touching = store.steps().iter().filter(|s| s.start < whole.end && s.end > whole.start);
    let starts: Vec<i64> = touching.map(|s| s.start).collect();
    latest(&starts, whole, max_steps, |range| find::count_in(store, range) <= MAX_SLICES)
}

/// The end of `whole` that `fits`: the last steps, no more than `max_steps` and at least one; without steps the last part
/// of the time. `starts` has where the steps begin.
fn latest(starts: &[i64], whole: &Range<i64>, max_steps: usize, fits: impl Fn(&Range<i64>) -> bool) -> Range<i64> {
    let from = |start: i64| start.max(whole.start)..whole.end;
    if starts.len() <= max_steps && fits(whole) {
        return whole.clone();
    }
    let last = &starts[starts.len().saturating_sub(max_steps)..];
    if let Some(&newest) = last.last() {
        let first = last.partition_point(|&start| !fits(&from(start)));
        return from(last.get(first).copied().unwrap_or(newest));
    }
    let (mut too_early, mut fitting) = (whole.start, whole.end);
    while fitting - too_early > 1 {
        let middle = too_early + (fitting - too_early) / 2;
        if fits(&from(middle)) { fitting = middle } else { too_early = middle }
    }
    from(fitting)
}

/// The stalls of the [`recent`] steps of a range.
pub fn stalls_of(store: &Store, range: &Range<i64>) -> Stalls {
    let recent = recent(store, range, MAX_STEPS);
    let only_last_ns = (recent.start > range.start).then(|| recent.end - recent.start);
    let mut top = stalls(store, recent);
    let by_cause = by_cause(&top);
    top.truncate(TOP_STALLS);
    Stalls { top, by_cause, only_last_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_view_is_not_one_that_grows() {
        let of = |version, view: Range<i64>| Question { version, view, ..Question::default() };
        let asked = of(1, 0..100);
        assert!(is_moved(&asked, &of(1, 40..60), true) && is_moved(&asked, &of(1, 0..200), false));
        assert!(is_moved(&asked, &of(2, 40..60), false), "closer, and slices came from the disk");
        assert!(!is_moved(&asked, &of(2, 40..140), true), "follows the end");
        assert!(!is_moved(&asked, &of(2, -1..120), false), "all of a trace that is read");
    }

    #[test]
    fn of_many_slices_those_of_the_last_steps() {
        let starts = [0, 100, 200, 300];
        let at_most = |n: i64| move |range: &Range<i64>| range.end - range.start <= n;
        assert_eq!(latest(&starts, &(0..400), 9, at_most(400)), 0..400);
        assert_eq!(latest(&starts, &(0..400), 9, at_most(250)), 200..400);
        assert_eq!(latest(&starts, &(0..400), 9, at_most(10)), 300..400, "one step, however large");
        assert_eq!(latest(&[], &(0..400), 9, at_most(150)), 250..400, "no steps: the last part");
        assert_eq!(latest(&[], &(0..400), 9, |_| false), 400..400);
        assert_eq!(latest(&starts, &(0..400), 2, at_most(400)), 200..400);
        assert_eq!(latest(&[], &(7..7), 9, |_| true), 7..7);
    }
}
