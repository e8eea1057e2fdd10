//! Keys of lanes and tiles, and limits of what another process may send.

use super::message::{BlockId, TileId};
use trace_model::Site;
use trace_model::layout::BLOCK;

/// Pixels of a tile.
pub(super) const TILE_PX: i64 = 512;
/// The highest level of tiles: of one that spans all times that a trace can have.
pub(super) const MAX_LEVEL: u32 = 53;

/// Rows of a trace's lanes.
pub(super) type LaneKey = (u32, u32);

impl TileId {
    /// The tiles of a lane that touch a view.
    pub(super) fn of_view(key: LaneKey, level: u32, view: &std::ops::Range<i64>) -> impl Iterator<Item = TileId> {
        let width = tile_ns(level);
        let indices = view.start.div_euclid(width)..=view.end.saturating_sub(1).div_euclid(width);
        indices.map(move |index| TileId { track: key.0, lane: key.1, level, index })
    }

    /// The time that it spans; cut where times end.
    pub(super) fn range(&self) -> std::ops::Range<i64> {
        let start = self.index.saturating_mul(tile_ns(self.level));
        start..start.saturating_add(tile_ns(self.level))
    }
}

impl BlockId {
    /// The ordinals of its rows.
    pub(super) fn ordinals(&self) -> std::ops::Range<u64> {
        self.block.saturating_mul(BLOCK)..self.block.saturating_add(1).saturating_mul(BLOCK)
    }
}

pub(super) fn tile_ns(level: u32) -> i64 {
    TILE_PX << level.min(MAX_LEVEL)
}

/// Times beyond this are none: their differences would not fit.
pub(super) fn is_time(time: i64) -> bool {
    time.unsigned_abs() <= 1 << 61
}

/// How many names there are: what comes is checked against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) sites: u32,
    pub(super) nodes: u32,
}

/// A name that is not among them, as [`seal`](crate::seal) has it too.
const UNKNOWN: u32 = u32::MAX - 1;

impl Names {
    /// A slice's site, from its code, and node; those that there are not are unknown.
    pub(super) fn of(self, site: u32, node: u32) -> (Site, u32) {
        let site = Site::of_code(site);
        let site = if site.row() < self.sites { site } else { Site::new(UNKNOWN, site.waits()) };
        (site, if node < self.nodes || node == u32::MAX { node } else { UNKNOWN })
    }
}
