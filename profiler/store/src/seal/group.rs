//! A row group in memory: its slices lane by lane.

use super::columns::{Ints, TableError, Texts, text};
use super::resolver::Resolver;
use super::sidecar::Sidecar;
use super::slice_columns::{digest, whole_arg};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use std::ops::Range;
use trace_model::lod::Columns;
use trace_model::{NO_ARGS, Row, Site, SliceHeader};

/// Rows are ordered by lane (the sidecar's), then by start.
#[derive(Debug)]
pub(crate) struct Group {
    start: Vec<i64>,
    end: Vec<i64>,
    site: Vec<Site>,
    node: Vec<u32>,
    /// What drawing does not need.
    details: Vec<Details>,
    /// Row in the file of each slice with arguments, and the column.
    args: Option<(Vec<u32>, ArrayRef)>,
    first_args: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Details {
    arg: u64,
    correlation: u32,
    args: u32,
}

/// A row group as it is in the file.
pub(super) struct Decoded {
    pub(super) track: Vec<u32>,
    pub(super) lane: Vec<u32>,
    pub(super) start: Vec<i64>,
    pub(super) end: Vec<i64>,
    site: Vec<Site>,
    node: Vec<u32>,
    correlation: Vec<u32>,
    arg: Vec<u64>,
    args: Option<ArrayRef>,
}

impl Decoded {
    /// Reads the columns.
    pub(super) fn of(batch: &RecordBatch, names: &Resolver) -> Result<Decoded, TableError> {
        let n = batch.num_rows();
        let (start, dur) = (Ints::of(batch, "ts_ns")?.or_zero(), Ints::of(batch, "dur_ns")?.or_zero());
        let (step, numbers) = (Ints::of(batch, "step")?, Ints::of(batch, "arg")?.or_zero());
        let sites = names.sites(&Texts::of(batch, "category")?, &Texts::of(batch, "name")?, n);
        let (op, node) = (Texts::of(batch, "op")?, Texts::of(batch, "node")?);
        let whole_arg = |i: usize, arg: i64| whole_arg(sites[i].1, step.get(i).map(|step| step as u32), arg as u64);
        Ok(Decoded {
            track: Ints::of(batch, "track_id")?.ids(),
            lane: Ints::of(batch, "lane")?.ids(),
            end: start.iter().zip(dur).map(|(start, dur)| start.saturating_add(dur.max(0))).collect(),
            start,
            node: names.nodes(&op, &node, &Texts::of(batch, "device")?, n),
            correlation: Ints::of(batch, "correlation")?.or_zero().into_iter().map(|v| v as u32).collect(),
            arg: numbers.into_iter().enumerate().map(|(i, arg)| whole_arg(i, arg)).collect(),
            site: sites.into_iter().map(|(site, _)| site).collect(),
            args: batch.column_by_name("args").filter(|args| args.null_count() < n).cloned(),
        })
    }

    /// A checksum over the rows.
    pub(super) fn digest(&self) -> u32 {
        let Decoded { track, lane, start, end, site, node, correlation, arg, args } = self;
        let args = args.as_ref().and_then(|args| args.as_string_opt());
        let site: Vec<u32> = site.iter().map(|site| site.row()).collect();
        digest([start, end], [track, lane, &site, node, correlation], arg, args)
    }

    /// What drawing needs of a row.
    pub(super) fn header(&self, i: usize) -> SliceHeader {
        SliceHeader { start: self.start[i], end: self.end[i], site: self.site[i], node: self.node[i] }
    }

