//! The server, in the process that has the trace: responds to requests for a store.

use super::key::{LaneKey, MAX_LEVEL, TILE_PX, tile_ns};
use super::message::{
    Block, LaneState, Request, RequestKind, Response, ResponseKind, Rows, RowsRequest, State, StateRequest, TableState,
    Tiles, TilesRequest, VERSION, ViewerLane,
};
use super::{block, tile};
use crate::seal;
use crate::store::{Lane, Store};
use parking_lot::{Mutex, RwLock};
use prost::Message;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trace_model::layout::BLOCK;

/// Bytes of a response after which tiles and blocks are left out; the viewer requests these again.
const MAX_RESPONSE_BYTES: usize = 8 << 20;
/// Tables are encoded again after this many times the duration of encoding them, so that encoding the tables of a trace
/// that changes constantly takes a twentieth of a core.
const PAUSE_FACTOR: i64 = 20;

/// Responds to requests for a store, which another thread fills.
#[derive(Debug)]
pub struct Server {
    store: Arc<RwLock<Store>>,
    /// Distinguishes this store from that of an earlier server.
    nonce: u64,
    tables: Mutex<EncodedTables>,
}

/// The tables other than the slices, as they were last encoded.
#[derive(Debug, Default)]
struct EncodedTables {
    /// Version, generation and numbers of names of the store that was encoded.
    source: Option<(u64, u64, NameCounts)>,
    files: Vec<TableState>,
    /// Earliest time at which the tables are encoded again, ns of the monotonic clock.
    due_ns: i64,
}

impl Server {
    /// Returns a server for `store`.
    #[must_use]
    pub fn new(store: Arc<RwLock<Store>>) -> Server {
        // This is unique: no two servers on a machine start in the same nanosecond with the same process id.
        let nonce = (events::clock::wall_now_ns().unsigned_abs() << 8) ^ u64::from(std::process::id());
        Server { store, nonce, tables: Mutex::default() }
    }

    /// Returns the response to a request of a [`Viewer`](super::Viewer): an error if the request is invalid.
    /// May wait for the disk.
    #[must_use]
    pub fn respond(&self, request: &[u8]) -> Vec<u8> {
        let request = Request::decode(request).ok().filter(|request| request.version == VERSION);
        let response = match request.and_then(|request| request.kind) {
            Some(RequestKind::State(request)) => self.state(&request).map(ResponseKind::State),
            Some(RequestKind::Tiles(request)) => self.tiles(&request).map(ResponseKind::Tiles),
            Some(RequestKind::Rows(request)) => self.rows(&request).map(ResponseKind::Rows),
            None => Err("the request is not understood: the two programs are of different versions".to_owned()),
        };
        Response { kind: Some(response.unwrap_or_else(ResponseKind::Problem)), version: VERSION }.encode_to_vec()
    }

    fn generation(&self, store: &Store) -> u64 {
        self.nonce.wrapping_add(store.generation())
    }

    fn state(&self, request: &StateRequest) -> Result<State, String> {
        let store = self.store.read();
        let generation = self.generation(&store);
        let is_same_trace = request.generation == generation;
        let viewer_lanes: FxHashMap<LaneKey, &ViewerLane> =
            request.lanes.iter().filter(|_| is_same_trace).map(|lane| ((lane.track, lane.lane), lane)).collect();
        let mut tables = self.tables(&store)?;
        for table in &mut tables {
            let is_same = |known: &TableState| known.name == table.name && known.crc == table.crc;
            if is_same_trace && request.tables.iter().any(is_same) {
                table.file.clear();
            }
        }
        let lanes = store.tracks().iter().flat_map(|track| (0..).zip(&track.lanes).map(|lane| (track.id.0, lane)));
        let lanes = lanes
            .filter_map(|(track, (row, lane))| lane_state(&store, lane, track, row, viewer_lanes.get(&(track, row))));
        let (live, disk_bytes) = (store.is_live(), store.stats().disk_bytes);
        Ok(State { generation, live, disk_bytes, tables, lanes: lanes.collect() })
    }

