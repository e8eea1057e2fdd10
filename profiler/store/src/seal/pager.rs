//! Loads row groups of a sealed trace and caches the most recently used ones, within a budget of bytes.

use super::checksums::{FilePart, read_part};
use super::columns::TableError;
use super::paged_group::{LaneRows, PagedGroup};
use super::resolver::Resolver;
use super::row_group::RowGroup;
use super::sidecar::Sidecar;
use crate::cache::Cache;
use arrow_array::RecordBatch;
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trace_model::{PageLoader, PagerStats, SliceDetails, SliceHeader, Warning, WarningKind};

/// Default budget for row groups in memory, bytes: about six million slices.
pub const DEFAULT_BUDGET: usize = 256 << 20;
/// Bytes of a slice in memory, without arguments.
const SLICE_BYTES: usize = size_of::<SliceHeader>() + size_of::<SliceDetails>();
/// Estimate of the bytes of a slice with its arguments, by which the trace is split into parts.
const PART_SLICE_BYTES: usize = 48;
/// Maximum number of page requests that are served before the picture is drawn again.
const MAX_LOADS_PER_CALL: usize = 4;

/// Maximum number of rows of a row group, which has to fit into one batch.
const MAX_GROUP_ROWS: usize = 1 << 20;

/// An open `slices.parquet`.
#[derive(Debug)]
pub(super) struct SlicesFile {
    pub(super) file: File,
    pub(super) metadata: ArrowReaderMetadata,
    /// The ranges of bytes of the row groups, with their checksums.
    pub(super) parts: Vec<FilePart>,
}

/// Reads row groups on demand. The lanes of a store share it.
pub struct Pager {
    file: SlicesFile,
    names: Resolver,
    sidecar: Arc<Sidecar>,
    lane_rows: LaneRows,
    cache: Mutex<Cache<u32, PagedGroup>>,
    /// Row groups that are damaged, and why.
    damaged_groups: Mutex<BTreeMap<u32, String>>,
    /// Row groups that a picture needed and that were not in memory.
    requests: Mutex<BTreeSet<u32>>,
    /// Grows whenever requested row groups were loaded.
    version: AtomicU64,
    /// Number of reads of row groups, failed ones included.
    loads: AtomicU64,
}

impl std::fmt::Debug for Pager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pager").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Pager {
    pub(super) fn new(file: SlicesFile, names: Resolver, sidecar: Arc<Sidecar>) -> Pager {
        let lane_rows = sidecar.lanes().iter().enumerate().map(|(row, lane)| ((lane.track, lane.lane), row as u32));
        Pager {
            lane_rows: lane_rows.collect(),
            file,
            names,
            sidecar,
            cache: Mutex::new(Cache::new(DEFAULT_BUDGET)),
            damaged_groups: Mutex::default(),
            requests: Mutex::default(),
            version: AtomicU64::new(0),
            loads: AtomicU64::new(0),
        }
    }

    /// Whether the budget has room for all row groups of a view. If not, drawing would evict what was just read.
    pub(super) fn has_room_for(&self, view: &Range<i64>) -> bool {
        let groups_in_view = self.sidecar.groups().iter().filter(|g| g.start < view.end && g.end >= view.start);
        let bytes: usize = groups_in_view.map(|g| g.rows as usize * SLICE_BYTES).sum();
        bytes <= self.cache.lock().budget()
    }

    /// Returns a row group if it is in memory; requests a missing one if `should_request`.
    pub(super) fn peek(&self, group: u32, should_request: bool) -> Option<Arc<PagedGroup>> {
        let cached = self.cache.lock().get(&group);
        if cached.is_none() && should_request && !self.damaged_groups.lock().contains_key(&group) {
            self.requests.lock().insert(group);
        }
        cached
    }

    /// Returns a row group, which is read if it is not in memory; `None` if the row group is damaged.
    pub(super) fn load(&self, group: u32) -> Option<Arc<PagedGroup>> {
        let cached = self.cache.lock().get(&group);
        if cached.is_some() || self.damaged_groups.lock().contains_key(&group) {
            return cached;
        }
        // The lock is not held: two threads may read the same group, which only costs time.
        let read = self.read(group);
        self.loads.fetch_add(1, Ordering::Relaxed);
        match read {
            Ok(read) => {
                let bytes = read.bytes();
                Some(self.cache.lock().insert(group, read, bytes))
            }
            Err(problem) => {
                self.damaged_groups.lock().insert(group, problem.to_string());
                None
            }
        }
    }

    fn read(&self, group: u32) -> Result<PagedGroup, TableError> {
        let rows = RowGroup::from_batch(&self.file.read(group as usize)?, &self.names)?;
        PagedGroup::from_rows(rows, &self.sidecar, &self.lane_rows, group)
    }

    pub(super) fn sidecar(&self) -> &Sidecar {
        &self.sidecar
    }
}

