//! Writes `slices.parquet` and the sidecar from slices that are pushed roughly in order of time.
//!
//! Each row group is ordered by start. Across row groups the order is by start as far as a window of 524,288 slices can
//! sort them: a slice that is pushed later still (an outer slice is known at its end) goes into the next row group. The
//! slices of one lane are pushed in order of their starts, and keep that order in the file.

use super::SealError;
use super::checksums;
use super::names::Names;
use super::pyramids::Pyramids;
use super::row_group::RowGroup;
use super::row_group_writer::RowGroupWriter;
use super::sidecar::SIDECAR;
use super::table::GROUP_ROWS;
use crate::store::Store;
use arrow_array::builder::StringBuilder;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use trace_model::radix::KeyedRow;
use trace_model::{ArgsReader, Event, NO_ARGS, SliceHeader, SliceRef, radix};

/// Row groups that the window holds before slices are written.
const WINDOW_GROUPS: usize = 4;
/// Row groups that the window holds after slices were written, at least.
const RETAINED_GROUPS: usize = 2;

/// How the files are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Slices of a row group.
    pub(super) group_rows: usize,
    /// Headers that the sidecar may always have.
    pub(super) min_headers: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { group_rows: GROUP_ROWS, min_headers: 1 << 16 }
    }
}

/// Slices that are not written yet. Their `args` are rows of the texts in the window, or of the store that is written.
#[derive(Default)]
struct Window {
    slices: Vec<SliceRef>,
    /// The texts one after another, and the end of each.
    text: String,
    ends: Vec<usize>,
}

impl Window {
    fn push(&mut self, slice: SliceRef, args: Option<&str>) {
        let n_texts = self.ends.len() as u32;
        let event = Event { args: if args.is_some() { n_texts } else { NO_ARGS }, ..slice.event };
        self.slices.push(SliceRef { event, ..slice });
        if let Some(args) = args {
            self.text.push_str(args);
            self.ends.push(self.text.len());
        }
    }

    fn args(&self, row: u32) -> Option<&str> {
        let end = *self.ends.get(row as usize)?;
        let start = row.checked_sub(1).map_or(0, |previous| self.ends[previous as usize]);
        self.text.get(start..end)
    }

    fn clear(&mut self) {
        self.slices.clear();
        self.text.clear();
        self.ends.clear();
    }
}

/// The reader of a store's arguments; `None` if slices are streamed, whose arguments are in the window.
pub(super) type MaybeReader<'r, 'a> = Option<&'r mut ArgsReader<'a>>;

/// What was written to the two files.
pub(super) struct WrittenFiles {
    pub(super) slices: Vec<checksums::FilePart>,
    pub(super) sidecar_bytes: u64,
    /// A checksum over the rows of each row group, to compare with what is read back.
    pub(super) checksums: Vec<u32>,
    pub(super) rows: u64,
}

pub(super) struct SliceWriter {
    file: RowGroupWriter,
    pyramids: Pyramids<BufWriter<File>>,
    window: Window,
    /// Rows of the window, ordered by start.
    order: Vec<KeyedRow>,
    /// Reused buffers.
    spare: (Vec<KeyedRow>, Window),
    checksums: Vec<u32>,
    rows: u64,
    group_rows: usize,
}

impl SliceWriter {
    pub(super) fn create(folder: &Path, layout: Layout) -> Result<SliceWriter, SealError> {
        let path = folder.join(SIDECAR);
        let sidecar = File::create_new(&path).map_err(|e| SealError::Io(path.clone(), e))?;
        let sidecar = BufWriter::with_capacity(1 << 17, sidecar);
        Ok(SliceWriter {
            file: RowGroupWriter::create(folder)?,
            pyramids: Pyramids::new(sidecar, layout.min_headers).map_err(|e| SealError::Io(path, e))?,
            window: Window::default(),
            order: Vec::new(),
            spare: Default::default(),
            checksums: Vec::new(),
            rows: 0,
            group_rows: layout.group_rows,
        })
    }

    /// How many slices can be pushed out of order between two calls of [`SliceWriter::write_ready`] and still be
    /// sorted.
    pub(super) fn slack(&self) -> usize {
        (WINDOW_GROUPS - RETAINED_GROUPS) * self.group_rows / 2
    }

