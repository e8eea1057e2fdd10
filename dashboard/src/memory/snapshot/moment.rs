//! What was live at a moment, by place, computed in a thread.

use super::{place, timeline::GroupBy};
use crate::data::SnapshotData;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use torch_dumps::{Allocation, FrameId, StackId, live_at};
use ui::{
    background::Question,
    format::{bytes, count, percent},
    widgets::{self, SortOrder},
};

/// The largest allocations of a place that are listed.
const MAX_LARGEST: usize = 20;

/// What is asked for.
#[derive(Clone, PartialEq)]
pub(super) struct MomentKey {
    /// Identifies the snapshot.
    pub of: usize,
    /// An index into its devices with contents.
    pub device_idx: usize,
    /// The event after which it is; `None` for before the first one.
    pub event: Option<u32>,
    pub by: GroupBy,
}

impl Question for MomentKey {}

/// What a place had at a moment.
#[derive(Clone, Debug)]
pub(in crate::memory) struct LiveRow {
    /// The place as text.
    pub title: String,
    /// The frame; `None` for allocations without a stack.
    pub frame: Option<FrameId>,
    /// The stack of the largest allocation.
    pub stack: StackId,
    pub bytes: u64,
    pub count: u64,
    /// Share of all live bytes.
    pub share: f64,
    /// The largest allocations, and how many stacks there are.
    pub largest: Vec<Allocation>,
    pub n_stacks: usize,
}

/// What was live at a moment.
pub(in crate::memory) struct Moment {
    pub(super) when: MomentKey,
    pub bytes: u64,
    pub count: u64,
    /// The places, those with the most bytes first.
    pub rows: Vec<LiveRow>,
}

/// Sums up what was live.
pub(super) fn answer((when, snapshot): (MomentKey, SnapshotData)) -> Moment {
    let of = &snapshot.devices[when.device_idx];
    let stacks = &snapshot.snapshot.stacks;
    let mut live: Vec<&Allocation> = live_at(&of.allocations, when.event).collect();
    // The largest first, so that the first ones of a row are its largest.
    live.sort_by_key(|one| std::cmp::Reverse(one.size));
    let mut rows: Vec<LiveRow> = Vec::new();
    let mut row_of_stack: FxHashMap<StackId, usize> = FxHashMap::default();
    let mut row_of_frame: FxHashMap<Option<FrameId>, usize> = FxHashMap::default();
    for one in &live {
        let row = *row_of_stack.entry(one.stack).or_insert_with(|| {
            let (frame, next) = (stacks.user_frame(one.stack), rows.len());
            let row = if when.by == GroupBy::Frame { *row_of_frame.entry(frame).or_insert(next) } else { next };
            if row == next {
                let (title, stack) = (place::short(stacks, frame), one.stack);
                let largest = Vec::new();
                rows.push(LiveRow { title, frame, stack, bytes: 0, count: 0, share: 0.0, largest, n_stacks: 0 });
            }
            rows[row].n_stacks += 1;
            row
        });
        let row = &mut rows[row];
        (row.bytes, row.count) = (row.bytes.saturating_add(one.size), row.count + 1);
        if row.largest.len() < MAX_LARGEST {
            row.largest.push(**one);
        }
    }
    let bytes = live.iter().fold(0_u64, |sum, one| sum.saturating_add(one.size));
    rows.iter_mut().for_each(|row| row.share = row.bytes as f64 / bytes.max(1) as f64);
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    Moment { when, bytes, count: live.len() as u64, rows }
}

/// A column of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::memory) enum LiveColumn {
    Place,
    Share,
    Bytes,
    Count,
    Largest,
}

pub(super) const COLUMNS: [LiveColumn; 5] =
    [LiveColumn::Place, LiveColumn::Share, LiveColumn::Bytes, LiveColumn::Count, LiveColumn::Largest];

/// The order in which the table opens.
pub(super) const USUAL: SortOrder<LiveColumn> = SortOrder { column: LiveColumn::Bytes, descending: true };

impl widgets::Column<LiveRow> for LiveColumn {
    fn title(&self) -> Cow<'_, str> {
        match self {
            Self::Place => "Allocated at",
            Self::Share => "Share",
            Self::Bytes => "Bytes",
            Self::Count => "Count",
            Self::Largest => "Largest",
        }
        .into()
    }

    fn help(&self) -> Cow<'_, str> {
        match self {
            Self::Place => "The innermost frame that is not PyTorch's own",
            Self::Share => "Share of all live bytes",
            Self::Bytes => "Live bytes, as the program asked for them",
            Self::Count => "Live allocations",
            Self::Largest => "The largest of them",
        }
        .into()
    }

    fn is_text(&self) -> bool {
        *self == Self::Place
    }

    fn text<'a>(&'a self, row: &'a LiveRow) -> Cow<'a, str> {
        match self {
            Self::Place => (&*row.title).into(),
            Self::Share => percent(row.share).into(),
            Self::Bytes => bytes(row.bytes).into(),
            Self::Count => count(row.count).into(),
            Self::Largest => bytes(row.largest.first().map_or(0, |one| one.size)).into(),
        }
    }

    fn exact<'a>(&'a self, row: &'a LiveRow) -> Cow<'a, str> {
        match self {
            Self::Place => (&*row.title).into(),
            Self::Share => row.share.to_string().into(),
            Self::Bytes => row.bytes.to_string().into(),
            Self::Count => row.count.to_string().into(),
            Self::Largest => row.largest.first().map_or(0, |one| one.size).to_string().into(),
        }
    }
}

/// The rows whose place has `filter` in any case, in order.
pub(super) fn sorted(rows: &[LiveRow], filter: &str, order: SortOrder<LiveColumn>) -> Vec<usize> {
    let filter = filter.trim().to_lowercase();
    let mut sorted: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].title.to_lowercase().contains(&filter)).collect();
    let largest = |row: &LiveRow| row.largest.first().map_or(0, |one| one.size);
    sorted.sort_by(|a, b| {
        let (a, b) = (&rows[*a], &rows[*b]);
        let by_column = match order.column {
            LiveColumn::Place => ui::natural::order(&a.title, &b.title),
            LiveColumn::Share | LiveColumn::Bytes => a.bytes.cmp(&b.bytes),
            LiveColumn::Count => a.count.cmp(&b.count),
            LiveColumn::Largest => largest(a).cmp(&largest(b)),
        };
        if order.descending { by_column.reverse() } else { by_column }
    });
    sorted
}
