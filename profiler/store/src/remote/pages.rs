//! Caches tiles and blocks of a remote trace within a budget of bytes, and collects the requests for missing ones.

use super::block::Block;
use super::key::{LaneKey, Names};
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
const BUDGET: usize = 256 << 20;
/// Tiles and blocks of one request, at most. The next picture requests again what is left out.
const TILES_AT_A_TIME: usize = 512;
const BLOCKS_AT_A_TIME: usize = 16;

/// What a cursor does about a block that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Request,
    Ignore,
}

/// The pages of one generation of a remote store.
pub(crate) struct RemotePages {
    transport: Arc<dyn Transport>,
    generation: u64,
    names: Mutex<Names>,
    cache: Mutex<RemoteCache>,
    requested_blocks: Mutex<BTreeSet<BlockId>>,
    version: AtomicU64,
    problem: Mutex<Option<String>>,
    recovered: AtomicBool,
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
    stale: BTreeSet<TileId>,
    blocks: Cache<BlockId, Block>,
    /// The first number of the arguments of each block. Numbers are given in the order in which blocks arrive.
    args: Vec<(u32, BlockId)>,
    n_args: u32,
}

/// The cached tiles, for drawing.
pub(super) struct Tiles<'a> {
    cache: &'a mut RemoteCache,
}

