//! Asynchronous slices: their begins and ends are on no thread, and are paired by an id.

use super::ids::{ProcessIdx, SiteIdx};
use super::marks::{Mark, close};
use super::problems::Problems;
use super::sites::Sites;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use trace_model::Event;

/// The key by which begins and ends are paired: a process, and an id in a space of ids (category, scope).
pub(super) type AsyncKey = (ProcessIdx, u64, u64);

/// The marks and instants with one id.
#[derive(Default)]
struct Group {
    marks: Vec<Mark>,
    points: Vec<Event>,
}

/// Groups by id, in the order of their first marks.
#[derive(Default)]
pub(super) struct AsyncSlices {
    groups: IndexMap<AsyncKey, Group, FxBuildHasher>,
}

/// The process of a group, the name of its track, its slices and its instants.
pub(super) type Finished = (ProcessIdx, String, Vec<Event>, Vec<Event>);

impl AsyncSlices {
    pub(super) fn mark(&mut self, key: AsyncKey, mark: Mark) {
        self.groups.entry(key).or_default().marks.push(mark);
    }

    pub(super) fn point(&mut self, key: AsyncKey, event: Event) {
        self.groups.entry(key).or_default().points.push(event);
    }

    /// Pairs all marks. Groups whose outermost slice has the same name get the same name of track, and so share one.
    pub(super) fn finish(&mut self, last: i64, sites: &Sites, problems: &mut Problems) -> Vec<Finished> {
        let groups = std::mem::take(&mut self.groups).into_iter();
        let finished = groups.map(|((process, ..), Group { marks, points })| {
            let mut slices = Vec::new();
            close(marks, last, sites, problems, &mut slices);
            let outer = slices.iter().chain(&points).min_by_key(|e| (e.start, std::cmp::Reverse(e.end)));
            let name = outer.map_or("", |e| sites.name(SiteIdx(e.site)));
            (process, name.to_owned(), slices, points)
        });
        finished.collect()
    }
}
