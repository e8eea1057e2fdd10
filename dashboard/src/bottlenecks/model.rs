//! The report: the analysis of a range, the breakdown of each step, sums over critical paths. No egui.

use crate::{
    ops::range_analysis::{RangeQuestion, Request},
    timeline::analysis::recent_part,
};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_analysis::breakdown::{Breakdown, breakdown};
use trace_analysis::critical::{CriticalPath, PathKind, Segment};
use trace_analysis::report::{Analysis, analyse};
use trace_analysis::stalls::Stall;
use trace_store::{Residency, Store};
use ui::format;

/// The number of last steps that are analysed by default.
pub const MAX_STEPS: usize = 200;

/// A part of a step's time.
pub struct Part {
    pub name: &'static str,
    /// The part's time, ns. Communication and copies that overlap work count as that work.
    pub ns: fn(&Breakdown) -> i64,
    /// The index of the part's colour; `None` for idle time.
    pub color_idx: Option<usize>,
}

/// All parts, from the bottom of a bar upwards. Each is the time in which no earlier part ran; in the last one, idle,
/// nothing that was recorded ran.
pub static PARTS: [Part; 6] = [
    Part { name: "compute", ns: |times| times.compute_ns, color_idx: Some(0) },
    Part { name: "communication", ns: |times| times.communication_exposed_ns, color_idx: Some(3) },
    Part { name: "copies", ns: |times| times.copy_exposed_ns, color_idx: Some(1) },
    Part { name: "input", ns: |times| times.input_ns, color_idx: Some(2) },
    Part { name: "host", ns: |times| times.host_ns, color_idx: Some(7) },
    Part { name: "idle", ns: |times| times.idle_ns, color_idx: None },
];

/// A step with its breakdown.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBar {
    /// The step's name: `train 40`.
    pub name: String,
    pub times: Breakdown,
}

/// The segments of one kind on the critical paths.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRow {
    pub kind: PathKind,
    /// Time of these segments on all paths, ns.
    pub total_ns: i64,
    /// Share of the paths' length, 0..=1.
    pub share: f64,
    /// The number of segments.
    pub count: u64,
    pub longest: Segment,
}

/// The stalls of one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseRow {
    /// Time of these stalls, ns.
    pub total_ns: i64,
    /// The number of stalls.
    pub count: u64,
    pub longest: Stall,
}

/// The report on a range.
pub struct Report {
    pub question: RangeQuestion,
    /// Whether the slices were resident; the report is empty otherwise.
    pub residency: Residency,
    /// The requested range; of many steps, the analysis covers only the last ones.
    pub requested: Range<i64>,
    pub analysis: Analysis,
    pub steps: Vec<StepBar>,
    /// The number of steps in the requested range; `steps` has only the last ones of many.
    pub n_steps: usize,
    /// Kinds of segments of the critical paths, the longest first.
    pub path: Vec<PathRow>,
    /// Stalls by cause, the longest first.
    pub causes: Vec<CauseRow>,
}

/// Analyses the requested range, in a background thread: the analysis takes as long as `stepscope analyze`.
pub fn build_report(request: Request) -> Report {
    // Recursive: a loader that waits to write must not hold up the window behind this read.
    let store = request.store.read_recursive();
    let question = RangeQuestion { version: store.version(), ..request.question };
    let requested = question.range.clone().unwrap_or_else(|| store.range());
    let n_steps = overlapping_steps(&store, &requested).count();
    let mut range = if question.all_steps { requested.clone() } else { recent_part(&store, &requested, MAX_STEPS) };
    let residency = store.residency(&range);
    if residency != Residency::Resident {
        range.end = range.start;
    }
    let bar = |s: &trace_model::Step| {
        let label = store.sites().get(s.site as usize).map_or("step", |site| &site.name);
        let name = format::step_name(label, s.summary_step);
        StepBar { name, times: breakdown(&store, s.start..s.end, None) }
    };
    let steps = overlapping_steps(&store, &range).map(bar).collect();
    let analysis = analyse(&store, range);
    Report {
        residency,
        path: path_rows(&analysis.paths),
        causes: cause_rows(&analysis.stalls),
        question,
        analysis,
        steps,
        n_steps,
        requested,
    }
}

/// Returns the steps that overlap a range.
fn overlapping_steps<'a>(
    store: &'a Store,
    range: &Range<i64>,
) -> impl Iterator<Item = &'a trace_model::Step> + use<'a> {
    let Range { start, end } = *range;
    store.steps().iter().filter(move |s| s.start < end && s.end > start)
}

