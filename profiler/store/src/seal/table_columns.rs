//! Makes the columns of the tables other than `slices` from the rows of a store.

use super::SealError;
use super::names::Names;
use super::schema::{
    CounterRow, FlowRow, FrameRow, FunctionRow, InstantRow, MemoryRow, NodeRow, OpenRow, ProcessRow, RingRow, SiteRow,
    StackRow, StepRow, TrackRow, TransferRow, WarningRow,
};
use super::table::{StoredRow, Table};
use crate::store::{PlacedInstant, SideRows, Store, Track};
use arrow_array::ArrayRef;
use trace_model::{Counter, Flow, InstantEvent, MemoryEvent, Point, RingPosition, Transfer};

/// A store's row that becomes a row of a side table.
pub(super) trait RowSource: Sized {
    type Row<'a>: StoredRow<'a> + From<&'a Self>
    where
        Self: 'a;

    /// Returns the table's columns, with these rows.
    fn columns(rows: &[Self], names: &Names) -> Vec<ArrayRef> {
        columns::<Self::Row<'_>, _>(rows, names)
    }
}

impl RowSource for PlacedInstant {
    type Row<'a> = InstantRow<'a>;
}

impl RowSource for Point {
    type Row<'a> = CounterRow;
}

impl RowSource for Flow {
    type Row<'a> = FlowRow;
}

impl RowSource for MemoryEvent {
    type Row<'a> = MemoryRow;
}

impl RowSource for Transfer {
    type Row<'a> = TransferRow;
}

impl RowSource for RingPosition {
    type Row<'a> = RingRow;
}

/// Returns the columns of a table, with these rows.
pub(super) fn columns<'a, R: StoredRow<'a> + From<T>, T>(
    rows: impl IntoIterator<Item = T>,
    names: &Names,
) -> Vec<ArrayRef> {
    R::arrays(&rows.into_iter().map(R::from).collect::<Vec<_>>(), names)
}

/// Receives the rows of side tables.
pub(super) trait RowSink {
    fn append_rows<T: RowSource>(&mut self, rows: impl Iterator<Item = T>) -> Result<(), SealError>;
}

/// Passes to `out` a store's rows of the [side tables](super::schema::SIDES).
pub(super) fn write_sides(store: &Store, out: &mut impl RowSink) -> Result<(), SealError> {
    let placed = |track: &Track, event: &InstantEvent| {
        let args = store.args().get(event.args).map(Into::into);
        PlacedInstant { track: track.id, event: *event, args }
    };
    let points = |c: &'_ Counter| {
        let key = c.key();
        c.time.clone().into_iter().zip(c.value.clone()).map(move |(time, value)| Point { key, time, value })
    };
    out.append_rows(store.tracks().iter().flat_map(|t| t.instants.iter().map(move |i| placed(t, i))))?;
    out.append_rows(store.counters().iter().flat_map(points))?;
    out.append_rows(store.flows().copied())?;
    out.append_rows(store.memory().iter().copied())?;
    out.append_rows(store.transfers().iter().copied())
}

/// Passes to `out` rows of the side tables that were drained from a store.
pub(super) fn write_rows(rows: SideRows, out: &mut impl RowSink) -> Result<(), SealError> {
    out.append_rows(rows.instants.into_iter())?;
    out.append_rows(rows.points.into_iter())?;
    out.append_rows(rows.flows.into_iter())?;
    out.append_rows(rows.memory.into_iter())?;
    out.append_rows(rows.transfers.into_iter())
}

/// A table that is written in one piece when the trace is complete, and the function that makes its columns.
pub(super) type FinalTable = (Table, fn(&Store, &Names) -> Vec<ArrayRef>);

/// The tables that are written when the trace is complete.
pub(super) const FINAL_TABLES: [FinalTable; 10] = [
    (TrackRow::TABLE, |store, names| {
        let process = |track: &Track| store.processes().get(track.process as usize);
        columns::<TrackRow<'_>, _>(store.tracks().iter().map(|track| (track, process(track))), names)
    }),
    (ProcessRow::TABLE, |store, names| columns::<ProcessRow<'_>, _>((0..).zip(store.processes()), names)),
    (SiteRow::TABLE, |store, names| columns::<SiteRow<'_>, _>((0..).zip(store.sites()), names)),
    (NodeRow::TABLE, |store, names| columns::<NodeRow<'_>, _>((0..).zip(store.nodes()), names)),
    (StepRow::TABLE, |store, names| columns::<StepRow, _>(store.steps(), names)),
    (OpenRow::TABLE, |store, names| {
        let open = store.tracks().iter().flat_map(|track| track.open.iter().map(|open| (track.id, open)));
        columns::<OpenRow, _>(open, names)
    }),
    (StackRow::TABLE, |store, names| columns::<StackRow, _>((0..).zip(store.stacks()), names)),
    (FrameRow::TABLE, |store, names| columns::<FrameRow<'_>, _>((0..).zip(store.frames()), names)),
    (FunctionRow::TABLE, |store, names| {
        let frames = (0..).zip(store.frames());
        let functions = frames.flat_map(|(row, frame)| frame.functions.iter().map(move |function| (row, function)));
        columns::<FunctionRow<'_>, _>(functions, names)
    }),
    (WarningRow::TABLE, |store, names| columns::<WarningRow<'_>, _>(store.warnings(), names)),
];
