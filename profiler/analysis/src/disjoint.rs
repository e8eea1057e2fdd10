//! One critical path of a range from the paths of its steps. Steps may overlap: steps of several processes run at the
//! same time, a device still works for a step when the next has started, and one step fills a queue while another
//! trains.
//!
//! Each moment belongs to one step: the step that ended last of those that ran at the moment, since the others did not
//! delay the end. A step that waited for room in a queue was ahead of its consumer, and gets only moments that belong
//! to no other step. So the parts add up to at most the range, and their shares are shares of the range.

use super::critical::{CriticalPath, PathKind};
use crate::stalls::Cause;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// Cuts the paths of steps to the moments that belong to them, in order of time. A path that others interrupt becomes
/// several paths.
pub(super) fn disjoint(mut paths: Vec<CriticalPath>, range: &Range<i64>) -> Vec<CriticalPath> {
    paths.sort_by_key(|path| (has_waited_for_room(path), Reverse(path.range.end), path.range.start));
    let mut occupied = OccupiedTime::default();
    let mut parts: Vec<CriticalPath> = Vec::with_capacity(paths.len());
    for path in &paths {
        let (start, end) = (path.range.start.max(range.start), path.range.end.min(range.end));
        let free = occupied.free(&(start..end));
        parts.extend(free.iter().map(|part| clip(path, part)));
        free.into_iter().for_each(|part| occupied.occupy(part));
    }
    parts.sort_by_key(|path| path.range.start);
    parts
}

fn has_waited_for_room(path: &CriticalPath) -> bool {
    path.segments.iter().any(|segment| segment.kind == PathKind::Stall(Cause::QueueFull))
}

fn clip(path: &CriticalPath, part: &Range<i64>) -> CriticalPath {
    let first = path.segments.partition_point(|segment| segment.end <= part.start);
    let inside = path.segments[first..].iter().take_while(|segment| segment.start < part.end);
    let mut segments: Vec<_> = inside.cloned().collect();
    for segment in &mut segments {
        (segment.start, segment.end) = (segment.start.max(part.start), segment.end.min(part.end));
    }
    CriticalPath { step_id: path.step_id, range: part.clone(), segments }
}

/// The parts of time that belong to a step: ends by starts. No part is adjacent to another.
#[derive(Default)]
struct OccupiedTime(BTreeMap<i64, i64>);

impl OccupiedTime {
    /// The parts of a range that belong to no step yet.
    fn free(&self, range: &Range<i64>) -> Vec<Range<i64>> {
        let mut free = Vec::new();
        let mut from = range.start;
        let before = self.0.range(..=range.start).next_back();
        let within = self.0.range(range.start.saturating_add(1)..range.end.max(range.start.saturating_add(1)));
        for (start, end) in before.into_iter().chain(within) {
            if from < *start {
                free.push(from..*start);
            }
            from = from.max(*end);
        }
        if from < range.end {
            free.push(from..range.end);
        }
        free
    }

    /// Occupies a free part, and joins it with adjacent parts, so that many adjacent steps are one entry.
    fn occupy(&mut self, mut part: Range<i64>) {
        if let Some((&start, &end)) = self.0.range(..part.start).next_back()
            && end == part.start
        {
            part.start = start;
        }
        if let Some(end) = self.0.remove(&part.end) {
            part.end = end;
        }
        self.0.insert(part.start, part.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critical::Segment;
    use proptest::prelude::*;
    use trace_model::TrackId;

    fn path(step: u32, range: Range<i64>, kind: PathKind) -> CriticalPath {
        // Segments of three.
        let segments = range.clone().step_by(3).map(|start| Segment {
            start,
            end: (start + 3).min(range.end),
            track: TrackId(step),
            kind,
            slice: None,
        });
        CriticalPath { step_id: Some(step), segments: segments.collect(), range }
    }

    fn split_paths(paths: Vec<CriticalPath>, range: Range<i64>) -> Vec<(u32, Range<i64>)> {
        disjoint(paths, &range).into_iter().map(|path| (path.step_id.unwrap(), path.range)).collect()
    }

    #[test]
    fn each_moment_is_the_steps_that_ended_last() {
        let kernel = |step, range| path(step, range, PathKind::Kernel);
        let steps = || vec![kernel(1, 0..14), kernel(2, 10..24), kernel(3, 20..30)];
        assert_eq!(split_paths(steps(), 0..30), [(1, 0..10), (2, 10..20), (3, 20..30)]);
        assert_eq!(split_paths(steps(), 5..22), [(1, 5..10), (2, 10..20), (3, 20..22)]);
        let inner = vec![kernel(1, 0..100), kernel(2, 40..120), kernel(3, 10..20)];
        assert_eq!(split_paths(inner, 0..200), [(1, 0..40), (2, 40..120)]);
    }

    #[test]
    fn a_step_that_waited_for_room_has_what_is_left() {
        let waited = path(9, 0..100, PathKind::Stall(Cause::QueueFull));
        let steps = vec![waited, path(1, 10..30, PathKind::Op), path(2, 30..90, PathKind::Op)];
        assert_eq!(split_paths(steps, 0..100), [(9, 0..10), (1, 10..30), (2, 30..90), (9, 90..100)]);
    }

    proptest! {
        /// Parts never overlap, lie in the range, cover what any path covers there, and their segments add up to them.
        #[test]
        fn parts_are_disjoint_and_whole(
            ranges in prop::collection::vec((0i64..80, 0i64..40, any::<bool>()), 0..12),
            (from, length) in (0i64..60, 0i64..90),
        ) {
            let kind = |full: bool| PathKind::Stall(if full { Cause::QueueFull } else { Cause::Launch });
            let step_path = |(i, (start, dur, full)): (usize, &(i64, i64, bool))| path(i as u32, *start..*start + *dur, kind(*full));
            let paths: Vec<_> = ranges.iter().enumerate().map(step_path).collect();
            let range = from..from + length;
            let covered = |time: &i64| paths.iter().any(|p| p.range.contains(time));
            let want = range.clone().filter(covered).count() as i64;
            let parts = disjoint(paths.clone(), &range);
            prop_assert!(parts.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
            prop_assert!(parts.iter().all(|p| p.range.start >= range.start && p.range.end <= range.end));
            prop_assert_eq!(parts.iter().map(|p| p.range.end - p.range.start).sum::<i64>(), want);
            for part in &parts {
                let sum: i64 = part.segments.iter().map(Segment::dur).sum();
                prop_assert_eq!(sum, part.range.end - part.range.start);
            }
        }
    }
}
