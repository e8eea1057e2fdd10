//! The panel below the canvas: the selected slice or stall, next to the selected range or the comparison.

use super::{TraceContext, compare::Compare, details::details_ui, range::range_ui, stalls};
use crate::{
    Selection,
    timeline::{
        command::Command,
        model::{Arrow, Fact, facts::facts, flows::arrows_of},
        state::State,
    },
};
use egui::{ScrollArea, Ui};
use trace_model::{SliceId, SliceRef};
use trace_store::Store;
use ui::{
    theme::metrics,
    widgets::{Edge, Extent, columns, side},
};

/// The facts about the selected slice in one version of the store.
pub struct SliceDetails {
    trace_idx: usize,
    slice: SliceId,
    version: u64,
    pub facts: Vec<Fact>,
    pub arrows: Vec<Arrow>,
}

/// The panel below the canvas, with the cached facts about the selected slice.
#[derive(Default)]
pub struct BottomPanel {
    details: Option<SliceDetails>,
}

impl BottomPanel {
    /// The facts about a slice, if it was shown in the previous frame.
    pub fn details(&self, trace_idx: usize, slice: Option<SliceId>) -> Option<&SliceDetails> {
        self.details.as_ref().filter(|d| d.trace_idx == trace_idx && Some(d.slice) == slice)
    }

    /// Shows the panel if there is a selection or a comparison; returns its commands for the upper canvas.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        cx: &TraceContext<'_>,
        state: &State,
        mut compare: Option<&mut Compare>,
        selection: &mut Selection,
    ) -> Vec<Command> {
        let lower = compare.as_deref().filter(|c| c.has_selection());
        let (trace_idx, store, selected_state): (usize, &Store, &State) = match lower {
            Some(c) => (c.trace_idx, &cx.data.traces[c.trace_idx].store, &c.state),
            None => (cx.trace_idx, cx.store, state),
        };
        let is_in_lower = lower.is_some();
        let (slice, stall) = (selected_state.selected_slice(store), selected_state.stall.clone());
        let has_details = slice.is_some() || stall.is_some();
        if !has_details && state.range.is_none() && compare.is_none() {
            return Vec::new();
        }
        if let Some(slice) = &slice {
            self.update_details(trace_idx, store, slice);
        }
        let (mut details_commands, mut out) = (Vec::new(), Vec::new());
        side(ui, Edge::Bottom, "timeline details", Extent::Share(metrics::DETAILS_SHARE), |ui| {
            let n_columns = usize::from(has_details) + usize::from(state.range.is_some() || compare.is_some());
            columns(ui, n_columns, |columns| {
                if let (true, Some(left)) = (has_details, columns.first_mut()) {
                    if let Some(stall) = &stall {
                        details_commands.extend(stalls::details_ui(left, store, stall));
                    }
                    if let Some((slice, details)) = slice.as_ref().zip(self.details.as_ref()) {
                        ScrollArea::both().id_salt("details").auto_shrink([false, false]).show(left, |ui| {
                            details_commands.extend(details_ui(ui, store.slice_name(slice), &details.facts, selection));
                        });
                    }
                }
                let Some(right) = columns.get_mut(usize::from(has_details)) else { return };
                match (&mut compare, &state.range) {
                    (Some(compare), _) => compare.table_ui(right, cx, state),
                    (None, Some(range)) => {
                        let facts = cx.findings.and_then(|f| f.range.as_deref());
                        out.extend(range_ui(right, cx.store, range, state, facts));
                    }
                    (None, None) => {}
                }
            });
        });
        match compare.filter(|_| is_in_lower) {
            Some(compare) => compare.queue(details_commands),
            None => out.extend(details_commands),
        }
        out
    }

    /// Updates the facts about a slice, once for each version of its trace.
    fn update_details(&mut self, trace_idx: usize, store: &Store, slice: &SliceRef) {
        let version = store.version();
        if self.details(trace_idx, Some(slice.id)).is_none_or(|d| d.version != version) {
            let arrows = arrows_of(store, slice);
            let facts = facts(store, slice, &arrows);
            self.details = Some(SliceDetails { trace_idx, slice: slice.id, version, facts, arrows });
        }
    }
}
