//! The rules' input (facts of a trace) and output (findings).

use crate::breakdown::DeviceBreakdown;
use crate::communication::Communication;
use crate::critical::{CriticalPath, PathKind, Segment};
use crate::ops::OpRow;
use crate::threads::ThreadTimes;
use crate::whatif::WhatIf;
use rustc_hash::FxHashSet;
use std::ops::Range;
use text::duration;
use trace_model::SliceId;
use trace_store::Store;

/// Maximum number of slices that a finding lists as evidence.
pub(super) const MAX_SLICES: usize = 5;
/// Maximum number of characters of a name that a sentence quotes.
const MAX_NAME: usize = 120;
/// The share of the critical path below which a finding is left out.
pub(super) const MIN_SHARE: f64 = 0.01;

/// Something to change, with what it would save.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A few words: `launch overhead`.
    pub title: String,
    /// The problem and its remedy, in one or two sentences.
    pub text: String,
    /// The time that the change would save, ns over all steps: as replayed, or at most the problem's time on the path.
    pub saves_ns: i64,
    /// Whether `saves_ns` was found by replaying the recorded work (docs/use/analysis.md).
    pub is_replayed: bool,
    /// `saves_ns` as a share of the critical path, 0..=1.
    pub share: f64,
    /// The longest occurrence of the problem, ns from the origin.
    pub range: Range<i64>,
    /// The slices that show the problem, the longest first.
    pub slices: Vec<SliceId>,
}

/// The input of the rules.
pub(crate) struct Facts<'a> {
    pub store: &'a Store,
    /// Replays of the paths' work, if there is not too much of it.
    pub what_if: Option<&'a WhatIf<'a, 'a>>,
    pub range: Range<i64>,
    pub paths: &'a [CriticalPath],
    pub ops: &'a [OpRow],
    pub devices: &'a [DeviceBreakdown],
    pub threads: &'a [ThreadTimes],
    pub communication: &'a Communication,
}

impl Facts<'_> {
    /// The length of the critical path without the profiler's own work, ns.
    pub(super) fn path_ns(&self) -> i64 {
        let segments = self.paths.iter().flat_map(|p| &p.segments);
        segments.filter(|segment| segment.kind != PathKind::Profiler).map(Segment::dur).sum()
    }

    pub(super) fn has_steps(&self) -> bool {
        self.paths.iter().any(|p| p.step_id.is_some())
    }

    /// Returns a finding without its text, with its saving cut to the length of the critical path.
    pub(super) fn finding(&self, title: &str, saves_ns: i64, range: Range<i64>, slices: Vec<SliceId>) -> Finding {
        let path_ns = self.path_ns();
        let saves_ns = saves_ns.clamp(0, path_ns);
        let share = saves_ns as f64 / path_ns.max(1) as f64;
        Finding { title: title.to_owned(), text: String::new(), saves_ns, is_replayed: false, share, range, slices }
    }

    /// Returns the sentence that says how long a step takes with a change that saves `saves_ns` in all, and how long
    /// without.
    pub(super) fn outcome(&self, change: &str, saves_ns: i64) -> String {
        let n_steps = self.n_steps().max(1);
        let step = |ns: i64| duration(ns / n_steps);
        let (before, after) = (step(self.path_ns()), step(self.path_ns() - saves_ns));
        let what = if self.has_steps() { "a step" } else { "the program" };
        format!(" {change}, {what} would take {after} instead of {before}.")
    }

    fn n_steps(&self) -> i64 {
        self.paths.iter().filter_map(|p| p.step_id).collect::<FxHashSet<u32>>().len() as i64
    }

    /// Returns a total time as text, per step if the paths are those of several steps.
    pub(super) fn per_step(&self, ns: i64) -> String {
        match self.n_steps() {
            0 | 1 => duration(ns),
            n => format!("{} a step", duration(ns / n)),
        }
    }
}

/// Returns a name cut to [`MAX_NAME`] characters, since names of kernels may have hundreds.
pub(super) fn shorten(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Returns the slices of the longest segments, the longest first.
pub(super) fn evidence_slices(store: &Store, segments: &[&Segment]) -> Vec<SliceId> {
    let mut slices: Vec<SliceId> = Vec::new();
    for id in segments.iter().filter_map(|s| s.slice) {
        if slices.len() < MAX_SLICES && !slices.contains(&id) {
            slices.push(id);
        }
    }
    slices.sort_by_key(|id| std::cmp::Reverse(store.slice(*id).map_or(0, |slice| slice.dur())));
    slices
}
