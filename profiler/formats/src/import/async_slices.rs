//! Slices that begin and end on no thread: their begins and ends belong together by an id.

use super::ids::{ProcessIdx, SiteIdx};
use super::marks::{Mark, close};
use super::problems::Problems;
use super::sites::Sites;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use trace_model::Event;

/// What belongs together: a process, and an id in a space of ids (category, scope).
pub(super) type AsyncKey = (ProcessIdx, u64, u64);

/// What happened under one id.
#[derive(Default)]
struct Group {
    marks: Vec<Mark>,
    points: Vec<Event>,
}

/// By id. Groups come out in the order in which they were first met.
#[derive(Default)]
pub(super) struct AsyncSlices {
    groups: IndexMap<AsyncKey, Group, FxBuildHasher>,
}

/// A group's process, the name of its track, its slices, and what else happened.
pub(super) type Finished = (ProcessIdx, String, Vec<Event>, Vec<Event>);

impl AsyncSlices {
    pub(super) fn mark(&mut self, key: AsyncKey, mark: Mark) {
        self.groups.entry(key).or_default().marks.push(mark);
    }

    pub(super) fn point(&mut self, key: AsyncKey, event: Event) {
        self.groups.entry(key).or_default().points.push(event);
    }

    /// Closes everything. Groups whose outermost slice has the same name share a track.
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
