//! A lane whose slices are in another process: it is drawn from tiles, and its slices are fetched in blocks.

use super::block::Block;
use super::key::{LaneKey, MAX_LEVEL};
use super::message::{BlockId, TileId};
use super::pages::{OnMissing, RemotePages};
use std::ops::Range;
use std::sync::Arc;
use trace_model::layout::BLOCK;
use trace_model::lod::{Node, SpanMerger};
use trace_model::{ColdLane, Event, SliceColumns, SliceCursor};

/// The ordinals and times of a remote lane, without its slices.
#[derive(Clone, Debug)]
pub(crate) struct RemoteLane {
    pub(super) pages: Arc<RemotePages>,
    pub(super) key: LaneKey,
    /// Ordinals of the lane's slices.
    pub(super) ordinals: Range<u64>,
    /// All slices as one span.
    pub(super) overview: Node,
    /// Number of the block of the first fence.
    pub(super) first_block: u64,
    /// Start of the first slice of each block.
    pub(super) fences: Arc<Vec<i64>>,
}

impl ColdLane for RemoteLane {
    fn n_slices(&self) -> usize {
        usize::try_from(self.ordinals.end - self.ordinals.start).unwrap_or(usize::MAX)
    }

    fn evicted(&self) -> u64 {
        self.ordinals.start
    }

    fn longest_ns(&self) -> i64 {
        self.overview.longest()
    }

    fn range(&self) -> Range<i64> {
        self.overview.start..self.overview.end
    }

    fn cursor(&self) -> Box<dyn SliceCursor + '_> {
        Box::new(RemoteCursor { lane: self, on_missing: OnMissing::Request, current: None })
    }

    fn cursor_in_memory(&self) -> Box<dyn SliceCursor + '_> {
        Box::new(RemoteCursor { lane: self, on_missing: OnMissing::Ignore, current: None })
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn feed_spans_blocking(&self, _: Range<u32>, _: &mut SpanMerger<'_>) {}

    fn start_of(&self, _: usize) -> Option<i64> {
        None
    }

    /// Feeds to `merger` the tiles of the highest level whose pixels are not larger than the view's. If tiles of this
    /// level are missing, requests them, and feeds the tiles of the lowest higher level that is complete.
    fn feed_spans(&self, view: &Range<i64>, merger: &mut SpanMerger<'_>) {
        let visible = self.overview.start.max(view.start)..self.overview.end.saturating_add(1).min(view.end);
        if visible.start >= visible.end {
            return;
        }
        let view_level = merger.pixel().ilog2().min(MAX_LEVEL);
        let mut is_drawn = false;
        self.pages.with_tiles(|tiles| {
            for level in view_level..=MAX_LEVEL {
                let keys = || TileId::touching(self.key, level, &visible);
                let Some(level_tiles) = tiles.get_all(keys()) else { continue };
                for (i, tile) in level_tiles.iter().enumerate() {
                    tile.feed_spans(self.ordinals.start, view, i == 0, merger);
                }
                is_drawn = true;
                let is_best = level == view_level || level_tiles.iter().all(|tile| tile.is_exact);
                if is_best && tiles.is_fresh(keys()) {
                    return;
                }
                break;
            }
            tiles.request(TileId::touching(self.key, view_level, &visible));
        });
        if !is_drawn {
            merger.push(0, 0, self.n_slices(), &self.overview);
        }
    }

    fn remote_blocks(&self, view: &Range<i64>) -> Range<u64> {
        if view.start >= view.end || self.overview.start >= view.end || self.overview.end < view.start {
            return 0..0;
        }
        let from = self.fences.partition_point(|fence| *fence < view.start).saturating_sub(1) as u64;
        let to = self.fences.partition_point(|fence| *fence < view.end) as u64;
        self.first_block + from..self.first_block + to.max(from)
    }

    fn has_block(&self, number: u64) -> bool {
        self.block(number, OnMissing::Request).is_some_and(|block| block.end() >= self.ordinals_of(number).end)
    }
}

impl RemoteLane {
    fn block_id(&self, block: u64) -> BlockId {
        BlockId { track: self.key.0, lane: self.key.1, block }
    }

    fn block(&self, number: u64, on_missing: OnMissing) -> Option<Arc<Block>> {
        self.pages.block(self.block_id(number), self.ordinals_of(number).end, on_missing)
    }

    /// The ordinals of the lane's slices in a block.
    pub(super) fn ordinals_of(&self, block: u64) -> Range<u64> {
        let of_block = self.block_id(block).ordinals();
        of_block.start.max(self.ordinals.start)..of_block.end.min(self.ordinals.end)
    }
}

/// A cursor over a remote lane, which never waits: slices of missing blocks are `None`.
struct RemoteCursor<'a> {
    lane: &'a RemoteLane,
    on_missing: OnMissing,
    /// Number and contents of the block that was used last.
    current: Option<(u64, Option<Arc<Block>>)>,
}

impl SliceCursor for RemoteCursor<'_> {
    #[inline]
    fn rows(&mut self, index: u64) -> Option<(&SliceColumns, Range<usize>)> {
        let ordinal = self.lane.ordinals.start.checked_add(index).filter(|o| *o < self.lane.ordinals.end)?;
        let block = ordinal / BLOCK;
        if self.current.as_ref().is_none_or(|(current, _)| *current != block) {
            self.current = Some((block, self.lane.block(block, self.on_missing)));
        }
        self.current.as_ref()?.1.as_ref()?.rows(ordinal)
    }

    /// If the block that decides is missing, returns the index of its first slice.
    fn first_touching(&mut self, time: i64) -> u32 {
        self.partition_point(time, false, |slice| slice.end <= time && slice.start < time)
    }

    /// If the block that decides is missing, returns the index after its last slice.
    fn first_from(&mut self, time: i64) -> u32 {
        self.partition_point(time, true, |slice| slice.start < time)
    }
}

impl RemoteCursor<'_> {
    /// Returns the index of the first slice for which `is_before` is false. `is_before` must hold for a prefix of the
    /// lane. `time` selects the block; if it is missing, returns its end if `rounds_up`, else its start.
    fn partition_point(&mut self, time: i64, rounds_up: bool, is_before: impl Fn(&Event) -> bool) -> u32 {
        let index = |ordinal: u64| (ordinal - self.lane.ordinals.start) as u32;
        let Some(fence) = self.lane.fences.partition_point(|fence| *fence < time).checked_sub(1) else { return 0 };
        let ordinals = self.lane.ordinals_of(self.lane.first_block + fence as u64);
        let (mut from, mut to) = (index(ordinals.start), index(ordinals.end.max(ordinals.start)));
        let if_missing = if rounds_up { to } else { from };
        while from < to {
            let middle = from + (to - from) / 2;
            match self.slice(u64::from(middle)) {
                Some(slice) if is_before(&slice) => from = middle + 1,
                Some(_) => to = middle,
                None => return if_missing,
            }
        }
        from
    }
}