    /// Whether a row has arguments.
    pub(super) fn has_args(&self, i: usize) -> bool {
        self.args.as_ref().is_some_and(|args| args.is_valid(i))
    }
}

impl Group {
    /// Orders by lane; refuses what the sidecar does not expect.
    pub(super) fn of(decoded: Decoded, sidecar: &Sidecar, lanes: &LaneRows, group: u32) -> Result<Group, TableError> {
        let wrong = TableError::Rows("they are not those that the sidecar was made from");
        let n = decoded.start.len();
        let mut counts = vec![0u32; sidecar.lanes().len()];
        let mut lane_rows = Vec::with_capacity(n);
        for key in decoded.track.iter().copied().zip(decoded.lane.iter().copied()) {
            let Some(row) = lanes.get(&key) else { return Err(wrong) };
            counts[*row as usize] += 1;
            lane_rows.push(*row);
        }
        let mut offset = 0;
        for (row, count) in counts.iter_mut().enumerate() {
            let n = std::mem::replace(count, offset);
            if n > 0 && !is_expected(sidecar, row, group, offset, n) {
                return Err(wrong);
            }
            offset += n;
        }
        let first_args = sidecar.groups().get(group as usize).map_or(NO_ARGS, |g| g.first_args);
        let (mut start, mut end, mut site, mut node) = (vec![0; n], vec![0; n], vec![Site::default(); n], vec![0; n]);
        let mut details = vec![Details::default(); n];
        let mut next_args = first_args;
        for (i, lane_row) in lane_rows.iter().enumerate() {
            let count = &mut counts[*lane_row as usize];
            let at = *count as usize;
            (start[at], end[at], site[at], node[at]) =
                (decoded.start[i], decoded.end[i], decoded.site[i], decoded.node[i]);
            let has_args = decoded.has_args(i);
            let args = if has_args { next_args } else { NO_ARGS };
            next_args = next_args.saturating_add(u32::from(has_args));
            details[at] = Details { arg: decoded.arg[i], correlation: decoded.correlation[i], args };
            *count += 1;
        }
        let with_args =
            |args: ArrayRef| ((0..args.len() as u32).filter(|i| args.is_valid(*i as usize)).collect(), args);
        Ok(Group { start, end, site, node, details, args: decoded.args.map(with_args), first_args })
    }

    /// The slice at an offset.
    #[inline]
    pub(super) fn row(&self, offset: usize) -> Option<Row> {
        let Details { arg, correlation, args } = *self.details.get(offset)?;
        let (start, end, site, node) = (self.start[offset], self.end[offset], self.site[offset], self.node[offset]);
        Some(Row { start, end, site, node, correlation, arg, args })
    }

    /// Slices side by side, as drawing needs them.
    #[inline]
    pub(super) fn columns(&self, range: Range<usize>) -> Option<Columns<'_>> {
        Some(Columns {
            start: self.start.get(range.clone())?,
            end: self.end.get(range.clone())?,
            site: self.site.get(range.clone())?,
            node: self.node.get(range)?,
        })
    }

    /// The arguments with a number.
    pub(super) fn args(&self, number: u32) -> Option<&str> {
        let (rows, column) = self.args.as_ref()?;
        text(column, *rows.get(number.checked_sub(self.first_args)? as usize)? as usize)
    }

    pub(super) fn bytes(&self) -> usize {
        let args = self.args.as_ref().map_or(0, |(rows, column)| rows.len() * 4 + column.get_array_memory_size());
        self.details.len() * (2 * size_of::<i64>() + 2 * size_of::<u32>() + size_of::<Details>()) + args
    }
}

/// Row in the sidecar of each (track, lane).
pub(super) type LaneRows = rustc_hash::FxHashMap<(u32, u32), u32>;

fn is_expected(sidecar: &Sidecar, lane: usize, group: u32, offset: u32, n: u32) -> bool {
    let Some(entry) = sidecar.lanes().get(lane) else { return false };
    let pieces = sidecar.pieces(entry);
    let Ok(i) = pieces.binary_search_by_key(&group, |piece| piece.group) else { return false };
    let until = pieces.get(i + 1).map_or(entry.n, |next| next.first);
    pieces[i].offset == offset && until.checked_sub(pieces[i].first) == Some(u64::from(n))
}
