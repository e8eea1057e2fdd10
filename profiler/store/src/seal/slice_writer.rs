//! Writes `slices.parquet` and the sidecar from slices that are pushed roughly in order of time.
//!
//! Each row group is ordered by start. Across row groups slices are ordered by start as far as a window of 524,288
//! slices can sort them: a slice that is pushed even later (an outer slice is pushed when it ends) goes into the next
//! row group. The slices of one lane are pushed in order of their starts, and have this order in the file.

use super::SealError;
use super::checksums;
use super::names::Names;
use super::pyramids::SidecarWriter;
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

/// Number of row groups in the window before slices are written.
const WINDOW_GROUPS: usize = 4;
/// Minimum number of row groups that remain in the window after slices were written.
const RETAINED_GROUPS: usize = 2;

/// The layout of the files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Number of slices of a row group.
    pub(super) group_rows: usize,
    /// The number of headers in the sidecar is limited to no less than this.
    pub(super) min_headers: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { group_rows: GROUP_ROWS, min_headers: 1 << 16 }
    }
}

/// Slices that are not written yet. Their `args` are rows of the texts in the window, or of a store's arguments.
#[derive(Default)]
struct Window {
    slices: Vec<SliceRef>,
    /// The texts one after another.
    text: String,
    /// The end of each text.
    text_ends: Vec<usize>,
}

impl Window {
    fn push(&mut self, slice: SliceRef, args: Option<&str>) {
        let n_texts = self.text_ends.len() as u32;
        let event = Event { args: if args.is_some() { n_texts } else { NO_ARGS }, ..slice.event };
        self.slices.push(SliceRef { event, ..slice });
        if let Some(args) = args {
            self.text.push_str(args);
            self.text_ends.push(self.text.len());
        }
    }

    fn args(&self, row: u32) -> Option<&str> {
        let end = *self.text_ends.get(row as usize)?;
        let start = row.checked_sub(1).map_or(0, |previous| self.text_ends[previous as usize]);
        self.text.get(start..end)
    }

    fn clear(&mut self) {
        self.slices.clear();
        self.text.clear();
        self.text_ends.clear();
    }
}

/// The reader of a store's arguments; `None` if slices are streamed, whose arguments are in the window.
pub(super) type StoreArgs<'r, 'a> = Option<&'r mut ArgsReader<'a>>;

/// The two files that were written.
pub(super) struct WrittenFiles {
    pub(super) slices: Vec<checksums::FilePart>,
    pub(super) sidecar_bytes: u64,
    /// A checksum over the rows of each row group, to compare with the rows that are read back.
    pub(super) checksums: Vec<u32>,
    pub(super) rows: u64,
}

/// Writes `slices.parquet` and the sidecar.
pub(super) struct SliceWriter {
    file: RowGroupWriter,
    sidecar: SidecarWriter<BufWriter<File>>,
    window: Window,
    /// Rows of the window, ordered by start.
    order: Vec<KeyedRow>,
    /// Reused buffers.
    spare_order: Vec<KeyedRow>,
    spare_window: Window,
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
            sidecar: SidecarWriter::new(sidecar, layout.min_headers).map_err(|e| SealError::Io(path, e))?,
            window: Window::default(),
            order: Vec::new(),
            spare_order: Vec::new(),
            spare_window: Window::default(),
            checksums: Vec::new(),
            rows: 0,
            group_rows: layout.group_rows,
        })
    }

    /// Returns the number of slices that can be pushed out of order between two calls of [`SliceWriter::write_ready`]
    /// and still be sorted.
    pub(super) fn max_disorder(&self) -> usize {
        (WINDOW_GROUPS - RETAINED_GROUPS) * self.group_rows / 2
    }

    /// Appends a slice to its lane, with the text of its arguments.
    pub(super) fn push(&mut self, slice: SliceRef, args: Option<&str>) {
        self.window.push(slice, args);
    }

    /// Appends a slice of a store to its lane. Its arguments are read when the slice is written.
    pub(super) fn push_from_store(&mut self, slice: SliceRef) {
        self.window.slices.push(slice);
    }

    /// Writes the earliest row groups if the window is full. `args` has the texts of a store's slices.
    pub(super) fn write_ready(
        &mut self,
        store: &Store,
        names: &Names,
        args: StoreArgs<'_, '_>,
    ) -> Result<(), SealError> {
        let n = self.window.slices.len();
        if n < WINDOW_GROUPS * self.group_rows {
            return Ok(());
        }
        self.write_earliest((n / self.group_rows - RETAINED_GROUPS) * self.group_rows, store, names, args)
    }

    /// Writes the `n` earliest slices of the window as row groups. The others remain, ordered by start.
    fn write_earliest(
        &mut self,
        n: usize,
        store: &Store,
        names: &Names,
        mut args: StoreArgs<'_, '_>,
    ) -> Result<(), SealError> {
        self.order.clear();
        self.order.extend(self.window.slices.iter().map(|slice| radix::key(slice.start)).zip(0..));
        radix::sort(&mut self.order, &mut self.spare_order);
        let order = std::mem::take(&mut self.order);
        for group in order[..n].chunks(self.group_rows) {
            self.write_group(group, store, names, args.as_deref_mut())?;
        }
        let mut retained = std::mem::take(&mut self.spare_window);
        for (_, row) in &order[n..] {
            let slice = self.window.slices[*row as usize];
            match args {
                Some(_) => retained.slices.push(slice),
                None => retained.push(slice, self.window.args(slice.args)),
            }
        }
        self.window.clear();
        self.spare_window = std::mem::replace(&mut self.window, retained);
        self.order = order;
        Ok(())
    }

    fn write_group(
        &mut self,
        rows: &[KeyedRow],
        store: &Store,
        names: &Names,
        mut args: StoreArgs<'_, '_>,
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
            let pushed = self.sidecar.push(slice.id.track, slice.id.lane, header, args.is_some());
            pushed.map_err(|e| SealError::Io(SIDECAR.into(), e))?;
            group.push(slice, header);
            texts.append_option(args);
        }
        self.sidecar.end_group();
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
        args: StoreArgs<'_, '_>,
    ) -> Result<WrittenFiles, SealError> {
        self.write_earliest(self.window.slices.len(), store, names, args)?;
        let slices = self.file.finish()?;
        let (len, crc) = slices.last().map_or((0, 0), |footer| (footer.offset + footer.len, footer.crc));
        let io_error = |e| SealError::Io(SIDECAR.into(), e);
        let sidecar = self.sidecar.finish(len, crc).map_err(io_error)?;
        let sidecar = sidecar.into_inner().map_err(|e| io_error(e.into_error()))?;
        sidecar.sync_all().map_err(io_error)?;
        let sidecar_bytes = sidecar.metadata().map_err(io_error)?.len();
        Ok(WrittenFiles { slices, sidecar_bytes, checksums: self.checksums, rows: self.rows })
    }
}
