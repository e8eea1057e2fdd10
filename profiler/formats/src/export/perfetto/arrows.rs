//! Finds the slice that each end of a flow belongs to.

use rustc_hash::FxHashMap;
use trace_model::{FlowEnd, SliceId, SliceRef, TrackId};
use trace_store::{Store, Track};

/// An end of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub(super) id: u64,
    /// Whether the flow begins here.
    pub(super) leaves: bool,
    /// Row of the sites.
    pub(super) site: u32,
}

/// Ends of flows by the slice whose begin or end event has them.
#[derive(Default)]
pub(super) struct Arrows {
    begins: FxHashMap<SliceId, Vec<Arrow>>,
    ends: FxHashMap<SliceId, Vec<Arrow>>,
    /// Ends at a time at which no slice runs, with that time.
    without_slice: FxHashMap<TrackId, Vec<(i64, Arrow)>>,
}

impl Arrows {
    pub(super) fn new(store: &Store) -> Arrows {
        let mut arrows = Arrows::default();
        for (id, flow) in (1..).zip(store.flows()) {
            for (end, leaves) in [(flow.from, true), (flow.to, false)] {
                if let Some(FlowEnd { track, time }) = end
                    && let Some(track) = store.track(track)
                {
                    arrows.add(track, time, Arrow { id, leaves, site: flow.site });
                }
            }
        }
        for ends in arrows.without_slice.values_mut() {
            ends.sort_by_key(|(time, _)| *time);
        }
        arrows
    }

    fn add(&mut self, track: &Track, time: i64, arrow: Arrow) {
        if let Some(slice) = innermost(track, time) {
            self.begins.entry(slice.id).or_default().push(arrow);
        } else if let Some(slice) = ending(track, time) {
            self.ends.entry(slice.id).or_default().push(arrow);
        } else {
            self.without_slice.entry(track.id).or_default().push((time, arrow));
        }
    }

    pub(super) fn at_begin(&self, slice: SliceId) -> &[Arrow] {
        self.begins.get(&slice).map_or(&[], Vec::as_slice)
    }

    pub(super) fn at_end(&self, slice: SliceId) -> &[Arrow] {
        self.ends.get(&slice).map_or(&[], Vec::as_slice)
    }

    pub(super) fn without_slice(&self, track: TrackId) -> &[(i64, Arrow)] {
        self.without_slice.get(&track).map_or(&[], Vec::as_slice)
    }
}

/// The slice that began last of those that run at a time; a slice without duration runs at its start.
fn innermost(track: &Track, time: i64) -> Option<SliceRef> {
    let now = time..time.saturating_add(1);
    let running = track.lanes.iter().flat_map(|lane| lane.slices(&now).collect::<Vec<_>>());
    running.filter(|s| s.start <= time && (time < s.end || s.start == time)).max_by_key(|s| (s.start, s.id.lane))
}

/// The outermost slice that ends at a time.
fn ending(track: &Track, time: i64) -> Option<SliceRef> {
    track.lanes.iter().filter_map(|lane| lane.last_before(time)).find(|slice| slice.end == time)
}
