//! Arrows from and to a slice.

use super::find;
use trace_model::{Category, Flow, FlowEnd, SliceRef, TrackId, Transfer};
use trace_store::Store;

/// Arrows of a slice that are shown in each direction, at most.
const MAX_ARROWS: usize = 32;

/// A flow with one end in the selected slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    /// The flow's name: `edge`, `launch`.
    pub name: String,
    /// Whether the arrow leaves the slice, rather than enters it.
    pub leaves: bool,
    pub other_end: FlowEnd,
    pub this_end: FlowEnd,
    /// The slice at the other end.
    pub other_slice: Option<SliceRef>,
    /// The greatest possible difference between the ends' clocks, ns; 0 on one host.
    pub error_ns: i64,
}

/// The greatest possible difference between the clocks of two tracks, ns: the sum of their hosts' error bounds.
fn clock_error_ns(store: &Store, a: TrackId, b: TrackId) -> i64 {
    let process = |track: TrackId| store.processes().get(store.track(track)?.process as usize);
    let (Some(a), Some(b)) = (process(a), process(b)) else { return 0 };
    if a.host == b.host {
        return 0;
    }
    let bound = |process: &trace_model::Process| process.clock.map_or(0, |clock| clock.bound_ns);
    i64::try_from(bound(a).saturating_add(bound(b))).unwrap_or(i64::MAX)
}

/// The innermost slice that covers a flow's end. Flows begin and end at the edges of slices, so a slice's end counts as
/// inside.
fn slice_at(store: &Store, end: FlowEnd) -> Option<SliceRef> {
    let track = store.track(end.track)?;
    let covers_end = |s: &SliceRef| s.start <= end.time && end.time <= s.end;
    let window = end.time.saturating_sub(1)..end.time.saturating_add(1);
    track.lanes.iter().rev().find_map(|lane| lane.slices(&window).filter(covers_end).last())
}

/// The arrows with one end in the slice but in none nested in it. Reads every flow: not for every frame.
pub fn arrows_of(store: &Store, slice: &SliceRef) -> Vec<Arrow> {
    let is_in_slice = |end: &FlowEnd| {
        end.track.0 == slice.id.track
            && (slice.start..=slice.end).contains(&end.time)
            && slice_at(store, *end).is_none_or(|s| s.id == slice.id)
    };
    let mut out = transfers_of(store, slice);
    let mut n_shown = [0, 0];
    for Flow { site, from, to, .. } in store.flows() {
        let (Some(from), Some(to)) = (from, to) else { continue };
        if store.sites().get(*site as usize).is_some_and(|s| s.category.is_transfer()) {
            continue;
        }
        for (leaves, this_end, other_end) in [(true, from, to), (false, to, from)] {
            if n_shown[usize::from(leaves)] < MAX_ARROWS && is_in_slice(this_end) {
                n_shown[usize::from(leaves)] += 1;
                let name = store.sites().get(*site as usize).map_or_else(String::new, |s| s.name.clone());
                let error_ns = clock_error_ns(store, this_end.track, other_end.track);
                let other_slice = slice_at(store, *other_end);
                out.push(Arrow { name, leaves, other_end: *other_end, this_end: *this_end, other_slice, error_ns });
            }
        }
    }
    out
}

/// The slice at the other end of an arrow: the first that the slice caused, or the last that caused the slice. An op
/// without arrows was caused by the op that made it ready.
pub fn neighbour(store: &Store, slice: &SliceRef, forward: bool) -> Option<SliceRef> {
    let arrows = arrows_of(store, slice).into_iter().filter(|a| a.leaves == forward);
    let others = arrows.filter_map(|a| a.other_slice).filter(|s| s.id != slice.id);
    if forward {
        others.min_by_key(|s| s.start).or_else(|| find::successor(store, slice))
    } else {
        others.max_by_key(|s| s.start).or_else(|| find::predecessor(store, slice))
    }
}

