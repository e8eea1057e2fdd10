//! Splits a track's slices into begins and ends in order of time; slices that overlap go to different sets, each of
//! which nests.

use super::arrows::{Arrow, Arrows};
use crate::export::rows::slices;
use std::iter::Peekable;
use trace_model::{InstantEvent, OpenSlice, SliceId, SliceRef};
use trace_store::Track;

/// An event of a track. The numbers are those of the sets.
pub(super) enum Next {
    /// A slice begins.
    Begin(SliceRef, usize),
    End {
        time: i64,
        slice: SliceId,
        set: usize,
    },
    Instant(InstantEvent),
    /// A slice begins that has not ended.
    Open(OpenSlice, usize),
    /// An end of a flow at a time at which no slice runs.
    Arrow(i64, Arrow),
}

impl Next {
    /// The set of the event's slice; the first one without a slice.
    pub(super) fn set(&self) -> usize {
        match self {
            Next::Begin(_, set) | Next::End { set, .. } | Next::Open(_, set) => *set,
            Next::Instant(_) | Next::Arrow(..) => 0,
        }
    }
}

type Points = std::vec::IntoIter<(i64, Point)>;

/// An event at one time, or a slice without an end.
enum Point {
    Instant(InstantEvent),
    Open(OpenSlice),
    Arrow(Arrow),
}

/// The events of a track, in order of time.
pub(super) struct TrackEvents<'a> {
    slices: Peekable<Box<dyn Iterator<Item = SliceRef> + 'a>>,
    points: Peekable<Points>,
    /// Of each set the open slices, end and id, the innermost last; a slice that has not ended has no id.
    sets: Vec<Vec<(i64, Option<SliceId>)>>,
    arrows: &'a Arrows,
}

impl<'a> TrackEvents<'a> {
    pub(super) fn new(track: &'a Track, arrows: &'a Arrows) -> TrackEvents<'a> {
        let mut points: Vec<(i64, Point)> = Vec::new();
        points.extend(track.instants.iter().map(|i| (i.time, Point::Instant(*i))));
        points.extend(track.open.iter().map(|o| (o.start, Point::Open(*o))));
        points.extend(arrows.without_slice(track.id).iter().map(|(time, arrow)| (*time, Point::Arrow(*arrow))));
        points.sort_by_key(|(time, _)| *time);
        let slices: Box<dyn Iterator<Item = SliceRef>> = Box::new(slices(track));
        TrackEvents { slices: slices.peekable(), points: points.into_iter().peekable(), sets: Vec::new(), arrows }
    }

    /// Time of the next event, and whether a flow ends there. At one time, events at which flows end come last, after
    /// the events of other tracks at which they begin.
    pub(super) fn next_key(&mut self) -> Option<(i64, bool)> {
        let end = self.first_end().map(|(time, _)| (time, false));
        let arrows = self.arrows;
        let arrives = |s: &SliceRef| (s.start, arrows.at_begin(s.id).iter().any(|a| !a.leaves));
        let begin = self.slices.peek().map(arrives);
        let point = self.points.peek().map(|(time, point)| (*time, matches!(point, Point::Arrow(a) if !a.leaves)));
        [end, begin, point].into_iter().flatten().min_by_key(|(time, _)| *time)
    }

    /// The set in which a slice ends first, and that time.
    fn first_end(&self) -> Option<(i64, usize)> {
        let ends = self.sets.iter().map(|open| open.last().filter(|(_, slice)| slice.is_some()));
        ends.enumerate().filter_map(|(set, end)| Some((end?.0, set))).min()
    }

    /// The next event. At one time ends come before begins, so that a slice that follows another is not nested in it.
    pub(super) fn next(&mut self) -> Option<Next> {
        let begin = self.slices.peek().map(|s| s.start);
        let point = self.points.peek().map(|(time, _)| *time);
        let others = [begin, point].into_iter().flatten().min();
        if let Some((time, set)) = self.first_end()
            && others.is_none_or(|other| time <= other)
            && let Some((_, Some(slice))) = self.sets[set].pop()
        {
            return Some(Next::End { time, slice, set });
        }
        if begin.is_some() && begin == others {
            let slice = self.slices.next()?;
            let set = self.set_for(slice.end);
            self.sets[set].push((slice.end, Some(slice.id)));
            return Some(Next::Begin(slice, set));
        }
        let (time, point) = self.points.next()?;
        Some(match point {
            Point::Instant(instant) => Next::Instant(instant),
            Point::Open(open) => {
                let set = self.set_for(i64::MAX);
                self.sets[set].push((i64::MAX, None));
                Next::Open(open, set)
            }
            Point::Arrow(arrow) => Next::Arrow(time, arrow),
        })
    }

    /// The first set in which a slice that begins now and ends at `end` nests.
    fn set_for(&mut self, end: i64) -> usize {
        let fits = |open: &Vec<(i64, Option<SliceId>)>| open.last().is_none_or(|(outer, _)| end <= *outer);
        let set = self.sets.iter().position(fits).unwrap_or(self.sets.len());
        if set == self.sets.len() {
            self.sets.push(Vec::new());
        }
        set
    }
}
