//! A trace that another process has: only what is shown comes from there.
//!
//! The other process has the trace in a [`Store`](crate::Store), whatever it is (being recorded, gathered, sealed, another tool's),
//! and a [`Server`] answers for it. Here a [`Viewer`] makes a store of its own, of which the lanes are *far*:
//!
//! 1. *State*: what is beside the slices comes whole, as the tables of a [sealed](crate::seal) trace; those that did not change
//!    since are left out. Of each lane come its numbers of slices, and the start of each 4,096th (a *fence*).
//! 2. *Tiles*: pictures are made of tiles. One is 512 pixels of 2^n ns wide and holds the slices of a lane that begin in it, joined
//!    while they fit into a pixel, as [`lod`](crate::lod) does: at most 1,026 pieces, however many slices there are. Where each piece
//!    is a slice, no smaller tile is asked for.
//! 3. *Rows*: details and analyses need whole slices: they come by blocks of 4,096.
//!
//! Nothing here waits for the network but [`Viewer::poll`] and [`Pages::load_wished`](crate::store::Pages::load_wished), which
//! a loader's thread calls. A picture that lacks tiles shows larger ones, or a lane as one span; what it lacked is a wish. An
//! analysis asks [`Store::at_hand`](crate::Store::at_hand) first.
//!
//! Questions and answers are bytes ([`message`]); [`Ask`] brings them there and back: over gRPC, or through a program's standard input and output.
//! What comes is not trusted: every number is checked before it is used.

mod cache;
mod lane;
mod message;
mod rows;
mod server;
mod tile;
mod viewer;

#[cfg(test)]
mod tests;

pub(crate) use lane::{FarLane, FarSlices};
pub use server::Server;
pub use viewer::{Ask, FarError, Viewer};

/// Slices of a block of rows; those of a node of the pyramids' fifth level.
pub(crate) const BLOCK: u64 = 1 << 12;
/// Pixels of a tile.
const TILE_PX: i64 = 512;
/// The highest level of tiles: of one that spans all times that a trace can have.
const MAX_LEVEL: u32 = 53;

/// Rows of a trace's lanes.
type LaneKey = (u32, u32);

/// Where a tile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TileKey {
    track: u32,
    lane: u32,
    /// A pixel is 2^level ns.
    level: u32,
    /// How many tiles are between it and time 0.
    index: i64,
}

impl TileKey {
    /// The tiles of a lane that touch a view.
    fn of_view(key: LaneKey, level: u32, view: &std::ops::Range<i64>) -> impl Iterator<Item = TileKey> {
        let width = tile_ns(level);
        let indices = view.start.div_euclid(width)..=view.end.saturating_sub(1).div_euclid(width);
        indices.map(move |index| TileKey { track: key.0, lane: key.1, level, index })
    }

    /// The time that it spans; cut where times end.
    fn range(&self) -> std::ops::Range<i64> {
        let start = self.index.saturating_mul(tile_ns(self.level));
        start..start.saturating_add(tile_ns(self.level))
    }
}

fn tile_ns(level: u32) -> i64 {
    TILE_PX << level.min(MAX_LEVEL)
}

/// Times beyond this are none: their differences would not fit.
fn is_time(time: i64) -> bool {
    time.unsigned_abs() <= 1 << 61
}
