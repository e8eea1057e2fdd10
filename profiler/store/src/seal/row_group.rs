//! A row group of `slices.parquet`: its slices in the order of the file, converted to and from the table's columns.

use super::columns::{Ints, TableError, Texts};
use super::dictionary::{Chunk, DictionaryEncoder, Values};
use super::names::{NameColumn, Names};
use super::resolver::Resolver;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use std::sync::Arc;
use trace_model::{Category, NO_ARGS, NO_STEP, Site, SiteInfo, SliceColumns, SliceDetails, SliceHeader, SliceRef};

/// Slices in the order of the file. Their `args` are [`NO_ARGS`], since the texts of arguments are in a column.
#[derive(Default)]
pub(super) struct RowGroup {
    pub(super) track: Vec<u32>,
    pub(super) lane: Vec<u32>,
    pub(super) slices: SliceColumns,
    /// Texts of arguments; `None` if no slice has any.
    pub(super) args: Option<ArrayRef>,
}

/// A column of the table, in the form that is cheapest to encode.
pub(super) enum Column<'a> {
    /// Mostly distinct values.
    Values(ArrayRef),
    /// Few distinct numbers.
    Numbers(&'a [u32]),
    /// For each row, a text of its site.
    Sites(&'a [Site], &'a NameColumn),
    /// For each row, a text of its node; null where it has no node.
    Nodes(&'a [u32], &'a NameColumn),
}

impl Column<'_> {
    /// Returns the column as an Arrow array.
    fn array(self) -> ArrayRef {
        match self {
            Column::Values(array) => array,
            Column::Numbers(numbers) => Arc::new(UInt32Array::from(numbers.to_vec())),
            Column::Sites(sites, names) => names.column(sites.iter().map(|site| site.row())),
            Column::Nodes(rows, names) => names.column(rows.iter().copied()),
        }
    }

    /// Encodes the column with a dictionary; `None` for [`Column::Values`], which Arrow's writer encodes.
    pub(super) fn encode(
        &self,
        encoder: &mut DictionaryEncoder,
        descr: &parquet::schema::types::ColumnDescPtr,
    ) -> parquet::errors::Result<Option<Chunk>> {
        let chunk = match self {
            Column::Values(_) => return Ok(None),
            Column::Numbers(numbers) => encoder.encode(descr, numbers.iter().copied(), Values::Numbers),
            Column::Sites(sites, names) => {
                encoder.encode(descr, sites.iter().map(|site| names.number(site.row())), Values::Texts(names.texts()))
            }
            Column::Nodes(rows, names) => {
                encoder.encode(descr, rows.iter().map(|row| names.number(*row)), Values::Texts(names.texts()))
            }
        };
        chunk.map(Some)
    }
}

impl RowGroup {
    /// Returns an empty row group with room for `n` slices.
    pub(super) fn with_capacity(n: usize) -> RowGroup {
        let (track, lane) = (Vec::with_capacity(n), Vec::with_capacity(n));
        RowGroup { track, lane, slices: SliceColumns::with_capacity(n), args: None }
    }

    /// Appends a slice of a store, whose header is `header`.
    pub(super) fn push(&mut self, slice: &SliceRef, header: SliceHeader) {
        self.track.push(slice.id.track);
        self.lane.push(slice.id.lane);
        self.slices.push(header, SliceDetails { args: NO_ARGS, ..SliceDetails::from_event(slice) });
    }

    /// Reads a row group from its columns.
    pub(super) fn from_batch(batch: &RecordBatch, names: &Resolver) -> Result<RowGroup, TableError> {
        let n = batch.num_rows();
        let (start, dur) = (Ints::open(batch, "ts_ns")?.or_zero(), Ints::open(batch, "dur_ns")?.or_zero());
        let (step, arg) = (Ints::open(batch, "step")?, Ints::open(batch, "arg")?.or_zero());
        let correlation = Ints::open(batch, "correlation")?.or_zero();
        let sites = names.sites(&Texts::open(batch, "category")?, &Texts::open(batch, "name")?, n);
        let (op, node) = (Texts::open(batch, "op")?, Texts::open(batch, "node")?);
        let details = |i: usize| {
            let step = step.get(i).map(|step| step as u32);
            let arg = join_arg(sites[i].1, step, arg[i].cast_unsigned());
            SliceDetails { arg, correlation: correlation[i] as u32, args: NO_ARGS }
        };
        Ok(RowGroup {
            track: Ints::open(batch, "track_id")?.ids(),
            lane: Ints::open(batch, "lane")?.ids(),
            slices: SliceColumns {
                end: start.iter().zip(dur).map(|(start, dur)| start.saturating_add(dur.max(0))).collect(),
                start,
                node: names.nodes(&op, &node, &Texts::open(batch, "device")?, n),
                details: (0..n).map(details).collect(),
                site: sites.into_iter().map(|(site, _)| site).collect(),
            },
            args: batch.column_by_name("args").filter(|args| args.null_count() < n).cloned(),
        })
    }

