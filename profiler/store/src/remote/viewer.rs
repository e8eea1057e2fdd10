//! The viewer, in the process that shows the trace: keeps a store with remote lanes up to date.

use super::key::{LaneKey, TableSizes, is_time};
use super::lane::RemoteLane;
use super::message::{LaneState, RequestKind, ResponseKind, State, StateRequest, TableState, ViewerLane};
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

/// Follows a remote trace: fetches its state whenever it is polled.
pub struct Viewer {
    transport: Arc<dyn Transport>,
    pages: Option<Arc<RemotePages>>,
    /// Checksum and Parquet file of each table, by name.
    tables: FxHashMap<String, (u32, Bytes)>,
    lanes: BTreeMap<LaneKey, RemoteLane>,
    /// The last reported state of the trace; `None` before the first report.
    is_live: Option<bool>,
}

impl Viewer {
    /// Returns a viewer of the trace behind `transport`, without sending a request.
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>) -> Viewer {
        Viewer { transport, pages: None, tables: FxHashMap::default(), lanes: BTreeMap::new(), is_live: None }
    }

    /// Fetches the changes as an update for [`Store::apply`], which is empty if nothing has changed.
    ///
    /// # Errors
    /// Fails if no response was received, or an invalid one. The last store remains usable.
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
            || self.is_live != Some(state.live)
            || self.pages.as_ref().is_some_and(|pages| pages.take_recovery());
        if is_changed { self.apply_state(state).inspect_err(|_| self.reset()) } else { Ok(Update::default()) }
    }

    /// Forgets the generation, so that the next request is for the complete state.
    fn reset(&mut self) {
        self.pages = None;
    }

    fn request(&self) -> StateRequest {
        let tables =
            self.tables.iter().map(|(name, (crc, _))| TableState { name: name.clone(), crc: *crc, file: Bytes::new() });
        let lanes = self.lanes.iter().map(|((track, lane), remote)| ViewerLane {
            track: *track,
            lane: *lane,
            end: remote.ordinals.end,
            blocks: remote.first_block + remote.fences.len() as u64,
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
        let sizes = TableSizes { n_sites: contents.sites.len() as u32, n_nodes: contents.nodes.len() as u32 };
        let mut unchanged = FxHashMap::default();
        for lane in state.lanes {
            let range = self.apply_lane(&pages, &lane, sizes).ok_or(RemoteError::Invalid("a lane is inconsistent"))?;
            unchanged.extend(range.map(|range| ((lane.track, lane.lane), range)));
        }
        pages.mark_stale(&unchanged);
        pages.set_table_sizes(sizes);
        // The tables of a live trace, and with them the trace's range, may be older than its lanes.
        for lane in self.lanes.values() {
            let range = lane.range();
            contents.range = contents.range.start.min(range.start)..contents.range.end.max(range.end);
        }
        // `set_lane` ignores a lane whose track the tables lack; the lane is added with a later state.
        for ((track, lane), remote) in &self.lanes {
            contents.set_lane(*track, *lane, || Box::new(remote.clone()));
        }
        contents.pager = Some(pages);
        self.is_live = Some(state.live);
        let batch = Batch { live: Some(state.live), disk_bytes: state.disk_bytes, ..Batch::default() };
        Ok(Update { replacement: Some(Box::new(Store::from_contents(contents))), batch })
    }

    /// Stores the state of a lane; `None` if the state is invalid. Returns the range of time in which a lane that the
    /// viewer had before did not change.
    fn apply_lane(
        &mut self,
        pages: &Arc<RemotePages>,
        state: &LaneState,
        sizes: TableSizes,
    ) -> Option<Option<Range<i64>>> {
        let key = (state.track, state.lane);
        let tile = Tile::from_message(state.all.as_ref()?, u64::MAX, sizes)?;
        let (overview, n_slices) = tile.only_span()?;
        let ordinals = state.first..state.first.checked_add(u64::from(n_slices))?;
        let previous = self.lanes.remove(&key);
        let (mut first_block, mut fences) = (state.first_block, Vec::new());
        let mut unchanged = None;
        if let Some(previous) = previous {
            // Slices may have been evicted at the start, and appended at the end.
            let start = if ordinals.start > previous.ordinals.start { overview.start } else { i64::MIN };
            unchanged = Some(start..previous.overview.end);
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
        self.lanes.insert(key, RemoteLane { pages, key, ordinals, overview, first_block, fences });
        Some(unchanged)
    }
}