    /// Appends a slice to its lane, with the text of its arguments.
    pub(super) fn push(&mut self, slice: SliceRef, args: Option<&str>) {
        self.window.push(slice, args);
    }

    /// Appends a slice of a store to its lane; its arguments are read when it is written.
    pub(super) fn push_of_store(&mut self, slice: SliceRef) {
        self.window.slices.push(slice);
    }

    /// Writes the earliest row groups if the window is full. `args` has the texts of a store's slices.
    pub(super) fn write_ready(
        &mut self,
        store: &Store,
        names: &Names,
        args: MaybeReader<'_, '_>,
    ) -> Result<(), SealError> {
        let n = self.window.slices.len();
        if n < WINDOW_GROUPS * self.group_rows {
            return Ok(());
        }
        self.write_first((n / self.group_rows - RETAINED_GROUPS) * self.group_rows, store, names, args)
    }

    /// Writes the `n` slices of the window that start first, as row groups; the others remain, ordered by start.
    fn write_first(
        &mut self,
        n: usize,
        store: &Store,
        names: &Names,
        mut args: MaybeReader<'_, '_>,
    ) -> Result<(), SealError> {
        self.order.clear();
        self.order.extend(self.window.slices.iter().map(|slice| radix::key(slice.start)).zip(0..));
        radix::sort(&mut self.order, &mut self.spare.0);
        let order = std::mem::take(&mut self.order);
        for group in order[..n].chunks(self.group_rows) {
            self.write_group(group, store, names, args.as_deref_mut())?;
        }
        let mut retained = std::mem::take(&mut self.spare.1);
        for (_, row) in &order[n..] {
            let slice = self.window.slices[*row as usize];
            match args {
                Some(_) => retained.slices.push(slice),
                None => retained.push(slice, self.window.args(slice.args)),
            }
        }
        self.window.clear();
        self.spare.1 = std::mem::replace(&mut self.window, retained);
        self.order = order;
        Ok(())
    }

    fn write_group(
        &mut self,
        rows: &[KeyedRow],
        store: &Store,
        names: &Names,
        mut args: MaybeReader<'_, '_>,
    ) -> Result<(), SealError> {
        let mut group = RowGroup::with_capacity(rows.len());
        let mut texts = StringBuilder::with_capacity(rows.len(), 0);
        for (_, row) in rows {
            let slice = &self.window.slices[*row as usize];
            let args = match &mut args {
                Some(args) => args.get(slice.args),
                None => self.window.args(slice.args),
            };
            let header = SliceHeader::from_event(slice, store.sites());
            let pushed = self.pyramids.push(slice.id.track, slice.id.lane, header, args.is_some());
            pushed.map_err(|e| SealError::Io(SIDECAR.into(), e))?;
            group.push(slice, header);
            texts.append_option(args);
        }
        self.pyramids.end_group();
        group.args = Some(Arc::new(texts.finish()));
        self.checksums.push(group.checksum());
        self.file.write(group.columns(store.sites(), names))?;
        self.rows += rows.len() as u64;
        Ok(())
    }

    /// Writes the slices of the window, and waits until both files are on disk.
    pub(super) fn finish(
        mut self,
        store: &Store,
        names: &Names,
        args: MaybeReader<'_, '_>,
    ) -> Result<WrittenFiles, SealError> {
        self.write_first(self.window.slices.len(), store, names, args)?;
        let slices = self.file.finish()?;
        let (len, crc) = slices.last().map_or((0, 0), |footer| (footer.from + footer.len, footer.crc));
        let failed = |e| SealError::Io(SIDECAR.into(), e);
        let sidecar = self.pyramids.finish(len, crc).map_err(failed)?;
        let sidecar = sidecar.into_inner().map_err(|e| failed(e.into_error()))?;
        sidecar.sync_all().map_err(failed)?;
        let sidecar_bytes = sidecar.metadata().map_err(failed)?.len();
        Ok(WrittenFiles { slices, sidecar_bytes, checksums: self.checksums, rows: self.rows })
    }
}
