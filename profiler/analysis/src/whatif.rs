//! What changes would save: the steps' time in replays ([`super::replay`]).

use super::activity::Activity;
use super::critical::{CriticalPath, PathKind};
use super::deps::Deps;
use super::lines::PieceId;
use super::replay::{Change, Replay};

/// Replays of the work of critical paths.
pub(crate) struct WhatIf<'d, 'a> {
    deps: &'d Deps<'a>,
    replay: Replay,
    /// The work with which the last path ends.
    last: PieceId,
}

/// A change whose saving is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Candidate<'c> {
    /// Work of these activities takes no time.
    Without(&'c [Activity]),
    /// Hosts do not wait for devices.
    WithoutHostWaits,
    /// The slices of a site take this part of their time.
    Scaled(u32, f64),
}

struct Applied<'d, 'a, 'c>(&'d Deps<'a>, Candidate<'c>);

impl Change for Applied<'_, '_, '_> {
    fn factor(&self, piece_id: PieceId) -> f64 {
        match self.1 {
            Candidate::Without(activities) => {
                f64::from(u8::from(!activities.contains(&self.0.lines.piece(piece_id).activity)))
            }
            Candidate::Scaled(site, factor) if self.0.lines.slice(piece_id).site == site => factor,
            Candidate::Scaled(..) | Candidate::WithoutHostWaits => 1.0,
        }
    }

    fn skips_host_waits(&self) -> bool {
        self.1 == Candidate::WithoutHostWaits
    }
}

impl<'d, 'a> WhatIf<'d, 'a> {
    /// Prepares replays of the work of the paths; `None` without work, or with too much of it.
    pub(crate) fn new(deps: &'d Deps<'a>, paths: &[CriticalPath]) -> Option<WhatIf<'d, 'a>> {
        let range = paths.first()?.range.start..paths.last()?.range.end;
        let segments = paths.iter().rev().flat_map(|path| path.segments.iter().rev());
        let last = segments.clone().find(|segment| !matches!(segment.kind, PathKind::Stall(_)))?;
        let line = deps.lines.lines.get(last.track.0 as usize)?;
        let last = PieceId { line: last.track.0, piece: line.row_before(last.end)? };
        Some(WhatIf { deps, replay: Replay::new(deps, &range)?, last })
    }

    /// The time by which the last step would end earlier, ns.
    pub(crate) fn saves_ns(&self, candidate: Candidate<'_>) -> i64 {
        let end = self.deps.lines.piece(self.last).end;
        (end - self.replay.end_of(self.last, &Applied(self.deps, candidate))).max(0)
    }
}
