//! The window's selection: selections of other panels become commands, selections in the timeline are passed on.

use super::{command::Command, model::find, state::State};
use crate::{
    Selection, ViewKind,
    selection::{SlicePick, TimeRange},
};
use trace_model::Category;
use trace_store::Store;

const ME: ViewKind = ViewKind::Timeline;
/// A slice that another panel selects is zoomed in to where it is shorter than the view's length divided by this.
const MIN_PART: i64 = 50;
/// Time on either side of such a slice, as a multiple of its length, and the least length that counts, ns.
const MARGIN: i64 = 8;
const MIN_MARGIN_NS: i64 = 10;

/// The revisions of the selection that the panel has followed last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelectionRevisions {
    node: u64,
    slice: u64,
    time: u64,
    step: u64,
    track: u64,
}

impl SelectionRevisions {
    /// Whether another panel has selected a slice since then.
    pub(super) fn is_new(&self, selection: &Selection) -> bool {
        selection.slice.revision() > self.slice
    }

    /// Whether another panel has selected a track since then.
    pub(super) fn is_new_track(&self, selection: &Selection) -> bool {
        selection.track.revision() > self.track
    }

    /// Commands for everything that other panels have selected since then.
    pub(super) fn news(
        &mut self,
        trace_idx: usize,
        store: &Store,
        selection: &Selection,
        state: &State,
    ) -> Vec<Command> {
        let mut out = Vec::new();
        if let Some(pick) = selection.slice.news(ME, &mut self.slice).filter(|p| p.trace_idx == trace_idx) {
            out.push(Command::Reveal(pick.id));
            // A short slice would be invisible: the view zooms in to it and some time around it.
            let slice = store.slice(pick.id).filter(|s| s.dur().saturating_mul(MIN_PART) < state.eased.target().ns());
            let with_margin = slice.map(|s| (s.dur().max(MIN_MARGIN_NS).saturating_mul(MARGIN), s.start, s.end));
            out.extend(
                with_margin.map(|(m, start, end)| Command::Show(start.saturating_sub(m)..end.saturating_add(m))),
            );
        }
        if let Some(node) = selection.node.news(ME, &mut self.node) {
            let view = state.eased.target();
            let first = find::first_of_node(store, node, view.start);
            out.extend(first.filter(|s| s.start >= view.end || s.end <= view.start).map(|s| Command::Reveal(s.id)));
        }
        if let Some(range) = selection.time.news(ME, &mut self.time).filter(|r| r.trace_idx == trace_idx) {
            out.extend([Command::SelectRange(Some(range.ns.clone())), Command::Show(range.ns.clone())]);
        }
        if let Some((_, track)) = selection.track.news(ME, &mut self.track).filter(|t| t.0 == trace_idx) {
            out.push(Command::RevealTrack(*track));
        }
        if let Some(step) = selection.step.news(ME, &mut self.step) {
            let shown_step = store.steps().iter().find(|s| s.summary_step == *step);
            out.extend(shown_step.map(|s| Command::Show(s.start..s.end)));
        }
        out
    }
}

/// Passes a command's selection on to the other panels. `stands_out`: whether the selected node stands out in the
/// timeline too.
pub(super) fn pass_on(
    command: &Command,
    trace_idx: usize,
    store: &Store,
    selection: &mut Selection,
    stands_out: &mut bool,
) {
    let id = match command {
        Command::Select(id) => *id,
        Command::Reveal(id) => Some(*id),
        Command::SelectNode(node) => {
            *stands_out = node.is_some();
            selection.node.set(ME, node.clone());
            if node.is_none() {
                selection.op.set(ME, None);
            }
            return;
        }
        _ => return,
    };
    selection.slice.set(ME, id.map(|id| SlicePick { trace_idx, id }));
    let Some(slice) = id.and_then(|id| store.slice(id)) else { return };
    // While another panel's node stands out, selecting one of its slices must not replace it.
    let others_stand_out = selection.node.get().is_some() && (selection.node.changed_by() != Some(ME) || *stands_out);
    if !others_stand_out && let Some(node) = store.node_of(&slice) {
        selection.node.set(ME, Some(node.name.as_str().into()));
    }
    if store.category(&slice) == Category::Step
        && let Some(step) = store.step_id_of(&slice).and_then(|id| store.step(id, slice.start))
    {
        selection.step.set(ME, Some(step.summary_step));
    }
}

/// Passes the selected range on, unless it is another panel's already.
pub(super) fn pass_on_range(trace_idx: usize, state: &State, selection: &mut Selection) {
    let is_own = selection.time.changed_by().is_none_or(|by| by == ME);
    let is_same = selection.time.get().map(|r| &r.ns) == state.range.as_ref();
    if !is_same && (is_own || state.range.is_some()) {
        selection.time.set(ME, state.range.clone().map(|ns| TimeRange { trace_idx, ns }));
    }
}
