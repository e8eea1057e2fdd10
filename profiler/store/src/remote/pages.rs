//! Caches tiles and blocks of a remote trace within a budget of bytes, and collects the requests for missing ones.

use super::block::Block;
use super::key::{LaneKey, TableSizes};
use super::message::{self, BlockId, RequestKind, ResponseKind, TileId};
use super::tile::Tile;
use super::transport::{RemoteError, Transport, call};
use crate::cache::Cache;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trace_model::{PageLoader, PagerStats, Warning, WarningKind};

/// Default budget of the cache, bytes.
const DEFAULT_BUDGET: usize = 256 << 20;
/// Maximum number of tiles or blocks of one request. The next picture requests the remaining ones again.
const MAX_TILES_PER_REQUEST: usize = 512;
const MAX_BLOCKS_PER_REQUEST: usize = 16;

/// The reaction of a cursor to a block that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnMissing {
    Request,
    Ignore,
}

/// The pages of one generation of a remote store.
pub(crate) struct RemotePages {
    transport: Arc<dyn Transport>,
    generation: u64,
    /// Lengths of the tables of the last state.
    table_sizes: Mutex<TableSizes>,
    cache: Mutex<RemoteCache>,
    requested_blocks: Mutex<BTreeSet<BlockId>>,
    version: AtomicU64,
    /// Why the last request failed.
    last_error: Mutex<Option<String>>,
    has_recovered: AtomicBool,
}

impl std::fmt::Debug for RemotePages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemotePages").field("generation", &self.generation).finish_non_exhaustive()
    }
}

struct RemoteCache {
    tiles: Cache<TileId, Tile>,
    requested_tiles: BTreeSet<TileId>,
    /// Cached tiles whose slices may have changed on the server.
    stale_tiles: BTreeSet<TileId>,
    blocks: Cache<BlockId, Block>,
    /// The first number of the arguments of each block. Arguments are numbered in the order in which blocks arrive.
    first_args_ids: Vec<(u32, BlockId)>,
    n_args: u32,
}

/// The cached tiles, for drawing.
pub(super) struct Tiles<'a> {
    cache: &'a mut RemoteCache,
}

impl Tiles<'_> {
    /// Returns these tiles; `None` if one is not cached.
    pub(super) fn get_all(&mut self, keys: impl Iterator<Item = TileId>) -> Option<Vec<Arc<Tile>>> {
        keys.map(|key| self.cache.tiles.get(&key)).collect()
    }

    /// Whether none of these tiles is stale.
    pub(super) fn is_fresh(&self, mut keys: impl Iterator<Item = TileId>) -> bool {
        keys.all(|key| !self.cache.stale_tiles.contains(&key))
    }

    /// Requests those of these tiles that are not cached, or stale.
    pub(super) fn request(&mut self, keys: impl Iterator<Item = TileId>) {
        for key in keys {
            if self.cache.stale_tiles.contains(&key) || !self.cache.tiles.contains(&key) {
                self.cache.requested_tiles.insert(key);
            }
        }
    }
}

