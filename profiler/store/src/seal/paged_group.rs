//! A row group of a sealed trace as the pager has it in memory: its slices lane by lane.

use super::columns::{TableError, text};
use super::row_group::RowGroup;
use super::sidecar::Sidecar;
use arrow_array::{Array, ArrayRef};
use trace_model::{NO_ARGS, SliceColumns, SliceDetails};

/// The slices of a row group, ordered by the row of their lane in the sidecar, then by start.
#[derive(Debug)]
pub(crate) struct PagedGroup {
    pub(super) slices: SliceColumns,
    /// The row in the group of each slice with arguments, and the column `args`.
    args: Option<(Vec<u32>, ArrayRef)>,
    /// Number of the first arguments in the group, counted through the trace.
    first_args_id: u32,
}

impl PagedGroup {
    /// Orders rows by lane. Fails if the sidecar was made from other slices.
    pub(super) fn from_rows(
        rows: RowGroup,
        sidecar: &Sidecar,
        lanes: &LaneRows,
        group: u32,
    ) -> Result<PagedGroup, TableError> {
        let mismatch = TableError::Rows("they are not those that the sidecar was made from");
        let n = rows.slices.len();
        let mut counts = vec![0u32; sidecar.lanes().len()];
        let mut lane_rows = Vec::with_capacity(n);
        for key in rows.track.iter().copied().zip(rows.lane.iter().copied()) {
            let Some(row) = lanes.get(&key) else { return Err(mismatch) };
            counts[*row as usize] += 1;
            lane_rows.push(*row);
        }
        let mut offset = 0;
        for (row, count) in counts.iter_mut().enumerate() {
            let n_slices = std::mem::replace(count, offset);
            if n_slices > 0 && !is_expected(sidecar, row, group, offset, n_slices) {
                return Err(mismatch);
            }
            offset += n_slices;
        }
        let first_args_id = sidecar.groups().get(group as usize).map_or(NO_ARGS, |g| g.first_args);
        let mut slices = SliceColumns::zeroed(n);
        let mut next_args = first_args_id;
        for (i, lane_row) in lane_rows.iter().enumerate() {
            let next_row = &mut counts[*lane_row as usize];
            let has_args = rows.has_args(i);
            let args = if has_args { next_args } else { NO_ARGS };
            next_args = next_args.saturating_add(u32::from(has_args));
            if let Some(header) = rows.slices.header(i) {
                slices.set(*next_row as usize, header, SliceDetails { args, ..rows.slices.details[i] });
            }
            *next_row += 1;
        }
        let with_args =
            |args: ArrayRef| ((0..args.len() as u32).filter(|i| args.is_valid(*i as usize)).collect(), args);
        Ok(PagedGroup { slices, args: rows.args.map(with_args), first_args_id })
    }

    /// Returns the arguments with a number; `None` if another row group has them.
    pub(super) fn args(&self, args_id: u32) -> Option<&str> {
        let (rows, column) = self.args.as_ref()?;
        text(column, *rows.get(args_id.checked_sub(self.first_args_id)? as usize)? as usize)
    }

    pub(super) fn bytes(&self) -> usize {
        let args = self.args.as_ref().map_or(0, |(rows, column)| rows.len() * 4 + column.get_array_memory_size());
        self.slices.bytes() + args
    }
}

/// Rows in the sidecar, by (track, lane).
pub(super) type LaneRows = rustc_hash::FxHashMap<(u32, u32), u32>;

/// Whether the sidecar says that a row group has `n` slices of a lane, from row `offset` on.
fn is_expected(sidecar: &Sidecar, lane: usize, group: u32, offset: u32, n: u32) -> bool {
    let Some(entry) = sidecar.lanes().get(lane) else { return false };
    let pieces = sidecar.pieces(entry);
    let Ok(i) = pieces.binary_search_by_key(&group, |piece| piece.group) else { return false };
    let end = pieces.get(i + 1).map_or(entry.n, |next| next.first);
    pieces[i].offset == offset && end.checked_sub(pieces[i].first) == Some(u64::from(n))
}