    /// Whether a slice has arguments.
    pub(super) fn has_args(&self, i: usize) -> bool {
        self.args.as_ref().is_some_and(|args| args.is_valid(i))
    }

    /// Computes a checksum over slices and arguments.
    pub(super) fn checksum(&self) -> u32 {
        let parts = [bytemuck::cast_slice(&self.track), bytemuck::cast_slice(&self.lane)];
        let sum = parts.into_iter().fold(self.slices.checksum(), crc32c::crc32c_append);
        let args: Option<&StringArray> = self.args.as_ref().and_then(|args| args.as_string_opt());
        let Some(args) = args.filter(|args| args.null_count() < args.len()) else { return sum };
        let offsets = args.value_offsets();
        let length = |i: usize| if args.is_null(i) { u32::MAX } else { (offsets[i + 1] - offsets[i]).cast_unsigned() };
        let lengths: Vec<u32> = (0..args.len()).map(length).collect();
        let sum = crc32c::crc32c_append(sum, bytemuck::cast_slice(&lengths));
        let range = offsets.first().zip(offsets.last()).map(|(from, to)| *from as usize..*to as usize);
        crc32c::crc32c_append(sum, range.and_then(|range| args.value_data().get(range)).unwrap_or_default())
    }

    /// Must be called only once, since it moves `start` and `args` out.
    pub(super) fn columns<'a>(&'a mut self, sites: &[SiteInfo], names: &'a Names) -> [Column<'a>; 14] {
        let RowGroup { track, lane, slices: SliceColumns { start, end, site, node, details }, args } = self;
        let category = |site: Site| sites.get(site.row() as usize).map_or(Category::Other, |site| site.category);
        let split = |(site, details): (&Site, &SliceDetails)| step_and_arg(category(*site), details);
        let steps: UInt32Array = site.iter().zip(&*details).map(|row| split(row).0).collect();
        let arg_values = UInt64Array::from_iter_values(site.iter().zip(&*details).map(|row| split(row).1));
        let correlations = UInt32Array::from_iter_values(details.iter().map(|details| details.correlation));
        let durations = Int64Array::from_iter_values(end.iter().zip(&*start).map(|(end, start)| end - start));
        let args = args.take().unwrap_or_else(|| Arc::new(StringArray::new_null(start.len())));
        [
            Column::Values(Arc::new(Int64Array::from(std::mem::take(start)))),
            Column::Values(Arc::new(durations)),
            Column::Numbers(track),
            Column::Numbers(lane),
            Column::Sites(site, &names.site_names),
            Column::Sites(site, &names.site_categories),
            Column::Nodes(node, &names.node_ops),
            Column::Nodes(node, &names.node_names),
            Column::Nodes(node, &names.node_devices),
            Column::Values(Arc::new(steps)),
            Column::Values(Arc::new(correlations)),
            // `depth`: a slice is on the lane of its depth, or on a later lane if that lane was occupied.
            Column::Numbers(lane),
            Column::Values(Arc::new(arg_values)),
            Column::Values(args),
        ]
    }

    /// Returns the columns as arrays.
    pub(super) fn arrays(mut self, sites: &[SiteInfo], names: &Names) -> Vec<ArrayRef> {
        self.columns(sites, names).into_iter().map(Column::array).collect()
    }
}

/// Returns the columns `step` and `arg` of a slice. The step of an op is in the upper 32 bits of `arg`, the step of a
/// step slice is its `correlation`.
fn step_and_arg(category: Category, details: &SliceDetails) -> (Option<u32>, u64) {
    let SliceDetails { arg, correlation, .. } = *details;
    match category {
        Category::Op | Category::Shard => {
            (Some((arg >> 32) as u32).filter(|step| *step != NO_STEP), arg & u64::from(u32::MAX))
        }
        Category::Step | Category::Wait => (Some(correlation), arg),
        _ => (None, arg),
    }
}

/// Returns a slice's `arg` from the two columns: the inverse of [`step_and_arg`].
pub(super) fn join_arg(category: Category, step: Option<u32>, arg: u64) -> u64 {
    match category {
        Category::Op | Category::Shard => u64::from(step.unwrap_or(NO_STEP)) << 32 | arg & u64::from(u32::MAX),
        _ => arg,
    }
}
