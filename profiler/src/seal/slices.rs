//! Writes `slices.parquet` and the sidecar from slices that come roughly in order of time.
//!
//! The order of the file is by start within each row group, and by start as far as 524,288 slices of waiting can make
//! it so; a slice that comes later still (an outer one is known at its end) goes into the next row group. Each lane's
//! slices stay in their order, whatever the others do, since they come in it.

use super::SealError;
use super::checksums::Part;
use super::file::TableFile;
use super::names::Names;
use super::pyramids::Pyramids;
use super::schema::{GROUP_ROWS, SLICES};
use crate::store::{Category, Row, SiteInfo, Store};
use arrow_array::{ArrayRef, Int64Array, StringArray, UInt32Array, UInt64Array};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

/// Row groups' worth of slices that wait for their place.
const WINDOW: usize = 4;

/// How the files are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Slices of a row group.
    pub(super) group_rows: usize,
    /// Slices of sparse lanes that the sidecar has at least.
    pub(super) min_briefs: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { group_rows: GROUP_ROWS, min_briefs: 1 << 16 }
    }
}

/// A slice with its place.
pub(super) struct Placed {
    pub(super) track: u32,
    pub(super) lane: u32,
    pub(super) row: Row,
    pub(super) args: Option<Box<str>>,
}

/// What the two files became.
pub(super) struct Written {
    pub(super) slices: Vec<Part>,
    pub(super) sidecar_bytes: u64,
    /// Of each row group a checksum over its rows, to compare with what is read back.
    pub(super) digests: Vec<u32>,
    pub(super) rows: u64,
}

/// See the module's notes.
pub(super) struct SliceFile {
    file: TableFile,
    pyramids: Pyramids<BufWriter<File>>,
    window: Vec<Placed>,
    digests: Vec<u32>,
    rows: u64,
    group_rows: usize,
}

impl SliceFile {
    pub(super) fn create(folder: &Path, layout: Layout) -> Result<SliceFile, SealError> {
        let path = folder.join(super::SIDECAR);
        let sidecar = File::create_new(&path).map_err(|e| SealError::Io(path.clone(), e))?;
        let sidecar = BufWriter::with_capacity(1 << 17, sidecar);
        Ok(SliceFile {
            file: TableFile::create(folder, SLICES)?,
            pyramids: Pyramids::new(sidecar, layout.min_briefs).map_err(|e| SealError::Io(path, e))?,
            window: Vec::new(),
            digests: Vec::new(),
            rows: 0,
            group_rows: layout.group_rows,
        })
    }

    /// The next slice of a lane.
    pub(super) fn push(&mut self, track: u32, lane: u32, row: Row, args: Option<&str>) {
        self.window.push(Placed { track, lane, row, args: args.map(Into::into) });
    }

    /// Writes what need not wait any more.
    pub(super) fn write_ready(&mut self, store: &Store, names: &Names) -> Result<(), SealError> {
        if self.window.len() >= WINDOW * self.group_rows {
            self.window.sort_by_key(|slice| slice.row.start);
            while self.window.len() >= (WINDOW / 2 + 1) * self.group_rows {
                self.write_group(self.group_rows, store, names)?;
            }
        }
        Ok(())
    }

    /// Writes the first `n` slices of the window as a row group.
    fn write_group(&mut self, n: usize, store: &Store, names: &Names) -> Result<(), SealError> {
        let group = &self.window[..n];
        for Placed { track, lane, row, args } in group {
            let pushed = self.pyramids.push(*track, *lane, row.brief(), args.is_some());
            pushed.map_err(|e| SealError::Io(super::SIDECAR.into(), e))?;
        }
        self.pyramids.end_group();
        self.digests.push(digest(group.iter().map(|s| (s.track, s.lane, &s.row, s.args.as_deref()))));
        self.file.write(columns(group, store.sites(), names))?;
        self.file.end_group()?;
        self.rows += n as u64;
        self.window.drain(..n);
        Ok(())
    }

    /// Writes the rest and waits until both files are on disk.
    pub(super) fn finish(mut self, store: &Store, names: &Names) -> Result<Written, SealError> {
        self.window.sort_by_key(|slice| slice.row.start);
        while !self.window.is_empty() {
            self.write_group(self.window.len().min(self.group_rows), store, names)?;
        }
        let slices = self.file.finish()?;
        let (len, crc) = slices.last().map_or((0, 0), |footer| (footer.from + footer.len, footer.crc));
        let failed = |e| SealError::Io(super::SIDECAR.into(), e);
        let sidecar = self.pyramids.finish(len, crc).map_err(failed)?;
        let sidecar = sidecar.into_inner().map_err(|e| failed(e.into_error()))?;
        sidecar.sync_all().map_err(failed)?;
        let sidecar_bytes = sidecar.metadata().map_err(failed)?.len();
        Ok(Written { slices, sidecar_bytes, digests: self.digests, rows: self.rows })
    }
}

/// A checksum over rows, lane by lane independent of how lanes are mixed.
pub(super) fn digest<'a>(rows: impl Iterator<Item = (u32, u32, &'a Row, Option<&'a str>)>) -> u32 {
    rows.fold(0, |sum: u32, (track, lane, row, args)| {
        let mut bytes = [0; 44];
        for (at, value) in [(0, row.start as u64), (8, row.end as u64), (16, row.arg)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [(24, track), (28, lane), (32, row.site), (36, row.node), (40, row.correlation)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes);
        sum.wrapping_add(args.map_or(crc, |args| crc32c::crc32c_append(crc, args.as_bytes())))
    })
}

/// How a slice's `correlation` and `arg` are told as `step` and `arg`: an op's arg has both in one number.
pub(super) fn step_and_arg(category: Category, row: &Row) -> (Option<u32>, u64) {
    match category {
        Category::Op | Category::Shard => (Some((row.arg >> 32) as u32), row.arg & u64::from(u32::MAX)),
        Category::Step | Category::Wait => (Some(row.correlation), row.arg),
        _ => (None, row.arg),
    }
}

/// The inverse of [`step_and_arg`].
pub(super) fn whole_arg(category: Category, step: Option<u32>, arg: u64) -> u64 {
    match category {
        Category::Op | Category::Shard => u64::from(step.unwrap_or(0)) << 32 | arg & u64::from(u32::MAX),
        _ => arg,
    }
}

pub(super) fn columns(group: &[Placed], sites: &[SiteInfo], names: &Names) -> Vec<ArrayRef> {
    let u32s = |f: fn(&Placed) -> u32| -> ArrayRef { Arc::new(UInt32Array::from_iter_values(group.iter().map(f))) };
    let i64s = |f: fn(&Placed) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(group.iter().map(f))) };
    let (steps, args): (Vec<Option<u32>>, Vec<u64>) = group
        .iter()
        .map(|s| step_and_arg(sites.get(s.row.site as usize).map_or(Category::Other, |site| site.category), &s.row))
        .unzip();
    let [category, name] = names.sites(group.iter().map(|s| s.row.site));
    let [op, node, device] = names.nodes(group.iter().map(|s| s.row.node));
    vec![
        i64s(|s| s.row.start),
        i64s(|s| s.row.end - s.row.start),
        u32s(|s| s.track),
        u32s(|s| s.lane),
        name,
        category,
        op,
        node,
        device,
        Arc::new(UInt32Array::from(steps)),
        u32s(|s| s.row.correlation),
        // A slice takes the lane of its depth, or where that is taken the next.
        u32s(|s| s.lane),
        Arc::new(UInt64Array::from(args)),
        Arc::new(group.iter().map(|s| s.args.as_deref()).collect::<StringArray>()),
    ]
}
