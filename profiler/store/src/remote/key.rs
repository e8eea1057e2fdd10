//! Keys of lanes and tiles, and checks of times and names that another process sends.

use super::message::{BlockId, TileId};
use trace_model::Site;
use trace_model::layout::BLOCK;

/// Width of a tile, pixels.
pub(super) const TILE_PX: i64 = 512;
/// The highest level of tiles, at which one tile spans all times that a trace can have.
pub(super) const MAX_LEVEL: u32 = 53;
/// The largest distance of a time from the origin, ns: stores clamp times to it.
const MAX_TIME_NS: u64 = 1 << 61;

/// (track, lane).
pub(super) type LaneKey = (u32, u32);

impl TileId {
    /// The tiles of a lane that touch a view.
    pub(super) fn touching(
        (track, lane): LaneKey,
        level: u32,
        view: &std::ops::Range<i64>,
    ) -> impl Iterator<Item = TileId> {
        let width = tile_ns(level);
        let indices = view.start.div_euclid(width)..=view.end.saturating_sub(1).div_euclid(width);
        indices.map(move |index| TileId { track, lane, level, index })
    }

    /// The time that the tile spans; it ends with the range of `i64`.
    pub(super) fn range(&self) -> std::ops::Range<i64> {
        let start = self.index.saturating_mul(tile_ns(self.level));
        start..start.saturating_add(tile_ns(self.level))
    }
}

impl BlockId {
    /// The ordinals of the slices in the block.
    pub(super) fn ordinals(&self) -> std::ops::Range<u64> {
        self.block.saturating_mul(BLOCK)..self.block.saturating_add(1).saturating_mul(BLOCK)
    }
}

/// Width of a tile of a level, ns.
pub(super) fn tile_ns(level: u32) -> i64 {
    TILE_PX << level.min(MAX_LEVEL)
}

/// Whether a time is one that a trace can have. The difference of two such times fits into `i64`.
pub(super) fn is_time(time: i64) -> bool {
    time.unsigned_abs() <= MAX_TIME_NS
}

/// Lengths of the tables of names; messages must not refer to rows beyond them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableSizes {
    pub(super) n_sites: u32,
    pub(super) n_nodes: u32,
}

/// The row of a site or node that the tables lack, as in [`seal`](crate::seal).
const MISSING_ROW: u32 = u32::MAX - 1;

impl TableSizes {
    /// Returns a slice's site, from its code, and node, with [`MISSING_ROW`] for rows that the tables lack.
    pub(super) fn check(self, site: u32, node: u32) -> (Site, u32) {
        let site = Site::from_code(site);
        let site = if site.row() < self.n_sites { site } else { Site::new(MISSING_ROW, site.waits()) };
        (site, if node < self.n_nodes || node == u32::MAX { node } else { MISSING_ROW })
    }
}