/// Sums up the segments of all paths by kind.
fn path_rows(paths: &[CriticalPath]) -> Vec<PathRow> {
    let total_ns: i64 = paths.iter().map(|p| p.range.end - p.range.start).sum();
    let mut rows: FxHashMap<PathKind, PathRow> = FxHashMap::default();
    for segment in paths.iter().flat_map(|p| &p.segments) {
        let row = rows.entry(segment.kind).or_insert_with(|| PathRow {
            kind: segment.kind,
            total_ns: 0,
            share: 0.0,
            count: 0,
            longest: segment.clone(),
        });
        row.total_ns += segment.dur();
        row.count += 1;
        if segment.dur() > row.longest.dur() {
            row.longest = segment.clone();
        }
    }
    let mut rows: Vec<PathRow> = rows.into_values().collect();
    rows.iter_mut().for_each(|row| row.share = row.total_ns as f64 / total_ns.max(1) as f64);
    rows.sort_by_key(|row| (std::cmp::Reverse(row.total_ns), row.longest.start));
    rows
}

/// Sums up stalls by cause.
fn cause_rows(stalls: &[Stall]) -> Vec<CauseRow> {
    let mut rows: Vec<CauseRow> = Vec::new();
    // Stalls are sorted by length: the first of a cause is its longest.
    for stall in stalls {
        match rows.iter_mut().find(|row| row.longest.cause == stall.cause) {
            Some(row) => {
                row.total_ns += stall.dur();
                row.count += 1;
            }
            None => rows.push(CauseRow { total_ns: stall.dur(), count: 1, longest: stall.clone() }),
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

/// Returns the name of a kind of segments.
pub fn path_kind_name(kind: PathKind) -> String {
    match kind {
        PathKind::Op => "ops".into(),
        PathKind::Kernel => "kernels".into(),
        PathKind::Copy => "copies".into(),
        PathKind::Collective => "collectives".into(),
        PathKind::Launch => "launches".into(),
        PathKind::Input => "input".into(),
        PathKind::Host => "host code".into(),
        PathKind::Memory => "memory".into(),
        PathKind::Running => "on a CPU".into(),
        PathKind::Profiler => "the profiler itself".into(),
        PathKind::Stall(cause) => format!("stall: {cause}"),
        _ => "other".into(),
    }
}

/// Returns mean and median of the steps' durations, ns; `None` without steps.
pub fn step_times(steps: &[StepBar]) -> Option<(i64, i64)> {
    let mut times: Vec<i64> = steps.iter().map(|s| s.times.total_ns()).collect();
    times.sort_unstable();
    let median = *times.get(times.len() / 2)?;
    Some((times.iter().sum::<i64>() / times.len() as i64, median))
}

/// Returns the findings as CSV.
pub fn csv(report: &Report) -> String {
    let row = |(i, f): (usize, &trace_analysis::findings::Finding)| {
        [
            (i + 1).to_string(),
            f.title.clone(),
            f.saves_ns.to_string(),
            f.share.to_string(),
            f.range.start.to_string(),
            f.range.end.to_string(),
            f.text.clone(),
        ]
    };
    let headings = ["rank", "finding", "saves_ns", "share", "start_ns", "end_ns", "text"];
    ui::export::csv(&headings, report.analysis.findings.iter().enumerate().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::{STEP_NS, demo};
    use parking_lot::RwLock;
    use std::sync::Arc;

    fn report(steps: u32, all_steps: bool) -> Report {
        let store = Arc::new(RwLock::new(demo(steps)));
        build_report(Request { question: RangeQuestion { trace_idx: 0, version: 0, range: None, all_steps }, store })
    }

    #[test]
    fn parts_add_up_to_each_step_and_rows_to_the_paths() {
        let report = report(5, false);
        assert_eq!((report.steps.len(), report.n_steps), (5, 5));
        for step in &report.steps {
            let sum: i64 = PARTS.iter().map(|part| (part.ns)(&step.times)).sum();
            assert_eq!(sum, step.times.total_ns());
        }
        assert_eq!(report.steps[2].name, "train 20");
        assert_eq!(step_times(&report.steps), Some((88_000, 88_000)), "10 to 98 µs");
        let on_paths: i64 = report.path.iter().map(|row| row.total_ns).sum();
        assert_eq!(on_paths, 5 * 88_000);
        assert!((report.path.iter().map(|row| row.share).sum::<f64>() - 1.0).abs() < 1e-9);
        let longest = &report.path[0];
        assert_eq!(
            (path_kind_name(longest.kind), longest.longest.dur()),
            ("ops".to_owned(), 30_000),
            "what follows the shard"
        );
        let stalled: i64 = report.causes.iter().map(|row| row.total_ns).sum();
        assert_eq!(stalled, report.analysis.stalls.iter().map(Stall::dur).sum::<i64>());
        assert_eq!(csv(&report).lines().count(), 1 + report.analysis.findings.len());
    }

    #[test]
    fn of_many_steps_the_last_unless_all_are_asked_for() {
        let few = report(MAX_STEPS as u32 + 50, false);
        assert_eq!((few.steps.len(), few.n_steps), (MAX_STEPS, MAX_STEPS + 50));
        assert_eq!(few.analysis.range.start, 50 * STEP_NS + 10_000);
        assert_eq!(report(MAX_STEPS as u32 + 50, true).steps.len(), MAX_STEPS + 50);
    }
}
