//! Stalls as sentences.

use super::{Cause, overlap};
use crate::stalls::step::Gap;
use crate::store::{SliceRef, Step, Store, TrackId};
use std::ops::Range;

/// `MatMul layer2/MatMul`, or the name alone where there is no node.
fn op(store: &Store, slice: &SliceRef) -> String {
    match store.node_of(slice) {
        Some(node) if node.op != node.name => format!("{} `{}`", node.op, node.name),
        _ => format!("`{}`", store.slice_name(slice)),
    }
}

fn track(store: &Store, id: u32) -> &str {
    store.tracks().get(id as usize).map_or("?", |t| &t.name)
}

/// A duration with a unit that gives one to three digits before the point.
fn duration(ns: i64) -> String {
    match ns {
        ..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

pub(super) fn stall(
    store: &Store,
    step: &Step,
    on: TrackId,
    range: &Range<i64>,
    cause: Cause,
    culprit: Option<&SliceRef>,
    gap: &Gap,
) -> String {
    let me = track(store, on.0);
    let next = gap.next.as_ref().map_or_else(String::new, |n| op(store, n));
    let other = culprit.map_or_else(String::new, |c| format!("{} on {}", op(store, c), track(store, c.id.track)));
    let label = store.sites().get(step.site as usize).map_or("step", |s| &s.name);
    let time = duration(range.end - range.start);
    match cause {
        Cause::InputLate => format!("{me} waited for {other}"),
        Cause::WakeUp => format!("{me} slept for {time} while {next} was ready"),
        Cause::Dispatch if culprit.is_some() => {
            format!("{me} waited for {other}, which was ready {time} before it started")
        }
        Cause::Dispatch => format!("{me} took {time} to start {next}, which was ready"),
        Cause::NothingReady => {
            let n = running(store, on, range);
            format!("nothing ready for {me}: {n} other ops ran, the longest {other}")
        }
        Cause::StepBegin => format!("{label} step {} had not started its first op", step.summary_step),
        Cause::StepEnd => format!("{label} step {} had no op left", step.summary_step),
        Cause::Unexplained => format!("unexplained: {me} ran nothing for {time}"),
    }
}

/// Number of ops on other workers in the range.
fn running(store: &Store, on: TrackId, range: &Range<i64>) -> usize {
    use crate::store::Category;
    let others = store.tracks().iter().filter(|t| t.id != on);
    let slices = others.flat_map(|t| &t.lanes).flat_map(|l| l.slices(range));
    slices.filter(|s| store.category(s) == Category::Op && overlap(s, range) > 0).count()
}

pub(super) fn queue_wait(store: &Store, slice: &SliceRef, wait: i64, culprit: Option<&SliceRef>) -> String {
    let (name, me, wait) = (op(store, slice), track(store, slice.id.track), duration(wait));
    match culprit {
        Some(culprit) => format!("{name} was ready {wait} before it ran: {me} was busy with {}", op(store, culprit)),
        None => format!("{name} was ready {wait} before it ran: {me} ran nothing meanwhile"),
    }
}