impl RemotePages {
    pub(super) fn new(transport: Arc<dyn Transport>, generation: u64) -> RemotePages {
        RemotePages {
            transport,
            generation,
            table_sizes: Mutex::default(),
            cache: Mutex::new(RemoteCache {
                tiles: Cache::new(DEFAULT_BUDGET / 2),
                requested_tiles: BTreeSet::new(),
                stale_tiles: BTreeSet::new(),
                blocks: Cache::new(DEFAULT_BUDGET / 2),
                first_args_ids: Vec::new(),
                n_args: 0,
            }),
            requested_blocks: Mutex::default(),
            version: AtomicU64::new(0),
            last_error: Mutex::default(),
            has_recovered: AtomicBool::new(false),
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn set_table_sizes(&self, sizes: TableSizes) {
        *self.table_sizes.lock() = sizes;
    }

    /// Returns whether requests succeed again after a failure, once for each recovery.
    pub(super) fn take_recovery(&self) -> bool {
        self.has_recovered.swap(false, Ordering::Relaxed)
    }

    /// Marks as stale the tiles of these lanes that reach out of the lane's unchanged range of time.
    pub(super) fn mark_stale(&self, unchanged: &FxHashMap<LaneKey, Range<i64>>) {
        let mut cache = self.cache.lock();
        let RemoteCache { tiles, stale_tiles, .. } = &mut *cache;
        stale_tiles.retain(|tile| tiles.contains(tile));
        let reaches_out = |tile: &&TileId| {
            let unchanged = unchanged.get(&(tile.track, tile.lane));
            unchanged.is_some_and(|range| tile.range().start < range.start || tile.range().end > range.end)
        };
        stale_tiles.extend(tiles.keys().filter(reaches_out));
    }

    pub(super) fn with_tiles(&self, draw: impl FnOnce(&mut Tiles<'_>)) {
        draw(&mut Tiles { cache: &mut self.cache.lock() });
    }

    /// Returns a block, if it is cached. Requests a block that is missing, or ends before the ordinal `end`.
    pub(super) fn block(&self, key: BlockId, end: u64, on_missing: OnMissing) -> Option<Arc<Block>> {
        let cached = self.cache.lock().blocks.get(&key);
        let is_complete = cached.as_deref().is_some_and(|block| block.end() >= end);
        if !is_complete && on_missing == OnMissing::Request {
            self.requested_blocks.lock().insert(key);
        }
        cached
    }

    /// Returns the lengths of the tables; `None` if the server's tables are longer. Its response is dropped then, since
    /// the response may refer to rows that only the next state has.
    fn matching_sizes(&self, n_sites: u32, n_nodes: u32) -> Option<TableSizes> {
        let sizes = *self.table_sizes.lock();
        (sizes == TableSizes { n_sites, n_nodes }).then_some(sizes)
    }

    /// Fetches [`MAX_TILES_PER_REQUEST`] of the requested tiles. Returns whether one arrived.
    fn load_tiles(&self) -> Result<bool, RemoteError> {
        let requested = std::mem::take(&mut self.cache.lock().requested_tiles);
        let keys: Vec<TileId> = requested.into_iter().take(MAX_TILES_PER_REQUEST).collect();
        if keys.is_empty() {
            return Ok(false);
        }
        let request = message::TilesRequest { generation: self.generation, tiles: keys.clone() };
        let ResponseKind::Tiles(response) = call(&*self.transport, RequestKind::Tiles(request))? else {
            return Err(RemoteError::Invalid("an answer is not to its request"));
        };
        let Some(sizes) = self.matching_sizes(response.sites, response.nodes) else { return Ok(false) };
        let mut cache = self.cache.lock();
        for (key, tile) in keys.iter().zip(&response.tiles) {
            // Ordinals have no limit: the lane may have grown since its state was fetched.
            let tile = Tile::from_message(tile, u64::MAX, sizes)
                .ok_or(RemoteError::Invalid("the spans of a tile make no sense"))?;
            cache.stale_tiles.remove(key);
            let bytes = tile.bytes();
            cache.tiles.insert(*key, tile, bytes);
        }
        Ok(!response.tiles.is_empty())
    }

    /// Fetches [`MAX_BLOCKS_PER_REQUEST`] of the requested blocks. Returns whether one arrived.
    fn load_blocks(&self) -> Result<bool, RemoteError> {
        let requested = std::mem::take(&mut *self.requested_blocks.lock());
        let keys: Vec<BlockId> = requested.into_iter().take(MAX_BLOCKS_PER_REQUEST).collect();
        if keys.is_empty() {
            return Ok(false);
        }
        let request = message::RowsRequest { generation: self.generation, blocks: keys.clone() };
        let ResponseKind::Rows(response) = call(&*self.transport, RequestKind::Rows(request))? else {
            return Err(RemoteError::Invalid("an answer is not to its request"));
        };
        let Some(sizes) = self.matching_sizes(response.sites, response.nodes) else { return Ok(false) };
        let mut cache = self.cache.lock();
        let n = response.blocks.len();
        for (key, block) in keys.iter().zip(response.blocks) {
            let mut block = Block::from_message(block, &key.ordinals(), sizes)
                .ok_or(RemoteError::Invalid("the rows of a block make no sense"))?;
            cache.number_args(&mut block, *key);
            let bytes = block.bytes();
            cache.blocks.insert(*key, block, bytes);
        }
        Ok(n > 0)
    }
}

/// Numbers from this one on stand for arguments in memory ([`Args`](trace_model::Args)).
const FIRST_RESIDENT_ARGS: u32 = 1 << 31;

impl RemoteCache {
    /// Assigns the next numbers to the arguments of a block. A block for which no numbers are left loses its arguments.
    fn number_args(&mut self, block: &mut Block, key: BlockId) {
        let end = self.n_args.checked_add(block.n_args()).filter(|end| *end < FIRST_RESIDENT_ARGS);
        let Some(end) = end else { return block.drop_args() };
        block.number_args(self.n_args);
        if end > self.n_args {
            self.first_args_ids.push((self.n_args, key));
            self.n_args = end;
        }
    }
}

impl PageLoader for RemotePages {
    fn set_budget(&self, budget: usize) {
        let mut cache = self.cache.lock();
        cache.tiles.set_budget(budget / 2);
        cache.blocks.set_budget(budget / 2);
    }

    fn stats(&self) -> PagerStats {
        let cache = self.cache.lock();
        PagerStats {
            bytes: cache.tiles.bytes() + cache.blocks.bytes(),
            budget: cache.tiles.budget() + cache.blocks.budget(),
            loads: self.version.load(Ordering::Relaxed),
        }
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn load_requested(&self) -> bool {
        let loaded = self.load_tiles().and_then(|tiles| Ok(tiles | self.load_blocks()?));
        let mut last_error = self.last_error.lock();
        let changed = match loaded {
            Ok(changed) => {
                let recovers = changed && last_error.take().is_some();
                self.has_recovered.fetch_or(recovers, Ordering::Relaxed);
                changed
            }
            Err(error) => {
                let error = error.to_string();
                let is_new = last_error.as_ref() != Some(&error);
                *last_error = Some(error);
                is_new
            }
        };
        self.version.fetch_add(u64::from(changed), Ordering::Release);
        changed
    }

    fn has_requests(&self) -> bool {
        !self.cache.lock().requested_tiles.is_empty() || !self.requested_blocks.lock().is_empty()
    }

    fn args(&self, args_id: u32) -> Option<String> {
        let mut cache = self.cache.lock();
        let i = cache.first_args_ids.partition_point(|(first, _)| *first <= args_id).checked_sub(1)?;
        let (_, key) = cache.first_args_ids[i];
        cache.blocks.get(&key)?.args(args_id).map(ToOwned::to_owned)
    }

    fn memory_bytes(&self) -> usize {
        self.stats().bytes
    }

    fn part_starts(&self) -> Vec<i64> {
        Vec::new()
    }

    fn damage(&self) -> Option<Warning> {
        let error = self.last_error.lock().clone()?;
        let source = self.transport.location();
        let text = format!("{source}: {error}; what is shown may be coarse or old");
        Some(Warning::new(WarningKind::Damage, source, 1, text))
    }

    fn check_all(&self) {}
}