    /// Returns the encoded tables. Encodes them again if names or the generation changed, or if the store changed and
    /// encoding is due.
    fn tables(&self, store: &Store) -> Result<Vec<TableState>, String> {
        let mut tables = self.tables.lock();
        let source = (store.version(), store.generation(), name_counts(store));
        let now = events::clock::mono_now();
        // Slices that were sent refer to names, so tables that lack names are never sent.
        let lacks_names =
            tables.source.is_none_or(|(_, generation, names)| (generation, names) != (source.1, source.2));
        let is_old = tables.source != Some(source) && (now >= tables.due_ns || lacks_names);
        if is_old {
            let files = seal::side_files(store).map_err(|error| format!("coding a table failed: {error}"))?;
            tables.files = files
                .into_iter()
                .map(|(name, file)| TableState { name: name.to_owned(), crc: crc32c::crc32c(&file), file })
                .collect();
            tables.due_ns = now + PAUSE_FACTOR * (events::clock::mono_now() - now);
            tables.source = Some(source);
        }
        Ok(tables.files.clone())
    }

    fn lane<'a>(&self, store: &'a Store, generation: u64, track: u32, lane: u32) -> Result<&'a Lane, String> {
        if generation != self.generation(store) {
            return Err("the trace has been read anew".to_owned());
        }
        let track = store.tracks().get(track as usize);
        track.and_then(|track| track.lanes.get(lane as usize)).ok_or_else(|| "there is no such lane".to_owned())
    }

    fn tiles(&self, request: &TilesRequest) -> Result<Tiles, String> {
        let store = self.store.read();
        let (sites, nodes) = (store.sites().len() as u32, store.nodes().len() as u32);
        let (mut response, mut bytes) = (Tiles { sites, nodes, tiles: Vec::new() }, 0);
        for id in &request.tiles {
            if bytes >= MAX_RESPONSE_BYTES {
                break;
            }
            let lane = self.lane(&store, request.generation, id.track, id.lane)?;
            let range = id.range();
            if id.level > MAX_LEVEL || range.start >= range.end {
                return Err("there is no such tile".to_owned());
            }
            let tile = tile::to_message(&store, lane, &range, tile_ns(id.level) / TILE_PX);
            bytes += tile.encoded_len();
            response.tiles.push(tile);
        }
        Ok(response)
    }

    fn rows(&self, request: &RowsRequest) -> Result<Rows, String> {
        let store = self.store.read();
        let (mut blocks, mut bytes): (Vec<Block>, _) = (Vec::new(), 0);
        for id in &request.blocks {
            if bytes >= MAX_RESPONSE_BYTES {
                break;
            }
            let lane = self.lane(&store, request.generation, id.track, id.lane)?;
            let first = id.block.checked_mul(BLOCK).ok_or("there is no such block")?;
            let block = block::to_message(&store, lane, &(first..first.saturating_add(BLOCK)));
            bytes += block.encoded_len();
            blocks.push(block);
        }
        let (sites, nodes) = (store.sites().len() as u32, store.nodes().len() as u32);
        Ok(Rows { sites, nodes, blocks })
    }
}

/// Numbers of sites, nodes, tracks and processes.
type NameCounts = [usize; 4];

fn name_counts(store: &Store) -> NameCounts {
    [store.sites().len(), store.nodes().len(), store.tracks().len(), store.processes().len()]
}

/// Returns the state of a lane; `None` if the viewer has all its slices.
fn lane_state(
    store: &Store,
    lane: &Lane,
    track: u32,
    row: u32,
    viewer_lane: Option<&&ViewerLane>,
) -> Option<LaneState> {
    let range = lane.range()?;
    let end = lane.evicted() + lane.len() as u64;
    if viewer_lane.is_some_and(|viewer| viewer.end == end) {
        return None;
    }
    // The range includes its end, since a last slice without duration begins there.
    let all = tile::to_message(store, lane, &(range.start..range.end.saturating_add(1)), i64::MAX);
    let first_block = viewer_lane.map_or(0, |viewer| viewer.blocks).max(lane.evicted() / BLOCK);
    let mut previous = 0;
    let fences = lane.block_starts(first_block).map(|start| {
        let gap = start - previous;
        previous = start;
        gap
    });
    Some(LaneState { track, lane: row, first: lane.evicted(), all: Some(all), first_block, fences: fences.collect() })
}
