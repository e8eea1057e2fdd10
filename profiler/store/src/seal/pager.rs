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
pub const BUDGET: usize = 256 << 20;
/// Bytes of a slice in memory, without arguments.
const SLICE_BYTES: usize = size_of::<SliceHeader>() + size_of::<SliceDetails>();
/// Bytes of a slice in the size of a part of the trace: [`SLICE_BYTES`], and some for arguments.
const PART_SLICE_BYTES: usize = 48;
/// Page requests that are served before the picture is drawn again.
const REQUESTS_AT_A_TIME: usize = 4;

/// Rows of a row group, at most: one batch has to hold it.
const MAX_GROUP_ROWS: usize = 1 << 20;

/// An open `slices.parquet`.
#[derive(Debug)]
pub(super) struct SlicesFile {
    pub(super) file: File,
    pub(super) metadata: ArrowReaderMetadata,
    /// The bytes of each row group, with their checksum.
    pub(super) parts: Vec<FilePart>,
}

/// Reads row groups when they are needed; shared by the lanes of a store.
pub struct Pager {
    file: SlicesFile,
    names: Resolver,
    sidecar: Arc<Sidecar>,
    lanes: LaneRows,
    cache: Mutex<Cache<u32, PagedGroup>>,
    /// Row groups that are damaged, and why.
    damaged: Mutex<BTreeMap<u32, String>>,
    /// Row groups that were needed for a picture and not in memory.
    requests: Mutex<BTreeSet<u32>>,
    /// Grows when requested row groups were loaded.
    version: AtomicU64,
    loads: AtomicU64,
}

impl std::fmt::Debug for Pager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pager").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Pager {
    pub(super) fn new(file: SlicesFile, names: Resolver, sidecar: Arc<Sidecar>) -> Pager {
        let lanes = sidecar.lanes().iter().enumerate().map(|(row, lane)| ((lane.track, lane.lane), row as u32));
        Pager {
            lanes: lanes.collect(),
            file,
            names,
            sidecar,
            cache: Mutex::new(Cache::new(BUDGET)),
            damaged: Mutex::default(),
            requests: Mutex::default(),
            version: AtomicU64::new(0),
            loads: AtomicU64::new(0),
        }
    }

    /// Whether all row groups of a view fit into the budget together: else drawing would evict what it has just read.
    pub(super) fn has_room_for(&self, view: &Range<i64>) -> bool {
        let shown = self.sidecar.groups().iter().filter(|g| g.start < view.end && g.end >= view.start);
        let bytes: usize = shown.map(|g| g.rows as usize * SLICE_BYTES).sum();
        bytes <= self.cache.lock().budget()
    }

    /// A row group, if it is in memory; else it is requested if `requests` says so.
    pub(super) fn peek(&self, group: u32, requests: bool) -> Option<Arc<PagedGroup>> {
        let found = self.cache.lock().get(&group);
        if found.is_none() && requests && !self.damaged.lock().contains_key(&group) {
            self.requests.lock().insert(group);
        }
        found
    }

    /// A row group, read if it is not in memory; `None` where it is damaged.
    pub(super) fn load(&self, group: u32) -> Option<Arc<PagedGroup>> {
        let found = self.cache.lock().get(&group);
        if found.is_some() || self.damaged.lock().contains_key(&group) {
            return found;
        }
        // Without the lock: two threads may read the same group, which costs time only.
        let read = self.read(group);
        self.loads.fetch_add(1, Ordering::Relaxed);
        match read {
            Ok(read) => {
                let bytes = read.bytes();
                Some(self.cache.lock().insert(group, read, bytes))
            }
            Err(problem) => {
                self.damaged.lock().insert(group, problem.to_string());
                None
            }
        }
    }

    fn read(&self, group: u32) -> Result<PagedGroup, TableError> {
        let rows = RowGroup::of(&self.file.read(group as usize)?, &self.names)?;
        PagedGroup::of(rows, &self.sidecar, &self.lanes, group)
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
        // The next picture requests again what is not served here, if it still needs it.
        let requests = std::mem::take(&mut *self.requests.lock());
        let mut has_more = false;
        for group in requests.into_iter().take(REQUESTS_AT_A_TIME) {
            has_more |= self.load(group).is_some();
        }
        self.version.fetch_add(u64::from(has_more), Ordering::Release);
        has_more
    }

    fn has_requests(&self) -> bool {
        !self.requests.lock().is_empty()
    }

    fn damage(&self) -> Option<Warning> {
        let damaged = self.damaged.lock();
        let (group, problem) = damaged.first_key_value()?;
        let count = damaged.len() as u64;
        let text = format!(
            "slices.parquet: {count} row groups cannot be read, their slices are missing (row group {group}: {problem})"
        );
        Some(Warning::new(WarningKind::Damage, "slices.parquet", count, text))
    }

    fn check_all(&self) {
        for (group, part) in (0..).zip(&self.file.parts) {
            if let Err(problem) = read_part(&self.file.file, *part) {
                self.damaged.lock().insert(group, problem.to_string());
            }
        }
    }

    fn args(&self, number: u32) -> Option<String> {
        let groups = self.sidecar.groups();
        let group = groups.partition_point(|g| g.first_args <= number).checked_sub(1)?;
        self.load(group as u32)?.args(number).map(ToOwned::to_owned)
    }

    fn memory_bytes(&self) -> usize {
        self.cache.lock().bytes() + self.sidecar.memory_bytes()
    }

    fn part_starts(&self) -> Vec<i64> {
        let groups = self.sidecar.groups();
        let budget = self.cache.lock().budget();
        // Half of the budget: row groups of the parts before and after are in memory too.
        let groups_per_part = (budget / 2 / (super::table::GROUP_ROWS * PART_SLICE_BYTES)).max(1);
        groups.iter().step_by(groups_per_part).map(|g| g.start).collect()
    }
}

impl SlicesFile {
    /// Reads and checks a row group.
    pub(super) fn read(&self, group: usize) -> Result<RecordBatch, TableError> {
        let part = *self.parts.get(group).ok_or(TableError::Rows("there is no such row group"))?;
        let bytes = FileRange { from: part.from, bytes: read_part(&self.file, part)? };
        let schema = self.metadata.parquet_schema();
        let all_null = |column: &ColumnChunkMetaData| {
            let nulls = column.statistics().and_then(Statistics::null_count_opt);
            column.column_path().string() == "args" && nulls == Some(column.num_values() as u64)
        };
        let columns = self.metadata.metadata().row_group(group).columns();
        let projection =
            columns.iter().enumerate().filter(|(_, c)| c.column_path().string() != "depth" && !all_null(c));
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

/// A range of a file's bytes in memory, which is read at the file's offsets.
struct FileRange {
    from: u64,
    bytes: Bytes,
}

impl Length for FileRange {
    fn len(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

impl ChunkReader for FileRange {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let begin = start.checked_sub(self.from).and_then(|begin| usize::try_from(begin).ok());
        let begin = begin.filter(|begin| *begin <= self.bytes.len()).ok_or_else(outside)?;
        Ok(bytes::Buf::reader(self.bytes.slice(begin..)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let begin = start.checked_sub(self.from).and_then(|begin| usize::try_from(begin).ok()).ok_or_else(outside)?;
        let end = begin.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or_else(outside)?;
        Ok(self.bytes.slice(begin..end))
    }
}

fn outside() -> ParquetError {
    ParquetError::EOF("a column is outside of its row group".to_owned())
}