impl PageLoader for Pager {
    fn set_budget(&self, budget: usize) {
        self.cache.lock().set_budget(budget);
    }

    fn stats(&self) -> PagerStats {
        let cache = self.cache.lock();
        PagerStats { bytes: cache.bytes(), budget: cache.budget(), loads: self.loads.load(Ordering::Relaxed) }
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn load_requested(&self) -> bool {
        // Requests that are not served here are dropped: the next picture repeats those that it needs.
        let requests = std::mem::take(&mut *self.requests.lock());
        let mut has_loaded = false;
        for group in requests.into_iter().take(MAX_LOADS_PER_CALL) {
            has_loaded |= self.load(group).is_some();
        }
        self.version.fetch_add(u64::from(has_loaded), Ordering::Release);
        has_loaded
    }

    fn has_requests(&self) -> bool {
        !self.requests.lock().is_empty()
    }

    fn damage(&self) -> Option<Warning> {
        let damaged_groups = self.damaged_groups.lock();
        let (group, problem) = damaged_groups.first_key_value()?;
        let count = damaged_groups.len() as u64;
        let text = format!(
            "slices.parquet: {count} row groups cannot be read, their slices are missing (row group {group}: {problem})"
        );
        Some(Warning::new(WarningKind::Damage, "slices.parquet", count, text))
    }

    fn check_all(&self) {
        for (group, part) in (0..).zip(&self.file.parts) {
            if let Err(problem) = read_part(&self.file.file, *part) {
                self.damaged_groups.lock().insert(group, problem.to_string());
            }
        }
    }

    fn args(&self, args_id: u32) -> Option<String> {
        let groups = self.sidecar.groups();
        let group = groups.partition_point(|g| g.first_args <= args_id).checked_sub(1)?;
        self.load(group as u32)?.args(args_id).map(ToOwned::to_owned)
    }

    fn memory_bytes(&self) -> usize {
        self.cache.lock().bytes() + self.sidecar.memory_bytes()
    }

    fn part_starts(&self) -> Vec<i64> {
        let groups = self.sidecar.groups();
        let budget = self.cache.lock().budget();
        // A part may use half of the budget, since row groups of its neighbours are in memory too.
        let groups_per_part = (budget / 2 / (super::table::GROUP_ROWS * PART_SLICE_BYTES)).max(1);
        groups.iter().step_by(groups_per_part).map(|g| g.start).collect()
    }
}

impl SlicesFile {
    /// Reads and checks a row group.
    pub(super) fn read(&self, group: usize) -> Result<RecordBatch, TableError> {
        let part = *self.parts.get(group).ok_or(TableError::Rows("there is no such row group"))?;
        let bytes = FileRange { offset: part.offset, bytes: read_part(&self.file, part)? };
        let schema = self.metadata.parquet_schema();
        let is_all_null = |column: &ColumnChunkMetaData| {
            let nulls = column.statistics().and_then(Statistics::null_count_opt);
            column.column_path().string() == "args" && nulls == Some(column.num_values() as u64)
        };
        let columns = self.metadata.metadata().row_group(group).columns();
        let projection =
            columns.iter().enumerate().filter(|(_, c)| c.column_path().string() != "depth" && !is_all_null(c));
        let mask = ProjectionMask::leaves(schema, projection.map(|(i, _)| i));
        let n = usize::try_from(self.metadata.metadata().row_group(group).num_rows()).unwrap_or(0);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(n.clamp(1, MAX_GROUP_ROWS))
            .build()?;
        let mut batches = reader.collect::<Result<Vec<RecordBatch>, _>>()?;
        match (batches.pop(), batches.is_empty()) {
            (Some(batch), true) => Ok(batch),
            _ => Err(TableError::Rows("the row group is empty or too large")),
        }
    }
}

/// A range of a file's bytes in memory, which is addressed by offsets in the file.
struct FileRange {
    offset: u64,
    bytes: Bytes,
}

impl Length for FileRange {
    fn len(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl ChunkReader for FileRange {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let begin = start.checked_sub(self.offset).and_then(|begin| usize::try_from(begin).ok());
        let begin = begin.filter(|begin| *begin <= self.bytes.len()).ok_or_else(outside_error)?;
        Ok(bytes::Buf::reader(self.bytes.slice(begin..)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let begin =
            start.checked_sub(self.offset).and_then(|begin| usize::try_from(begin).ok()).ok_or_else(outside_error)?;
        let end = begin.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or_else(outside_error)?;
        Ok(self.bytes.slice(begin..end))
    }
}

fn outside_error() -> ParquetError {
    ParquetError::EOF("a column is outside of its row group".to_owned())
}