/// The transfers of values that a `_Send` or `_Recv` slice takes part in. Consumers are unblocked after `_Recv` ended,
/// so that the flow's end lies in no slice; the nodes' names identify the transfer.
fn transfers_of(store: &Store, slice: &SliceRef) -> Vec<Arrow> {
    let step = store.step_id_of(slice);
    if store.category(slice) != Category::Op || store.node_of(slice).is_none() {
        return Vec::new();
    }
    let step_transfers = store.transfers().iter().filter(|t| Some(t.step_id) == step);
    let arrow = |t: &Transfer| {
        let leaves = t.sender == slice.node;
        let from = FlowEnd { track: t.from?, time: t.left? };
        let to = FlowEnd { track: t.to?, time: t.unblocked? };
        let (this_end, other_end) = if leaves { (from, to) } else { (to, from) };
        let name = ui::format::bytes(u64::from(t.bytes));
        let error_ns = clock_error_ns(store, this_end.track, other_end.track);
        Some(Arrow { name, leaves, other_end, this_end, other_slice: slice_at(store, other_end), error_ns })
    };
    let of_node = step_transfers.filter(|t| t.sender == slice.node || t.receiver == slice.node);
    of_node.filter_map(arrow).take(MAX_ARROWS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::{batch_of, slice, store_of};
    use trace_model::{Event, EventKind, NO_NODE, Name, TrackKey};

    #[test]
    fn arrows_belong_to_the_innermost_slice() {
        let mut batch = batch_of(&[("launch", "cudaLaunchKernel"), ("kernel", "gemm"), ("flow", "ac2g")]);
        let flow = |kind, at, correlation| Event { kind, correlation, ..slice(at, at, 2, NO_NODE, 0) };
        let host = &mut batch.track(TrackKey { pid: 1, ring: 0 }).events;
        host.extend([slice(0, 100, 1, NO_NODE, 0), slice(10, 20, 0, NO_NODE, 1), flow(EventKind::FlowOut, 10, 7)]);
        let stream = &mut batch.track(TrackKey { pid: 1, ring: 1 }).events;
        stream.extend([slice(50, 80, 1, NO_NODE, 0), flow(EventKind::FlowIn, 50, 7), flow(EventKind::FlowIn, 60, 8)]);
        let store = store_of(batch);

        let at = |track: usize, lane: usize| store.tracks()[track].lanes[lane].slice(0).unwrap();
        assert_eq!(arrows_of(&store, &at(0, 0)), [], "the launch inside has it");
        let out = arrows_of(&store, &at(0, 1));
        assert_eq!(out.len(), 1);
        assert_eq!((out[0].name.as_str(), out[0].leaves, out[0].other_slice), ("ac2g", true, Some(at(1, 0))));
        let back = arrows_of(&store, &at(1, 0));
        assert_eq!(back.len(), 1, "an arrow without its tail is none");
        assert_eq!((back[0].leaves, back[0].other_slice), (false, Some(at(0, 1))));
    }

    #[test]
    fn a_value_goes_from_its_send_to_its_recv() {
        let sites =
            [("op", "_Send"), ("op", "_Recv"), ("transfer", "send"), ("transfer", "edge"), ("transfer", "arrive")];
        let mut batch = batch_of(&sites);
        for (id, (name, op)) in (0..).zip([("a/_send", "_Send"), ("a/_recv", "_Recv")]) {
            batch.name(Name::Node { pid: 1, id, name: name.into(), op: op.into(), device: "cpu:0".into() });
        }
        let arg = 3 << 32 | 288;
        let stamp = |kind, at, site, node| Event { kind, correlation: 9, arg, ..slice(at, at, site, node, 0) };
        let op = |start, end, node: u32| Event { arg, ..slice(start, end, node, node, 0) };
        let sender = &mut batch.track(TrackKey { pid: 1, ring: 0 }).events;
        sender.extend([op(10, 20, 0), stamp(EventKind::Instant, 11, 2, 0), stamp(EventKind::FlowOut, 15, 3, 0)]);
        let receiver = &mut batch.track(TrackKey { pid: 1, ring: 1 }).events;
        receiver.extend([op(30, 32, 1), stamp(EventKind::Instant, 31, 4, 1), stamp(EventKind::FlowIn, 40, 3, 1)]);
        let store = store_of(batch);

        let [send, recv] = [0, 1].map(|track: usize| store.tracks()[track].lanes[0].slice(0).unwrap());
        let there = arrows_of(&store, &send);
        assert_eq!(there.len(), 1, "the flow of the same transfer is no second arrow");
        assert_eq!((there[0].name.as_str(), there[0].leaves, there[0].other_end.time), ("288 B", true, 40));
        let back = arrows_of(&store, &recv);
        assert_eq!((back[0].leaves, back[0].other_slice), (false, Some(send)));
    }
}