impl Tiles<'_> {
    /// These tiles; `None` if one is not cached.
    pub(super) fn all_of(&mut self, keys: impl Iterator<Item = TileId>) -> Option<Vec<Arc<Tile>>> {
        keys.map(|key| self.cache.tiles.get(&key)).collect()
    }

    /// Whether none of these tiles is stale.
    pub(super) fn are_fresh(&self, mut keys: impl Iterator<Item = TileId>) -> bool {
        keys.all(|key| !self.cache.stale.contains(&key))
    }

    /// Requests those of these tiles that are not cached, or stale.
    pub(super) fn request(&mut self, keys: impl Iterator<Item = TileId>) {
        for key in keys {
            if self.cache.stale.contains(&key) || !self.cache.tiles.contains(&key) {
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
            names: Mutex::default(),
            cache: Mutex::new(RemoteCache {
                tiles: Cache::new(BUDGET / 2),
                requested_tiles: BTreeSet::new(),
                stale: BTreeSet::new(),
                blocks: Cache::new(BUDGET / 2),
                args: Vec::new(),
                n_args: 0,
            }),
            requested_blocks: Mutex::default(),
            version: AtomicU64::new(0),
            problem: Mutex::default(),
            recovered: AtomicBool::new(false),
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn set_names(&self, names: Names) {
        *self.names.lock() = names;
    }

    /// Returns whether requests succeed again after a failure, once for each recovery.
    pub(super) fn take_recovered(&self) -> bool {
        self.recovered.swap(false, Ordering::Relaxed)
    }

    /// Marks as stale the tiles of these lanes that reach out of the lane's unchanged range of time.
    pub(super) fn set_changed(&self, unchanged: &FxHashMap<LaneKey, Range<i64>>) {
        let mut cache = self.cache.lock();
        let RemoteCache { tiles, stale, .. } = &mut *cache;
        stale.retain(|tile| tiles.contains(tile));
        let reaches_out = |tile: &&TileId| {
            let unchanged = unchanged.get(&(tile.track, tile.lane));
            unchanged.is_some_and(|range| tile.range().start < range.start || tile.range().end > range.end)
        };
        stale.extend(tiles.keys().filter(reaches_out));
    }

    pub(super) fn with_tiles(&self, draw: impl FnOnce(&mut Tiles<'_>)) {
        draw(&mut Tiles { cache: &mut self.cache.lock() });
    }

    /// A block, if it is cached. It is requested if it is missing, or ends before the ordinal `end`.
    pub(super) fn block(&self, key: BlockId, end: u64, missing: Missing) -> Option<Arc<Block>> {
        let found = self.cache.lock().blocks.get(&key);
        let is_complete = found.as_deref().is_some_and(|block| block.end() >= end);
        if !is_complete && missing == Missing::Request {
            self.requested_blocks.lock().insert(key);
        }
        found
    }

    /// The numbers of names; `None` if the server has more. The response is dropped then, since it may refer to names
    /// that only the next state has.
    fn names_of(&self, sites: u32, nodes: u32) -> Option<Names> {
        let names = *self.names.lock();
        (names == Names { sites, nodes }).then_some(names)
    }

    /// Fetches [`TILES_AT_A_TIME`] of the requested tiles. Returns whether one arrived.
    fn load_tiles(&self) -> Result<bool, RemoteError> {
        let requested = std::mem::take(&mut self.cache.lock().requested_tiles);
        let keys: Vec<TileId> = requested.into_iter().take(TILES_AT_A_TIME).collect();
        if keys.is_empty() {
            return Ok(false);
        }
        let request = message::TilesRequest { generation: self.generation, tiles: keys.clone() };
        let ResponseKind::Tiles(answer) = call(&*self.transport, RequestKind::Tiles(request))? else {
            return Err(RemoteError::Invalid("an answer is not to its request"));
        };
        let Some(names) = self.names_of(answer.sites, answer.nodes) else { return Ok(false) };
        let mut cache = self.cache.lock();
        for (key, tile) in keys.iter().zip(&answer.tiles) {
            // No limit of ordinals: the lane may have grown since its state was fetched.
            let tile = Tile::of_message(tile, u64::MAX, names)
                .ok_or(RemoteError::Invalid("the spans of a tile make no sense"))?;
            cache.stale.remove(key);
            let bytes = tile.bytes();
            cache.tiles.insert(*key, tile, bytes);
        }
        Ok(!answer.tiles.is_empty())
    }

    /// Fetches [`BLOCKS_AT_A_TIME`] of the requested blocks. Returns whether one arrived.
    fn load_blocks(&self) -> Result<bool, RemoteError> {
        let requested = std::mem::take(&mut *self.requested_blocks.lock());
        let keys: Vec<BlockId> = requested.into_iter().take(BLOCKS_AT_A_TIME).collect();
        if keys.is_empty() {
            return Ok(false);
        }
        let request = message::RowsRequest { generation: self.generation, blocks: keys.clone() };
        let ResponseKind::Rows(answer) = call(&*self.transport, RequestKind::Rows(request))? else {
            return Err(RemoteError::Invalid("an answer is not to its request"));
        };
        let Some(names) = self.names_of(answer.sites, answer.nodes) else { return Ok(false) };
        let mut cache = self.cache.lock();
        let n = answer.blocks.len();
        for (key, block) in keys.iter().zip(answer.blocks) {
            let mut block = Block::of_message(block, &key.ordinals(), names)
                .ok_or(RemoteError::Invalid("the rows of a block make no sense"))?;
            cache.number_args(&mut block, *key);
            let bytes = block.bytes();
            cache.blocks.insert(*key, block, bytes);
        }
        Ok(n > 0)
    }
}

/// Numbers from this one on are those of arguments in memory ([`Args`](trace_model::Args)).
const FIRST_RESIDENT_ARGS: u32 = 1 << 31;

impl RemoteCache {
    /// Gives the arguments of a block the next numbers; a block for which no numbers are left loses its arguments.
    fn number_args(&mut self, block: &mut Block, key: BlockId) {
        let end = self.n_args.checked_add(block.n_args()).filter(|end| *end < FIRST_RESIDENT_ARGS);
        let Some(end) = end else { return block.drop_args() };
        block.number_args(self.n_args);
        if end > self.n_args {
            self.args.push((self.n_args, key));
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
        let mut problem = self.problem.lock();
        let changed = match loaded {
            Ok(changed) => {
                let recovers = changed && problem.take().is_some();
                self.recovered.fetch_or(recovers, Ordering::Relaxed);
                changed
            }
            Err(error) => {
                let error = error.to_string();
                let is_new = problem.as_ref() != Some(&error);
                *problem = Some(error);
                is_new
            }
        };
        self.version.fetch_add(u64::from(changed), Ordering::Release);
        changed
    }

    fn has_requests(&self) -> bool {
        !self.cache.lock().requested_tiles.is_empty() || !self.requested_blocks.lock().is_empty()
    }

    fn args(&self, number: u32) -> Option<String> {
        let mut cache = self.cache.lock();
        let i = cache.args.partition_point(|(first, _)| *first <= number).checked_sub(1)?;
        let (_, key) = cache.args[i];
        cache.blocks.get(&key)?.args(number).map(ToOwned::to_owned)
    }

    fn memory_bytes(&self) -> usize {
        self.stats().bytes
    }

    fn part_starts(&self) -> Vec<i64> {
        Vec::new()
    }

    fn damage(&self) -> Option<Warning> {
        let problem = self.problem.lock().clone()?;
        let source = self.transport.location();
        let text = format!("{source}: {problem}; what is shown may be coarse or old");
        Some(Warning::new(WarningKind::Damage, source, 1, text))
    }

    fn check_all(&self) {}
}
