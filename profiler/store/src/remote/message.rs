//! The protobuf messages of requests and responses.
//!
//! Times are ns from the trace's origin, ordinals count the slices that a lane has ever had. Spans and slices are sent
//! as columns: the i-th element of each list belongs to the i-th span.

use prost::{Message, Oneof};

/// Version of these messages. Messages of another version are refused, since their fields may have other meanings.
/// Version 1 had no version field; version 2 distinguishes waits from work.
pub(super) const VERSION: u32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(oneof = "RequestKind", tags = "1, 2, 3")]
    pub kind: Option<RequestKind>,
    /// [`VERSION`] of the viewer.
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
    /// [`VERSION`] of the server.
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
    /// Why the request failed.
    #[prost(string, tag = "4")]
    Problem(String),
}

/// Requests the changes since the state that the viewer has.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StateRequest {
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    #[prost(message, repeated, tag = "2")]
    pub tables: Vec<TableState>,
    #[prost(message, repeated, tag = "3")]
    pub lanes: Vec<ViewerLane>,
}

/// The part of a lane that the viewer has.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ViewerLane {
    #[prost(uint32, tag = "1")]
    pub track: u32,
    #[prost(uint32, tag = "2")]
    pub lane: u32,
    /// The ordinal after the last slice.
    #[prost(uint64, tag = "3")]
    pub end: u64,
    /// The number of the block after the last fence.
    #[prost(uint64, tag = "4")]
    pub blocks: u64,
}

/// The state of the server's store, without what the viewer has.
#[derive(Clone, PartialEq, Message)]
pub(super) struct State {
    /// Generation of the store. If the request has another one, the trace was replaced and the viewer starts anew.
    #[prost(fixed64, tag = "1")]
    pub generation: u64,
    #[prost(bool, tag = "2")]
    pub live: bool,
    #[prost(uint64, tag = "3")]
    pub disk_bytes: u64,
    /// All tables; tables that the viewer has are sent without their file.
    #[prost(message, repeated, tag = "4")]
    pub tables: Vec<TableState>,
    /// Lanes with more slices than the viewer has.
    #[prost(message, repeated, tag = "5")]
    pub lanes: Vec<LaneState>,
}

/// A table other than the slices.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TableState {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(fixed32, tag = "2")]
    pub crc: u32,
    /// A Parquet file; empty if the receiver has it.
    #[prost(bytes = "bytes", tag = "3")]
    pub file: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LaneState {
    #[prost(uint32, tag = "1")]
    pub track: u32,
    #[prost(uint32, tag = "2")]
    pub lane: u32,
    /// Ordinal of the first slice that is not evicted.
    #[prost(uint64, tag = "3")]
    pub first: u64,
    /// All slices as one span.
    #[prost(message, optional, tag = "4")]
    pub all: Option<Tile>,
    /// The number of the block of the first fence.
    #[prost(uint64, tag = "5")]
    pub first_block: u64,
    /// Start of each block, as the difference from the previous block's start, ns.
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

/// Lane, level and position of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub(super) struct TileId {
    #[prost(uint32, tag = "1")]
    pub track: u32,
    #[prost(uint32, tag = "2")]
    pub lane: u32,
    /// A pixel is 2^level ns.
    #[prost(uint32, tag = "3")]
    pub level: u32,
    /// The number of the tile of its level, counted from time 0.
    #[prost(sint64, tag = "4")]
    pub index: i64,
}

/// The first of the requested tiles, as many as fit into a response.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tiles {
    /// Numbers of sites and nodes in the server's store.
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
    /// The time at which the first gap starts.
    #[prost(sint64, tag = "2")]
    pub start: i64,
    /// Whether the first span is the slice before `first`, which reaches into the tile.
    #[prost(bool, tag = "3")]
    pub before: bool,
    /// Time from the end of the previous span, or from `start`, ns; negative for a first span that reaches in.
    #[prost(sint64, repeated, tag = "4")]
    pub gap: Vec<i64>,
    #[prost(uint64, repeated, tag = "5")]
    pub length: Vec<u64>,
    #[prost(uint32, repeated, tag = "6")]
    pub count: Vec<u32>,
    /// Twice the row of the site; plus 1 if the slice waits.
    #[prost(uint32, repeated, tag = "7")]
    pub site: Vec<u32>,
    /// 1 + the row of the node, 0 for none.
    #[prost(uint32, repeated, tag = "8")]
    pub node: Vec<u32>,
    /// Only for spans of several slices: the total duration of slices that work (`busy`) and of slices that wait
    /// (`wait`), ns, the duration of `top` (`longest`), and the position of `top` in the span.
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

/// The first of the requested blocks, as many as fit into a response.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Rows {
    /// Numbers of sites and nodes in the server's store.
    #[prost(uint32, tag = "1")]
    pub sites: u32,
    #[prost(uint32, tag = "2")]
    pub nodes: u32,
    #[prost(message, repeated, tag = "3")]
    pub blocks: Vec<Block>,
}

/// Consecutive slices of a lane.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Block {
    /// Ordinal of the first slice.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    /// Time from the end of the previous slice, ns; for the first slice from 0.
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
    /// Positions of the slices that have arguments.
    #[prost(uint32, repeated, tag = "8")]
    pub args_of: Vec<u32>,
    #[prost(string, repeated, tag = "9")]
    pub args: Vec<String>,
    /// The ordinal up to which the block has all readable slices; slices that are missing before it are damaged.
    #[prost(uint64, tag = "10")]
    pub until: u64,
}
