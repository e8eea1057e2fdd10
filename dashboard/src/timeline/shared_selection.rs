//! Turns selections of other panels into commands, and publishes the timeline's selection to the other panels.

use super::{command::Command, model::find, state::State};
use crate::{
    Selection, ViewKind,
    selection::{SlicePick, TimeRange},
};
use trace_model::Category;
use trace_store::Store;

const ME: ViewKind = ViewKind::Timeline;
/// The view zooms in to a slice that another panel selects if the slice is shorter than the view divided by this.
const ZOOM_RATIO: i64 = 50;
/// Time on either side of such a slice, as a multiple of the slice's length.
const MARGIN: i64 = 8;
/// The least length that counts for this margin, ns.
const MIN_LENGTH_NS: i64 = 10;

/// The revisions of the selection's items that the panel has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelectionRevisions {
    node: u64,
    slice: u64,
    time: u64,
    step: u64,
    track: u64,
}

impl SelectionRevisions {
    /// Whether another panel has selected a slice since these revisions.
    pub(super) fn has_new_slice(&self, selection: &Selection) -> bool {
        selection.slice.revision() > self.slice
    }

    /// Whether another panel has selected a track since these revisions.
    pub(super) fn has_new_track(&self, selection: &Selection) -> bool {
        selection.track.revision() > self.track
    }

    /// Returns commands for everything that other panels have selected since these revisions, and updates them.
    pub(super) fn new_commands(
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
            let slice = store.slice(pick.id).filter(|s| s.dur().saturating_mul(ZOOM_RATIO) < state.eased.target().ns());
            let margin_and_ends = slice.map(|s| (s.dur().max(MIN_LENGTH_NS).saturating_mul(MARGIN), s.start, s.end));
            out.extend(
                margin_and_ends.map(|(m, start, end)| Command::Show(start.saturating_sub(m)..end.saturating_add(m))),
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

/// Publishes a command's selection to the other panels. `is_highlighted`: whether the selected node is highlighted in
/// the timeline too.
pub(super) fn publish(
    command: &Command,
    trace_idx: usize,
    store: &Store,
    selection: &mut Selection,
    is_highlighted: &mut bool,
) {
    let id = match command {
        Command::Select(id) => *id,
        Command::Reveal(id) => Some(*id),
        Command::SelectNode(node) => {
            *is_highlighted = node.is_some();
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
    // While another panel's node is highlighted, selecting one of its slices must not replace the node.
    let is_node_highlighted = selection.node.changed_by() != Some(ME) || *is_highlighted;
    let keeps_node = selection.node.get().is_some() && is_node_highlighted;
    if !keeps_node && let Some(node) = store.node_of(&slice) {
        selection.node.set(ME, Some(node.name.as_str().into()));
    }
    if store.category(&slice) == Category::Step
        && let Some(step) = store.step_id_of(&slice).and_then(|id| store.step(id, slice.start))
    {
        selection.step.set(ME, Some(step.summary_step));
    }
}

/// Publishes the selected range, unless another panel has selected the same one.
pub(super) fn publish_range(trace_idx: usize, state: &State, selection: &mut Selection) {
    let is_own = selection.time.changed_by().is_none_or(|by| by == ME);
    let is_same = selection.time.get().map(|r| &r.ns) == state.range.as_ref();
    if !is_same && (is_own || state.range.is_some()) {
        selection.time.set(ME, state.range.clone().map(|ns| TimeRange { trace_idx, ns }));
    }
}
