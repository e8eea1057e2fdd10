//! What is asked and answered, as protobuf messages.
//!
//! Times are ns from the trace's origin, ordinals count the slices that a lane has ever had. Lists of spans and rows are columns:
//! the i-th of each is the i-th span's.

use prost::{Message, Oneof};

/// Of these messages. Those of another version are refused: numbers of theirs mean something else. The first version had none;
/// this one says waits from work.
pub(super) const VERSION: u32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(oneof = "RequestKind", tags = "1, 2, 3")]
    pub kind: Option<RequestKind>,
    /// [`VERSION`] of who asks.
    #[prost(uint32, tag = "15")]
    pub version: u32,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum RequestKind {
    #[prost(message, tag = "1")]
    State(StateRequest),
    #[prost(message, tag = "2")]
    Tiles(TilesRequest),
    #[prost(message, tag = "3")]
    Rows(RowsRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(oneof = "ResponseKind", tags = "1, 2, 3, 4")]
    pub kind: Option<ResponseKind>,
    /// [`VERSION`] of who answers.
    #[prost(uint32, tag = "15")]
    pub version: u32,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum ResponseKind {
    #[prost(message, tag = "1")]
    State(State),
    #[prost(message, tag = "2")]
    Tiles(Tiles),
    #[prost(message, tag = "3")]
    Rows(Rows),
    /// Why there is no answer.
    #[prost(string, tag = "4")]
    Problem(String),
}

/// What has changed? With what is known.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StateRequest {
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    #[prost(message, repeated, tag = "2")]
    pub tables: Vec<TableState>,
    #[prost(message, repeated, tag = "3")]
    pub lanes: Vec<KnownLane>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KnownLane {
    #[prost(uint32, tag = "1")]
    pub track: u32,
    #[prost(uint32, tag = "2")]
    pub lane: u32,
    /// The ordinal after its last slice.
    #[prost(uint64, tag = "3")]
    pub end: u64,
    /// The number of the block after its last fence.
    #[prost(uint64, tag = "4")]
    pub blocks: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct State {
    /// Of another generation nothing that is known holds.
    #[prost(fixed64, tag = "1")]
    pub generation: u64,
    #[prost(bool, tag = "2")]
    pub live: bool,
    #[prost(uint64, tag = "3")]
    pub disk_bytes: u64,
    /// All tables; those that are known come without their bytes.
    #[prost(message, repeated, tag = "4")]
    pub tables: Vec<TableState>,
    /// Lanes that have more than is known.
    #[prost(message, repeated, tag = "5")]
    pub lanes: Vec<LaneState>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TableState {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(fixed32, tag = "2")]
    pub crc: u32,
    /// A Parquet file.
    #[prost(bytes = "bytes", tag = "3")]
    pub file: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LaneState {
    #[prost(uint32, tag = "1")]
    pub track: u32,
    #[prost(uint32, tag = "2")]
    pub lane: u32,
    /// Ordinal of the first slice that is kept.
    #[prost(uint64, tag = "3")]
    pub first: u64,
    /// All slices as one span; its first is `first`.
    #[prost(message, optional, tag = "4")]
    pub all: Option<Tile>,
    /// The number of the block of the first fence.
    #[prost(uint64, tag = "5")]
    pub first_block: u64,
    /// Starts of blocks: each as the difference from the one before.
    #[prost(sint64, repeated, tag = "6")]
    pub fences: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TilesRequest {
    #[prost(fixed64, tag = "1")]
    pub generation: u64,
    #[prost(message, repeated, tag = "2")]
    pub tiles: Vec<TileId>,
}

/// Where a tile is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub(super) struct TileId {
    #[prost(uint32, tag = "1")]
    pub track: u32,
    #[prost(uint32, tag = "2")]
    pub lane: u32,
    /// A pixel is 2^level ns.
    #[prost(uint32, tag = "3")]
    pub level: u32,
    /// How many tiles are between it and time 0.
    #[prost(sint64, tag = "4")]
    pub index: i64,
}

/// The first so many of the tiles that were asked for.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tiles {
    /// How many sites and nodes there are now.
    #[prost(uint32, tag = "1")]
    pub sites: u32,
    #[prost(uint32, tag = "2")]
    pub nodes: u32,
    #[prost(message, repeated, tag = "3")]
    pub tiles: Vec<Tile>,
}

/// Spans of a lane.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tile {
    /// Ordinal of the first slice.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    /// Where the first gap begins.
    #[prost(sint64, tag = "2")]
    pub start: i64,
    /// Whether a slice before `first` reaches in: the first span.
    #[prost(bool, tag = "3")]
    pub before: bool,
    /// From the end of the span before, or from `start`; negative for `before`.
    #[prost(sint64, repeated, tag = "4")]
    pub gap: Vec<i64>,
    #[prost(uint64, repeated, tag = "5")]
    pub length: Vec<u64>,
    #[prost(uint32, repeated, tag = "6")]
    pub count: Vec<u32>,
    /// Twice the row; 1 more where it waits.
    #[prost(uint32, repeated, tag = "7")]
    pub site: Vec<u32>,
    /// 1 + the row, 0 for none.
    #[prost(uint32, repeated, tag = "8")]
    pub node: Vec<u32>,
    /// Of spans of several slices only: sums of the durations of those that work and of those that wait, that of `top`, and which of
    /// them this is.
    #[prost(uint64, repeated, tag = "9")]
    pub busy: Vec<u64>,
    #[prost(uint64, repeated, tag = "12")]
    pub wait: Vec<u64>,
    #[prost(uint64, repeated, tag = "10")]
    pub longest: Vec<u64>,
    #[prost(uint32, repeated, tag = "11")]
    pub top: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RowsRequest {
    #[prost(fixed64, tag = "1")]
    pub generation: u64,
    #[prost(message, repeated, tag = "2")]
    pub blocks: Vec<BlockId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub(super) struct BlockId {
    #[prost(uint32, tag = "1")]
    pub track: u32,
    #[prost(uint32, tag = "2")]
    pub lane: u32,
    #[prost(uint64, tag = "3")]
    pub block: u64,
}

/// The first so many of the blocks that were asked for.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Rows {
    /// How many sites and nodes there are now.
    #[prost(uint32, tag = "1")]
    pub sites: u32,
    #[prost(uint32, tag = "2")]
    pub nodes: u32,
    #[prost(message, repeated, tag = "3")]
    pub blocks: Vec<Block>,
}

/// Slices of a lane that follow each other.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Block {
    /// Ordinal of the first.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    /// From the end of the slice before; of the first from 0.
    #[prost(sint64, repeated, tag = "2")]
    pub gap: Vec<i64>,
    #[prost(uint64, repeated, tag = "3")]
    pub length: Vec<u64>,
    /// Sites and nodes as in [`Tile`].
    #[prost(uint32, repeated, tag = "4")]
    pub site: Vec<u32>,
    #[prost(uint32, repeated, tag = "5")]
    pub node: Vec<u32>,
    #[prost(uint32, repeated, tag = "6")]
    pub correlation: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub arg: Vec<u64>,
    /// Which rows have arguments.
    #[prost(uint32, repeated, tag = "8")]
    pub args_of: Vec<u32>,
    #[prost(string, repeated, tag = "9")]
    pub args: Vec<String>,
    /// The ordinal up to which it is all that the lane has; where it has fewer rows, the rest cannot be read.
    #[prost(uint64, tag = "10")]
    pub until: u64,
}
