//! The side that has the trace: answers questions about a store.

use super::key::{LaneKey, MAX_LEVEL, TILE_PX, tile_ns};
use super::message::{
    Block, KnownLane, LaneState, Request, RequestKind, Response, ResponseKind, Rows, RowsRequest, State, StateRequest,
    TableState, Tiles, TilesRequest, VERSION,
};
use super::{block, tile};
use crate::seal;
use crate::store::{Lane, Store};
use parking_lot::{Mutex, RwLock};
use prost::Message;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trace_model::layout::BLOCK;

/// Bytes of an answer, about: what is asked for beyond is left out, and asked for again.
const MAX_ANSWER: usize = 8 << 20;
/// The tables are coded anew after this many times what it took: a trace that changes all the time costs a twentieth of a core.
const REST: i64 = 20;

/// Answers for a store, which somebody else fills.
#[derive(Debug)]
pub struct Server {
    store: Arc<RwLock<Store>>,
    /// Distinguishes this store from that of an earlier server.
    nonce: u64,
    tables: Mutex<Tables>,
}

/// The tables other than the slices, as they were coded last.
#[derive(Debug, Default)]
struct Tables {
    /// Version and generation of the store, and its numbers of names.
    of: Option<(u64, u64, Names)>,
    files: Vec<TableState>,
    due_ns: i64,
}

impl Server {
    /// Answers for `store`.
    #[must_use]
    pub fn new(store: Arc<RwLock<Store>>) -> Server {
        // Two servers of one machine do not start in the same nanosecond with the same id.
        let nonce = (events::clock::wall_now_ns().unsigned_abs() << 8) ^ u64::from(std::process::id());
        Server { store, nonce, tables: Mutex::default() }
    }

    /// The response to what a [`Viewer`](super::Viewer) requests. A request that makes no sense gets one that says so. May wait for the disk.
    #[must_use]
    pub fn respond(&self, request: &[u8]) -> Vec<u8> {
        let request = Request::decode(request).ok().filter(|request| request.version == VERSION);
        let answered = match request.and_then(|request| request.kind) {
            Some(RequestKind::State(request)) => self.state(&request).map(ResponseKind::State),
            Some(RequestKind::Tiles(request)) => self.tiles(&request).map(ResponseKind::Tiles),
            Some(RequestKind::Rows(request)) => self.rows(&request).map(ResponseKind::Rows),
            None => Err("the request is not understood: the two programs are of different versions".to_owned()),
        };
        Response { kind: Some(answered.unwrap_or_else(ResponseKind::Problem)), version: VERSION }.encode_to_vec()
    }

    fn generation(&self, store: &Store) -> u64 {
        self.nonce.wrapping_add(store.generation())
    }

    fn state(&self, request: &StateRequest) -> Result<State, String> {
        let store = self.store.read();
        let generation = self.generation(&store);
        let is_known = request.generation == generation;
        let known_lanes: FxHashMap<LaneKey, &KnownLane> =
            request.lanes.iter().filter(|_| is_known).map(|lane| ((lane.track, lane.lane), lane)).collect();
        let mut tables = self.tables(&store)?;
        for table in &mut tables {
            let is_same = |known: &TableState| known.name == table.name && known.crc == table.crc;
            if is_known && request.tables.iter().any(is_same) {
                table.file.clear();
            }
        }
        let lanes = store.tracks().iter().flat_map(|track| (0..).zip(&track.lanes).map(|l| (track.id.0, l)));
        let lanes = lanes
            .filter_map(|(track, (row, lane))| lane_state(&store, lane, track, row, known_lanes.get(&(track, row))));
        let (live, disk_bytes) = (store.is_live(), store.stats().disk_bytes);
        Ok(State { generation, live, disk_bytes, tables, lanes: lanes.collect() })
    }

    /// The tables, coded anew if that is due. Those of another generation are never given.
    fn tables(&self, store: &Store) -> Result<Vec<TableState>, String> {
        let mut tables = self.tables.lock();
        let of = (store.version(), store.generation(), names(store));
        let now = events::clock::mono_now();
        // Slices refer to names: those must be there.
        let lacks_names = tables.of.is_none_or(|(_, generation, names)| (generation, names) != (of.1, of.2));
        let is_old = tables.of != Some(of) && (now >= tables.due_ns || lacks_names);
        if is_old {
            let files = seal::side_files(store).map_err(|error| format!("coding a table failed: {error}"))?;
            tables.files = files
                .into_iter()
                .map(|(name, file)| TableState { name: name.to_owned(), crc: crc32c::crc32c(&file), file })
                .collect();
            tables.due_ns = now + REST * (events::clock::mono_now() - now);
            tables.of = Some(of);
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
        let (mut answer, mut bytes) = (Tiles { sites, nodes, tiles: Vec::new() }, 0);
        for place in &request.tiles {
            if bytes >= MAX_ANSWER {
                break;
            }
            let lane = self.lane(&store, request.generation, place.track, place.lane)?;
            let range = place.range();
            if place.level > MAX_LEVEL || range.start >= range.end {
                return Err("there is no such tile".to_owned());
            }
            let tile = tile::message(&store, lane, &range, tile_ns(place.level) / TILE_PX);
            bytes += tile.encoded_len();
            answer.tiles.push(tile);
        }
        Ok(answer)
    }

    fn rows(&self, request: &RowsRequest) -> Result<Rows, String> {
        let store = self.store.read();
        let (mut blocks, mut bytes): (Vec<Block>, _) = (Vec::new(), 0);
        for place in &request.blocks {
            if bytes >= MAX_ANSWER {
                break;
            }
            let lane = self.lane(&store, request.generation, place.track, place.lane)?;
            let first = place.block.checked_mul(BLOCK).ok_or("there is no such block")?;
            let block = block::message(&store, lane, &(first..first.saturating_add(BLOCK)));
            bytes += block.encoded_len();
            blocks.push(block);
        }
        let (sites, nodes) = (store.sites().len() as u32, store.nodes().len() as u32);
        Ok(Rows { sites, nodes, blocks })
    }
}

/// How many sites, nodes, tracks and processes.
type Names = [usize; 4];

fn names(store: &Store) -> Names {
    [store.sites().len(), store.nodes().len(), store.tracks().len(), store.processes().len()]
}

/// What a lane has beyond what is known.
fn lane_state(store: &Store, lane: &Lane, track: u32, row: u32, known: Option<&&KnownLane>) -> Option<LaneState> {
    let range = lane.range()?;
    let end = lane.evicted() + lane.len() as u64;
    if known.is_some_and(|known| known.end == end) {
        return None;
    }
    // The span of a lane ends with its last slice, which may have no duration.
    let all = tile::message(store, lane, &(range.start..range.end.saturating_add(1)), i64::MAX);
    let first_block = known.map_or(0, |known| known.blocks).max(lane.evicted() / BLOCK);
    let mut before = 0;
    let fences = lane.block_starts(first_block).map(|start| {
        let gap = start - before;
        before = start;
        gap
    });
    Some(LaneState { track, lane: row, first: lane.evicted(), all: Some(all), first_block, fences: fences.collect() })
}
