//! Findings: what to change first, in plain words.
//!
//! Each is ranked by what fixing it would save at most, and that is its time on the critical path: a long op that nobody
//! waited for, or a wait that something else hid, saves nothing. Shares are of that path, which is never longer than what is shown,
//! without what the profiler did for itself.
//!
//! | rules | about |
//! |---|---|
//! | `path` | kinds of segments on the path, slow ops |
//! | `devices` | communication that no compute hides, stragglers |
//! | `program` | a program without steps: its hottest functions, what its threads waited for |

mod devices;
mod path;
mod program;
mod words;

use super::breakdown::DeviceBreakdown;
use super::critical::{CriticalPath, PathKind, Segment};
use super::ops::OpRow;
use super::stragglers::Stragglers;
use super::threads::ThreadTimes;
use crate::stalls::duration;
use rustc_hash::FxHashSet;
use std::ops::Range;
use trace_model::SliceId;
use trace_store::Store;

/// A finding's evidence lists at most this many slices.
const MAX_SLICES: usize = 5;
/// Letters of a name.
const MAX_NAME: usize = 120;
/// What saves less of the critical path is left out.
const MIN_SHARE: f64 = 0.01;

/// Something to change, with what it would save.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A few words: `launch overhead`.
    pub title: String,
    /// One or two sentences.
    pub text: String,
    /// What fixing it would save at most, ns over all steps.
    pub saves_ns: i64,
    /// The same as a part of the critical path, 0..=1.
    pub share: f64,
    /// Where to look: the longest of it, ns from the origin.
    pub range: Range<i64>,
    /// The slices to look at, the longest first.
    pub slices: Vec<SliceId>,
}

/// What the rules look at.
pub(crate) struct Facts<'a> {
    pub store: &'a Store,
    pub range: Range<i64>,
    pub paths: &'a [CriticalPath],
    pub ops: &'a [OpRow],
    pub devices: &'a [DeviceBreakdown],
    pub threads: &'a [ThreadTimes],
    pub stragglers: &'a Stragglers,
}

/// All findings, the one that saves most first.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = path::findings(facts);
    devices::add(facts, &mut found);
    program::add(facts, &mut found);
    found.retain(|f| f.share >= MIN_SHARE);
    found.sort_by(|a, b| b.saves_ns.cmp(&a.saves_ns).then_with(|| a.title.cmp(&b.title)));
    found
}

impl Facts<'_> {
    /// The length of the critical path without the profiler's own work, ns.
    fn total(&self) -> i64 {
        let segments = self.paths.iter().flat_map(|p| &p.segments);
        segments.filter(|segment| segment.kind != PathKind::Profiler).map(Segment::dur).sum()
    }

    fn has_steps(&self) -> bool {
        self.paths.iter().any(|p| p.step_id.is_some())
    }

    /// A finding that saves so much of the path, which is all that can be saved.
    fn finding(&self, title: &str, saves_ns: i64, range: Range<i64>, slices: Vec<SliceId>) -> Finding {
        let total = self.total();
        let saves_ns = saves_ns.clamp(0, total);
        let share = saves_ns as f64 / total.max(1) as f64;
        Finding { title: title.to_owned(), text: String::new(), saves_ns, share, range, slices }
    }

    /// The time, by step where there are several.
    fn per_step(&self, ns: i64) -> String {
        let steps: FxHashSet<u32> = self.paths.iter().filter_map(|p| p.step_id).collect();
        match steps.len() {
            0 | 1 => duration(ns),
            n => format!("{} a step", duration(ns / n as i64)),
        }
    }
}

/// As much of a name as a sentence takes: kernels' have hundreds of letters.
fn short(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// The slices of the longest segments, the longest first.
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

#[cfg(test)]
mod tests;
