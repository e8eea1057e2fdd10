//! What came from another process and is kept, within a budget; and what is requested.

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
use trace_model::{PagerStats, Pages, Warning, WarningKind};

/// Bytes that are kept, by default.
const BUDGET: usize = 256 << 20;
/// Tiles and blocks that are asked for at a time. What is left out is requested again by the next picture.
const TILES_AT_A_TIME: usize = 512;
const BLOCKS_AT_A_TIME: usize = 16;

/// What a cursor does about rows that are not here.
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
    /// Tiles that may have more slices by now.
    stale: BTreeSet<TileId>,
    blocks: Cache<BlockId, Block>,
    /// Arguments are numbered as blocks come: which block has those from a number on.
    args: Vec<(u32, BlockId)>,
    n_args: u32,
}

/// The tiles, for a picture.
pub(super) struct Tiles<'a> {
    cache: &'a mut RemoteCache,
}

impl Tiles<'_> {
    /// All of these tiles, if they are here.
    pub(super) fn all_of(&mut self, keys: impl Iterator<Item = TileId>) -> Option<Vec<Arc<Tile>>> {
        keys.map(|key| self.cache.tiles.get(&key)).collect()
    }

    /// Whether none of these may have more by now.
    pub(super) fn are_fresh(&self, mut keys: impl Iterator<Item = TileId>) -> bool {
        keys.all(|key| !self.cache.stale.contains(&key))
    }

    /// Requests those that are not here, or may have more by now.
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

    /// Whether questions failed before, and are answered again since.
    pub(super) fn has_recovered(&self) -> bool {
        self.recovered.swap(false, Ordering::Relaxed)
    }

    /// The slices of these lanes outside of what is kept of each are not what they were.
    pub(super) fn changed(&self, kept: &FxHashMap<LaneKey, Range<i64>>) {
        let mut cache = self.cache.lock();
        let RemoteCache { tiles, stale, .. } = &mut *cache;
        stale.retain(|tile| tiles.contains(tile));
        let reaches_out = |tile: &&TileId| {
            let kept = kept.get(&(tile.track, tile.lane));
            kept.is_some_and(|kept| tile.range().start < kept.start || tile.range().end > kept.end)
        };
        stale.extend(tiles.keys().filter(reaches_out));
    }

    pub(super) fn with_tiles(&self, look: impl FnOnce(&mut Tiles<'_>)) {
        look(&mut Tiles { cache: &mut self.cache.lock() });
    }

    /// The block, if it is here; it is requested unless it reaches the ordinal `until`.
    pub(super) fn block(&self, key: BlockId, until: u64, missing: Missing) -> Option<Arc<Block>> {
        let found = self.cache.lock().blocks.get(&key);
        let is_whole = found.as_deref().is_some_and(|block| block.until() >= until);
        if !is_whole && missing == Missing::Request {
            self.requested_blocks.lock().insert(key);
        }
        found
    }

    /// The names that are known; `None` where there are more by now. What refers to those comes again, after them.
    fn names_of(&self, sites: u32, nodes: u32) -> Option<Names> {
        let names = *self.names.lock();
        (names == Names { sites, nodes }).then_some(names)
    }

    /// Asks for some of the tiles that are requested.
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
            // The lane may have grown since its state came: then it is asked about again.
            let tile = Tile::of_message(tile, u64::MAX, names)
                .ok_or(RemoteError::Invalid("the spans of a tile make no sense"))?;
            cache.stale.remove(key);
            let bytes = tile.bytes();
            cache.tiles.insert(*key, tile, bytes);
        }
        Ok(!answer.tiles.is_empty())
    }

    /// Asks for some of the blocks that are requested.
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

impl RemoteCache {
    fn number_args(&mut self, block: &mut Block, key: BlockId) {
        // Numbers from 2^31 on are of arguments in memory.
        let until = self.n_args.checked_add(block.n_args()).filter(|until| *until < 1 << 31);
        let Some(until) = until else { return block.drop_args() };
        block.number_args(self.n_args);
        if until > self.n_args {
            self.args.push((self.n_args, key));
            self.n_args = until;
        }
    }
}

impl Pages for RemotePages {
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
        let at = cache.args.partition_point(|(first, _)| *first <= number).checked_sub(1)?;
        let (_, key) = cache.args[at];
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
