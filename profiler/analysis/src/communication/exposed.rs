//! The part of a collective in which its device computes nothing.

use crate::breakdown::is_compute;
use crate::deps::Deps;
use crate::lines::LineKind;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// A device: process, and name.
type Device<'a> = (u32, &'a str);

/// By row of the calls: the time in which the call's device computes nothing, ns.
pub(super) fn exposed_ns(deps: &Deps<'_>) -> Vec<i64> {
    let mut lines: FxHashMap<Device<'_>, Vec<usize>> = FxHashMap::default();
    for (row, line) in deps.lines.lines.iter().enumerate().filter(|(_, line)| line.kind == LineKind::Device) {
        lines.entry((line.process, device(deps, row))).or_default().push(row);
    }
    let compute: FxHashMap<Device<'_>, Vec<(i64, i64)>> =
        lines.into_par_iter().map(|(device, lines)| (device, compute_of(deps, &lines))).collect();
    let exposed = |call: &crate::collectives::Call| {
        let compute = compute.get(&(call.process, device(deps, call.piece_id.line as usize)));
        let covered = compute.map_or(0, |spans| covered_ns(spans, call.start, call.end));
        call.end - call.start - covered
    };
    deps.exchanges.calls.rows.par_iter().map(exposed).collect()
}

fn device<'a>(deps: &Deps<'a>, line: usize) -> &'a str {
    deps.store.track(deps.lines.lines[line].track).map_or("", |track| track.device.as_str())
}

/// The intervals in which a device computes, sorted, without overlaps.
fn compute_of(deps: &Deps<'_>, lines: &[usize]) -> Vec<(i64, i64)> {
    let pieces = lines.iter().flat_map(|line| &deps.lines.lines[*line].pieces);
    let mut spans: Vec<(i64, i64)> =
        pieces.filter(|piece| is_compute(piece.activity)).map(|piece| (piece.start, piece.end)).collect();
    spans.sort_unstable();
    let mut union: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
    for (start, end) in spans {
        match union.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => union.push((start, end)),
        }
    }
    union
}

/// The part of `start..end` that the intervals cover.
fn covered_ns(spans: &[(i64, i64)], start: i64, end: i64) -> i64 {
    let first = spans.partition_point(|span| span.1 <= start);
    spans[first..].iter().take_while(|span| span.0 < end).map(|span| span.1.min(end) - span.0.max(start)).sum()
}
