//! A block of a remote lane: consecutive slices with all their fields.

use super::key::{TableSizes, is_time};
use super::message;
use crate::store::{Lane, Store};
use std::ops::Range;
use trace_model::{NO_ARGS, Site, SliceColumns, SliceDetails, SliceHeader};

/// Consecutive slices of a lane, with the texts of their arguments.
#[derive(Debug)]
pub(super) struct Block {
    /// Ordinal of the first slice.
    first: u64,
    /// Ordinal up to which the block has all readable slices of the lane.
    end: u64,
    slices: SliceColumns,
    /// The arguments of slices, numbered from `first_args_id` on.
    args: Vec<Box<str>>,
    first_args_id: u32,
}

impl Block {
    /// Returns the columns of the slices, and the range of rows from the slice `ordinal` to the end.
    pub(super) fn rows(&self, ordinal: u64) -> Option<(&SliceColumns, Range<usize>)> {
        let row = usize::try_from(ordinal.checked_sub(self.first)?).ok()?;
        (row < self.slices.len()).then(|| (&self.slices, row..self.slices.len()))
    }

    pub(super) fn args(&self, args_id: u32) -> Option<&str> {
        self.args.get(args_id.checked_sub(self.first_args_id)? as usize).map(AsRef::as_ref)
    }

    pub(super) fn n_args(&self) -> u32 {
        self.args.len() as u32
    }

    /// The ordinal up to which the block has all readable slices of the lane.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Numbers the arguments from `first` on.
    pub(super) fn number_args(&mut self, first: u32) {
        for details in self.slices.details.iter_mut().filter(|details| details.args != NO_ARGS) {
            details.args = details.args - self.first_args_id + first;
        }
        self.first_args_id = first;
    }

    /// Removes the arguments of all slices.
    pub(super) fn drop_args(&mut self) {
        self.args.clear();
        self.slices.details.iter_mut().for_each(|details| details.args = NO_ARGS);
    }

    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.args.iter().map(|text| text.len() + size_of::<Box<str>>()).sum();
        size_of::<Block>() + self.slices.bytes() + texts
    }

    /// Converts a message; `None` if the message is invalid, or has slices with ordinals outside these.
    pub(super) fn from_message(block: message::Block, ordinals: &Range<u64>, tables: TableSizes) -> Option<Block> {
        let n = block.gap.len();
        let lens = [block.length.len(), block.site.len(), block.node.len(), block.correlation.len(), block.arg.len()];
        // There may be fewer rows than ordinals: slices that were evicted or are damaged have none.
        let is_inside = block.first >= ordinals.start && block.first.checked_add(n as u64)? <= ordinals.end;
        if lens != [n; 5] || !is_inside {
            return None;
        }
        let (mut slices, mut previous_end) = (SliceColumns::with_capacity(n), 0_i64);
        for i in 0..n {
            let start = previous_end.checked_add(block.gap[i]).filter(|start| i == 0 || *start >= previous_end)?;
            let end = start.checked_add_unsigned(block.length[i]).filter(|end| is_time(start) && is_time(*end))?;
            let (site, node) = tables.check(block.site[i], block.node[i].wrapping_sub(1));
            let details = SliceDetails { arg: block.arg[i], correlation: block.correlation[i], args: NO_ARGS };
            slices.push(SliceHeader { start, end, site, node }, details);
            previous_end = end;
        }
        if block.args.len() != block.args_of.len() {
            return None;
        }
        for (number, row) in (0..).zip(&block.args_of) {
            slices.details.get_mut(*row as usize)?.args = number;
        }
        let args = block.args.into_iter().map(String::into_boxed_str).collect();
        Some(Block { first: block.first, end: block.until, slices, args, first_args_id: 0 })
    }
}

/// Returns the message with the slices of a lane that have these ordinals, up to the first slice that cannot be read.
/// Waits for the disk.
pub(super) fn to_message(store: &Store, lane: &Lane, ordinals: &Range<u64>) -> message::Block {
    let first = ordinals.start.max(lane.evicted());
    let index = |ordinal: u64| u32::try_from(ordinal.saturating_sub(lane.evicted())).unwrap_or(u32::MAX);
    let until = ordinals.end.min(lane.evicted() + lane.len() as u64);
    let mut block = message::Block { first, until, ..message::Block::default() };
    let mut previous_end = 0;
    for (i, slice) in (0..).zip(lane.slices_at(index(first)..index(ordinals.end).min(lane.len() as u32))) {
        if slice.id.ordinal != first + u64::from(i) {
            break; // The slices before this one cannot be read.
        }
        block.gap.push(slice.start - previous_end);
        block.length.push(slice.dur().unsigned_abs());
        block.site.push(Site::lookup(store.sites(), slice.site).to_code());
        block.node.push(slice.node.wrapping_add(1));
        block.correlation.push(slice.correlation);
        block.arg.push(slice.arg);
        if let Some(args) = store.args().get(slice.args) {
            block.args_of.push(i);
            block.args.push(args.into_owned());
        }
        previous_end = slice.end;
    }
    block
}
