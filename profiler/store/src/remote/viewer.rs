//! The process that shows the trace: keeps a store with remote lanes up to date.

use super::key::{LaneKey, Names, is_time};
use super::lane::RemoteLane;
use super::message::{KnownLane, LaneState, RequestKind, ResponseKind, State, StateRequest, TableState};
use super::pages::RemotePages;
use super::tile::Tile;
use super::transport::{RemoteError, Transport, call};
use crate::seal;
use crate::store::{Store, Update};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use trace_model::layout::BLOCK;
use trace_model::{Batch, ColdLane};

/// Fetches the state of a remote trace, again and again.
pub struct Viewer {
    transport: Arc<dyn Transport>,
    pages: Option<Arc<RemotePages>>,
    /// Checksum and Parquet file of each table, by name.
    tables: FxHashMap<String, (u32, Bytes)>,
    lanes: BTreeMap<LaneKey, RemoteLane>,
    live: Option<bool>,
}

impl Viewer {
    /// A viewer of the trace behind `transport`; sends no request yet.
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>) -> Viewer {
        Viewer { transport, pages: None, tables: FxHashMap::default(), lanes: BTreeMap::new(), live: None }
    }

    /// Fetches what has changed as an update for [`Store::apply`], which is empty if nothing has.
    ///
    /// # Errors
    /// Fails if no response was received, or an invalid one. The store that was made last can still be used.
    pub fn poll(&mut self) -> Result<Update, RemoteError> {
        let ResponseKind::State(state) = call(&*self.transport, RequestKind::State(self.request()))? else {
            return Err(RemoteError::Invalid("it is not to its request"));
        };
        if self.pages.as_ref().is_none_or(|pages| pages.generation() != state.generation) {
            self.pages = Some(Arc::new(RemotePages::new(Arc::clone(&self.transport), state.generation)));
            (self.tables, self.lanes) = Default::default();
        }
        let is_changed = !state.lanes.is_empty()
            || state.tables.iter().any(|table| !table.file.is_empty())
            || self.live != Some(state.live)
            || self.pages.as_ref().is_some_and(|pages| pages.take_recovered());
        if is_changed { self.apply_state(state).inspect_err(|_| self.reset()) } else { Ok(Update::default()) }
    }

    /// Makes the next request one for the complete state.
    fn reset(&mut self) {
        self.pages = None;
    }

    fn request(&self) -> StateRequest {
        let tables =
            self.tables.iter().map(|(name, (crc, _))| TableState { name: name.clone(), crc: *crc, file: Bytes::new() });
        let lanes = self.lanes.iter().map(|((track, lane), known)| KnownLane {
            track: *track,
            lane: *lane,
            end: known.ordinals.end,
            blocks: known.first_block + known.fences.len() as u64,
        });
        let generation = self.pages.as_ref().map_or(0, |pages| pages.generation());
        StateRequest { generation, tables: tables.collect(), lanes: lanes.collect() }
    }

    /// Checks a state, and makes a store of it and the lanes and tables that did not change.
    fn apply_state(&mut self, state: State) -> Result<Update, RemoteError> {
        let pages = self.pages.clone().ok_or(RemoteError::Invalid("there is no generation"))?;
        for TableState { name, crc, file } in state.tables {
            if file.is_empty() {
                continue;
            }
            if crc32c::crc32c(&file) != crc {
                return Err(RemoteError::Table(format!("the table {name} is damaged")));
            }
            self.tables.insert(name, (crc, file));
        }
        let files = self.tables.iter().map(|(name, (_, file))| (name.clone(), file.clone())).collect();
        let mut contents = seal::contents_of(&files).map_err(RemoteError::Table)?;
        let names = Names { sites: contents.sites.len() as u32, nodes: contents.nodes.len() as u32 };
        let mut unchanged = FxHashMap::default();
        for lane in state.lanes {
            let range = self.apply_lane(&pages, &lane, names).ok_or(RemoteError::Invalid("a lane makes no sense"))?;
            unchanged.extend(range.map(|range| ((lane.track, lane.lane), range)));
        }
        pages.set_changed(&unchanged);
        pages.set_names(names);
        // The tables of a live trace may be older than its lanes, and so may their range.
        for lane in self.lanes.values() {
            let range = lane.range();
            contents.range = contents.range.start.min(range.start)..contents.range.end.max(range.end);
        }
        // A lane whose track the tables lack is added with a later state.
        for ((track, lane), remote) in &self.lanes {
            contents.set_lane(*track, *lane, || Box::new(remote.clone()));
        }
        contents.pager = Some(pages);
        self.live = Some(state.live);
        let batch = Batch { live: Some(state.live), disk_bytes: state.disk_bytes, ..Batch::default() };
        Ok(Update { replacement: Some(Box::new(Store::of_contents(contents))), batch })
    }

    /// Checks the state of a lane and stores it; `None` if it makes no sense. Returns the range of time in which a lane
    /// that was known did not change.
    fn apply_lane(&mut self, pages: &Arc<RemotePages>, state: &LaneState, names: Names) -> Option<Option<Range<i64>>> {
        let key = (state.track, state.lane);
        let all = Tile::of_message(state.all.as_ref()?, u64::MAX, names)?;
        let (all, n) = all.only_span()?;
        let ordinals = state.first..state.first.checked_add(u64::from(n))?;
        let previous = self.lanes.remove(&key);
        let (mut first_block, mut fences) = (state.first_block, Vec::new());
        let mut unchanged = None;
        if let Some(previous) = previous {
            // Slices may have been evicted at the begin, and appended at the end.
            let begin = if ordinals.start > previous.ordinals.start { all.start } else { i64::MIN };
            unchanged = Some(begin..previous.all.end);
            if state.first_block == previous.first_block + previous.fences.len() as u64 {
                first_block = previous.first_block;
                fences = Arc::unwrap_or_clone(previous.fences);
            }
        }
        let mut fence = 0_i64;
        for gap in &state.fences {
            fence = fence.checked_add(*gap).filter(|fence| is_time(*fence))?;
            if fences.last().is_some_and(|last| fence < *last) {
                return None;
            }
            fences.push(fence);
        }
        let blocks = first_block..first_block.checked_add(fences.len() as u64)?;
        if blocks.start > ordinals.start / BLOCK || blocks.end != ordinals.end.div_ceil(BLOCK) {
            return None;
        }
        let (pages, fences) = (Arc::clone(pages), Arc::new(fences));
        self.lanes.insert(key, RemoteLane { pages, key, ordinals, all, first_block, fences });
        Some(unchanged)
    }
}
