//! Slices side by side, as the table `slices` has them.

use super::dictionary::{self, Values};
use super::names::{NameColumn, Names};
use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef, Int64Array, StringArray, UInt32Array, UInt64Array};
use std::sync::Arc;
use trace_model::{Category, Row, SiteInfo};

pub(super) struct SliceColumns {
    start: Vec<i64>,
    end: Vec<i64>,
    track: Vec<u32>,
    lane: Vec<u32>,
    site: Vec<u32>,
    node: Vec<u32>,
    correlation: Vec<u32>,
    arg: Vec<u64>,
    args: StringBuilder,
}

/// A column of the table.
pub(super) enum Column<'a> {
    /// Values that are mostly different.
    Values(ArrayRef),
    /// Few different numbers.
    Numbers(&'a [u32]),
    /// A text of the row of a table; null where the row is none.
    Texts(&'a [u32], &'a NameColumn),
}

impl Column<'_> {
    /// For who reads it from memory.
    fn array(self) -> ArrayRef {
        match self {
            Column::Values(array) => array,
            Column::Numbers(numbers) => Arc::new(UInt32Array::from(numbers.to_vec())),
            Column::Texts(rows, named) => named.column(rows.iter().copied()),
        }
    }

    /// For a file: numbers of the values that repeat.
    pub(super) fn coded(
        &self,
        coder: &mut dictionary::Coder,
        descr: &parquet::schema::types::ColumnDescPtr,
    ) -> parquet::errors::Result<Option<dictionary::Chunk>> {
        match self {
            Column::Values(_) => Ok(None),
            Column::Numbers(numbers) => coder.column(descr, numbers.iter().copied(), Values::Numbers).map(Some),
            Column::Texts(rows, named) => {
                let numbers = rows.iter().map(|row| named.number(*row));
                coder.column(descr, numbers, Values::Texts(named.texts())).map(Some)
            }
        }
    }
}

impl SliceColumns {
    /// With room for `n` slices.
    pub(super) fn with_capacity(n: usize) -> SliceColumns {
        let (times, numbers) = (|| Vec::with_capacity(n), || Vec::with_capacity(n));
        SliceColumns {
            start: times(),
            end: times(),
            track: numbers(),
            lane: numbers(),
            site: numbers(),
            node: numbers(),
            correlation: numbers(),
            arg: Vec::with_capacity(n),
            args: StringBuilder::with_capacity(n, 0),
        }
    }

    pub(super) fn push(&mut self, track: u32, lane: u32, row: &Row, args: Option<&str>) {
        self.start.push(row.start);
        self.end.push(row.end);
        self.track.push(track);
        self.lane.push(lane);
        self.site.push(row.site.row());
        self.node.push(row.node);
        self.correlation.push(row.correlation);
        self.arg.push(row.arg);
        self.args.append_option(args);
    }

    /// The columns in the table's order, and a checksum over the rows, as [`digest`] finds it for what was read. To be asked
    /// once.
    pub(super) fn columns<'a>(&'a mut self, sites: &[SiteInfo], names: &'a Names) -> ([Column<'a>; 14], u32) {
        let args = self.args.finish();
        let SliceColumns { start, end, track, lane, site, node, correlation, arg, .. } = self;
        let sum = digest([start, end], [track, lane, site, node, correlation], arg, Some(&args));
        let category = |site: u32| sites.get(site as usize).map_or(Category::Other, |site| site.category);
        let of_row = |i: usize| step_and_arg(category(site[i]), correlation[i], arg[i]);
        let steps: UInt32Array = (0..site.len()).map(|i| of_row(i).0).collect();
        let numbers: UInt64Array = (0..site.len()).map(|i| of_row(i).1).collect::<Vec<u64>>().into();
        let durations: Int64Array =
            end.iter().zip(&*start).map(|(end, start)| end - start).collect::<Vec<i64>>().into();
        let columns = [
            Column::Values(Arc::new(Int64Array::from(std::mem::take(start)))),
            Column::Values(Arc::new(durations)),
            Column::Numbers(track),
            Column::Numbers(lane),
            Column::Texts(site, &names.site_names),
            Column::Texts(site, &names.site_categories),
            Column::Texts(node, &names.node_ops),
            Column::Texts(node, &names.node_names),
            Column::Texts(node, &names.node_devices),
            Column::Values(Arc::new(steps)),
            Column::Values(Arc::new(UInt32Array::from(std::mem::take(correlation)))),
            // A slice takes the lane of its depth, or where that is taken the next.
            Column::Numbers(lane),
            Column::Values(Arc::new(numbers)),
            Column::Values(Arc::new(args)),
        ];
        (columns, sum)
    }

    /// The columns as arrays.
    pub(super) fn arrays(mut self, sites: &[SiteInfo], names: &Names) -> Vec<ArrayRef> {
        self.columns(sites, names).0.into_iter().map(Column::array).collect()
    }
}

/// A checksum over slices side by side: begins and ends; tracks, lanes, sites, nodes and correlations; `arg`; arguments.
pub(super) fn digest(times: [&[i64]; 2], numbers: [&[u32]; 5], arg: &[u64], args: Option<&StringArray>) -> u32 {
    let of_times = times.into_iter().fold(0, |sum, part| crc32c::crc32c_append(sum, bytemuck::cast_slice(part)));
    let sum = numbers.into_iter().fold(of_times, |sum, part| crc32c::crc32c_append(sum, bytemuck::cast_slice(part)));
    let sum = crc32c::crc32c_append(sum, bytemuck::cast_slice(arg));
    let Some(args) = args.filter(|args| args.null_count() < args.len()) else { return sum };
    let offsets = args.value_offsets();
    let length = |i: usize| if args.is_null(i) { u32::MAX } else { (offsets[i + 1] - offsets[i]).cast_unsigned() };
    let lengths: Vec<u32> = (0..args.len()).map(length).collect();
    let sum = crc32c::crc32c_append(sum, bytemuck::cast_slice(&lengths));
    let text =
        offsets.first().zip(offsets.last()).and_then(|(from, to)| args.value_data().get(*from as usize..*to as usize));
    crc32c::crc32c_append(sum, text.unwrap_or_default())
}

/// How a slice's `correlation` and `arg` are reported as `step` and `arg`: an op's arg has both in one number.
fn step_and_arg(category: Category, correlation: u32, arg: u64) -> (Option<u32>, u64) {
    match category {
        Category::Op | Category::Shard => (Some((arg >> 32) as u32), arg & u64::from(u32::MAX)),
        Category::Step | Category::Wait => (Some(correlation), arg),
        _ => (None, arg),
    }
}

/// The inverse of [`step_and_arg`].
pub(super) fn whole_arg(category: Category, step: Option<u32>, arg: u64) -> u64 {
    match category {
        Category::Op | Category::Shard => u64::from(step.unwrap_or(0)) << 32 | arg & u64::from(u32::MAX),
        _ => arg,
    }
}
