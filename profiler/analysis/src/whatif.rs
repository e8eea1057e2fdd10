//! What changes would save: the steps' time in replays ([`super::replay`]).

use super::activity::Activity;
use super::critical::{CriticalPath, PathKind, Segment};
use super::deps::Deps;
use super::launching::Launching;
use super::lines::{Line, LineKind, PieceId};
use super::replay::{Change, Replay};
use std::ops::Range;
use trace_model::SliceRef;

/// Replays of the work of critical paths.
pub(crate) struct WhatIf<'d, 'a> {
    deps: &'d Deps<'a>,
    replay: Replay,
    launching: Launching,
    /// The ops in which a host waits for a device, by line, in order of time.
    waiting_ops: Vec<Vec<Range<i64>>>,
    /// The work with which the last path ends, and the last work of each device.
    last: Vec<PieceId>,
}

/// A change whose saving is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Candidate<'c> {
    /// Work of these activities takes no time.
    Without(&'c [Activity]),
    /// Copies take no time, nor do calls that block until they are done.
    WithoutCopies,
    /// Hosts do not wait for devices, and the ops that do so take no time.
    WithoutHostWaits,
    /// Hosts launch everything at once, as from a captured graph.
    Captured,
    /// The slices of a site take this part of their time.
    Scaled(u32, f64),
}

struct Applied<'w, 'd, 'a, 'c>(&'w WhatIf<'d, 'a>, Candidate<'c>);

impl Change for Applied<'_, '_, '_, '_> {
    fn factor(&self, piece_id: PieceId) -> f64 {
        let is_without = match self.1 {
            Candidate::Without(activities) => activities.contains(&self.0.deps.lines.piece(piece_id).activity),
            Candidate::WithoutCopies => self.0.is_of_copy(piece_id),
            Candidate::WithoutHostWaits => self.0.is_of_waiting_op(piece_id),
            Candidate::Captured => self.0.launching.has(self.0.deps, piece_id),
            Candidate::Scaled(site, factor) if self.0.deps.lines.slice(piece_id).site == site => return factor,
            Candidate::Scaled(..) => false,
        };
        f64::from(u8::from(!is_without))
    }

    fn delay_factor(&self, piece_id: PieceId) -> f64 {
        let has = |piece_id| self.0.launching.has(self.0.deps, piece_id);
        let before = piece_id.piece.checked_sub(1).map(|piece| PieceId { piece, ..piece_id });
        let is_between = self.1 == Candidate::Captured && has(piece_id) && before.is_some_and(has);
        f64::from(u8::from(!is_between))
    }

    fn skips_host_waits(&self) -> bool {
        self.1 == Candidate::WithoutHostWaits
    }
}

impl<'d, 'a> WhatIf<'d, 'a> {
    /// Prepares replays of the work of the paths; `None` without work, or with too much of it.
    pub(crate) fn new(deps: &'d Deps<'a>, paths: &[CriticalPath]) -> Option<WhatIf<'d, 'a>> {
        let range = paths.first()?.range.start..paths.last()?.range.end;
        let mut segments = paths.iter().rev().flat_map(|path| path.segments.iter().rev());
        let last = segments.find(|segment| !matches!(segment.kind, PathKind::Stall(_)))?;
        let line = deps.lines.lines.get(last.track.0 as usize)?;
        let mut last = vec![PieceId { line: last.track.0, piece: line.row_before(last.end)? }];
        let devices = (0..).zip(&deps.lines.lines).filter(|(_, line)| line.kind == LineKind::Device);
        last.extend(devices.filter_map(|(line, l)| Some(PieceId { line, piece: l.row_before(range.end)? })));
        let replay = Replay::new(deps, &range)?;
        let waiting_ops = deps.lines.lines.iter().map(waiting_ops).collect();
        Some(WhatIf { deps, replay, launching: Launching::new(deps), waiting_ops, last })
    }

    /// The time by which the last step would end earlier, ns.
    pub(crate) fn saves_ns(&self, candidate: Candidate<'_>) -> i64 {
        let recorded = self.last.iter().map(|last| self.deps.lines.piece(*last).end).max();
        (recorded.unwrap_or(0) - self.replay.end_of(&self.last, &Applied(self, candidate))).max(0)
    }

    /// Whether a segment is work of a host that launches.
    pub(crate) fn is_launching(&self, segment: &Segment) -> bool {
        let Some(line) = self.deps.lines.lines.get(segment.track.0 as usize) else { return false };
        let piece = line.row_before(segment.start + 1).map(|piece| PieceId { line: segment.track.0, piece });
        piece.is_some_and(|piece_id| self.launching.has(self.deps, piece_id))
    }

    /// Whether a piece is a copy, or a call that lasts for most of the time of the copy that it begins. A call that
    /// copies from pageable memory does, and still ends before the copy, when all is in the driver's own memory.
    fn is_of_copy(&self, piece_id: PieceId) -> bool {
        let piece = self.deps.lines.piece(piece_id);
        if piece.activity != Activity::Launch {
            return piece.activity == Activity::Copy;
        }
        self.deps.correlated(piece_id).map(|work| self.deps.lines.piece(work)).is_some_and(|work| {
            let both_ns = piece.end.min(work.end) - piece.start.max(work.start);
            work.activity == Activity::Copy && 2 * both_ns > work.end - work.start
        })
    }

    fn is_of_waiting_op(&self, piece_id: PieceId) -> bool {
        let (piece, ops) = (self.deps.lines.piece(piece_id), &self.waiting_ops[piece_id.line as usize]);
        let begun = ops.partition_point(|op| op.start <= piece.start);
        begun.checked_sub(1).is_some_and(|op| piece.end <= ops[op].end)
    }
}

/// The outermost ops of a host's line in which it waits for a device.
fn waiting_ops(line: &Line) -> Vec<Range<i64>> {
    let mut ops: Vec<Range<i64>> = Vec::new();
    if line.kind == LineKind::Device {
        return ops;
    }
    let mut is_op = vec![false; line.slices.len()];
    for piece in line.pieces.iter().filter(|piece| piece.activity == Activity::HostOp) {
        is_op[piece.slice as usize] = true;
    }
    // The outermost op that is open.
    let mut slices = line.slices.iter().zip(is_op).peekable();
    let mut open: Option<&SliceRef> = None;
    for wait in line.pieces.iter().filter(|piece| piece.activity == Activity::Sync) {
        while let Some((slice, is_op)) = slices.next_if(|(slice, _)| slice.start <= wait.start) {
            if is_op && open.is_none_or(|open| open.end <= slice.start) {
                open = Some(slice);
            }
        }
        if let Some(op) = open.filter(|op| op.end >= wait.end && ops.last().is_none_or(|last| last.end <= op.start)) {
            ops.push(op.start..op.end);
        }
    }
    ops
}
