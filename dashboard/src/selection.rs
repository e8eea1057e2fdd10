//! The user's picks, shared by all views: the join between graph, timeline and summaries.
//!
//! Each item is a [`Pick`]: the value, the view that set it and a revision that grows with every change. A view draws
//! its highlight from [`Pick::get`] every frame, and learns of changes by other views once through [`Pick::news`], for
//! instance to scroll there.

use crate::{
    notes::{Notes, Pins},
    panels::ViewKind,
    runs::RunList,
};
use std::{ops::Range, sync::Arc};

/// One selected item of type `T` and who selected it.
#[derive(Clone, Debug)]
pub struct Pick<T> {
    value: Option<T>,
    by: Option<ViewKind>,
    revision: u64,
}

impl<T> Default for Pick<T> {
    fn default() -> Self {
        Self { value: None, by: None, revision: 0 }
    }
}

impl<T: PartialEq> Pick<T> {
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The view that made the latest change; `None` before the first change and for changes by the window.
    pub fn changed_by(&self) -> Option<ViewKind> {
        self.by
    }

    /// Incremented with every change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Selects `value` (or nothing) on behalf of `by`. An equal value changes nothing.
    pub fn set(&mut self, by: ViewKind, value: Option<T>) {
        self.change(Some(by), value);
    }

    /// Selects `value` (or nothing) on behalf of the window, so that every view learns of it.
    pub fn select(&mut self, value: Option<T>) {
        self.change(None, value);
    }

    fn change(&mut self, by: Option<ViewKind>, value: Option<T>) {
        if self.value != value {
            (self.value, self.by) = (value, by);
            self.revision += 1;
        }
    }

    /// The value if another view than `me` changed it since revision `seen`; updates `seen`.
    pub fn news(&self, me: ViewKind, seen: &mut u64) -> Option<&T> {
        let fresh = self.revision > *seen && self.by != Some(me);
        *seen = self.revision;
        if fresh { self.value.as_ref() } else { None }
    }
}

/// A slice of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlicePick {
    /// Index into [`crate::Data::traces`].
    pub trace_idx: usize,
    /// The slice's identity in that trace's store.
    pub id: trace_model::SliceId,
}

/// A range of time in one trace, `[start, end)` in ns from that trace's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Index into [`crate::Data::traces`].
    pub trace_idx: usize,
    /// ns from the trace's origin, half open.
    pub ns: Range<i64>,
}

/// Everything that the views share about the user's picks.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// A graph node or name scope, by its full name (`layer1/weights`). Its slices, those of nodes below the scope, and
    /// summaries whose `node_name` it is belong to it.
    pub node: Pick<Arc<str>>,
    /// An op type (`MatMul`), whose slices stand out in every trace.
    pub op: Pick<Arc<str>>,
    /// A slice of a trace.
    pub slice: Pick<SlicePick>,
    /// A track to scroll to: index of the trace, row of its tracks.
    pub track: Pick<(usize, u32)>,
    /// A range of time, for statistics and for the timeline's viewport.
    pub time: Pick<TimeRange>,
    /// A run, by name.
    pub run: Pick<Arc<str>>,
    /// A summary tag.
    pub tag: Pick<Arc<str>>,
    /// A step on the summaries' x axis, which the timeline shows.
    pub step: Pick<i64>,
    /// The step under the pointer in a chart, for the crosshair of all charts.
    pub pointed_step: Option<i64>,
    /// Bookmarks on traces.
    pub notes: Notes,
    /// Pinned tags of logdirs.
    pub pins: Pins,
    /// The runs with their visibility and colours.
    pub runs: RunList,
    /// A panel to bring to the front at the end of the frame.
    show: Option<ViewKind>,
}

impl Selection {
    /// Requests that the window brings `view` to the front ("show in timeline").
    pub fn show(&mut self, view: ViewKind) {
        self.show = Some(view);
    }

    /// Takes the panel that was requested in this frame.
    pub fn take_show(&mut self) -> Option<ViewKind> {
        self.show.take()
    }

    /// Whether `name` is the selected node or is below it (`layer1` covers `layer1/weights`).
    pub fn covers_node(&self, name: &str) -> bool {
        self.node.get().is_some_and(|selected| is_at_or_below(selected, name))
    }

    /// Clears all picks for every view.
    pub fn clear(&mut self) {
        self.node.select(None);
        self.op.select(None);
        self.slice.select(None);
        self.track.select(None);
        self.time.select(None);
        self.run.select(None);
        self.tag.select(None);
        self.step.select(None);
    }
}

/// Whether `name` equals `scope` or is below it.
pub fn is_at_or_below(scope: &str, name: &str) -> bool {
    name.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_changes_are_no_news() {
        let mut selection = Selection::default();
        let (mut graph_seen, mut timeline_seen) = (0, 0);
        selection.node.set(ViewKind::Graph, Some("a/b".into()));
        assert_eq!(selection.node.news(ViewKind::Graph, &mut graph_seen), None);
        assert_eq!(selection.node.news(ViewKind::Timeline, &mut timeline_seen).map(|n| &**n), Some("a/b"));
        assert_eq!(selection.node.news(ViewKind::Timeline, &mut timeline_seen), None);
        selection.node.set(ViewKind::Timeline, Some("a/b".into()));
        assert_eq!(selection.node.news(ViewKind::Graph, &mut graph_seen), None, "nothing changed");
    }

    #[test]
    fn a_scope_covers_what_is_below_it_only() {
        let mut selection = Selection::default();
        assert!(!selection.covers_node("layer1"));
        selection.node.set(ViewKind::Graph, Some("layer1".into()));
        assert!(selection.covers_node("layer1") && selection.covers_node("layer1/w"));
        assert!(!selection.covers_node("layer10/w") && !selection.covers_node("layer"));
    }
}
