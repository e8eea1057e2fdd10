//! Opens a sealed folder as a store: small tables are read, the sidecar is mapped, slices stay on disk.

use super::checksums::{Checksums, FILE_NAME, FilePart, PartError};
use super::columns::{self, TableError};
use super::paged_lane::PagedLane;
use super::pager::{Pager, SlicesFile};
use super::pyramids::SidecarWriter;
use super::resolver::Resolver;
use super::row_group::RowGroup;
use super::schema::{self, SLICES};
use super::sidecar::{SIDECAR, Sidecar, SidecarError};
use super::slice_writer::Layout;
use super::table::{StoredRow, Table};
use super::table_rows;
use crate::store::{Contents, Store};
use arrow_array::RecordBatch;
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use trace_model::{RingPosition, Warning, WarningKind};

/// Whether a folder is a sealed trace that this program wrote.
#[must_use]
pub fn is_sealed(folder: &Path) -> bool {
    folder.join(SLICES.file_name()).is_file() && folder.join(FILE_NAME).is_file()
}

/// The contents of a sealed folder, without the slices.
pub(super) struct FolderContents {
    pub(super) contents: Contents,
    pub(super) names: Resolver,
    pub(super) slices: Option<SlicesFile>,
    pub(super) rings: Vec<RingPosition>,
    /// Problems of the files, each as `FILE: TEXT`.
    pub(super) problems: Vec<String>,
    /// Whether the tables of names and tracks were read: without them slices cannot be put on lanes.
    pub(super) has_names: bool,
    /// Length of `slices.parquet` and CRC-32C of its footer, which the sidecar has to name.
    slices_key: (u64, u32),
}

/// The files of the tables.
enum Files<'a> {
    /// A folder, with its checksums if there are any.
    Folder(&'a Path, Option<Checksums>),
    /// Parquet files by the names of their tables.
    Memory(&'a FxHashMap<String, Bytes>),
}

impl Files<'_> {
    fn read(&self, table: Table) -> Result<Bytes, PartError> {
        let name = table.file_name();
        match self {
            Files::Folder(folder, Some(sums)) => sums.read(folder, &name),
            Files::Folder(folder, None) => Ok(std::fs::read(folder.join(&name))?.into()),
            Files::Memory(tables) => tables.get(table.name).cloned().ok_or(PartError::NotListed),
        }
    }
}

/// Reads tables, and collects their problems.
struct TableReader<'a> {
    files: Files<'a>,
    problems: Vec<String>,
}

impl TableReader<'_> {
    /// Passes the rows of a table to `each`, batch by batch. Returns whether the table could be used.
    fn read_table(&mut self, table: Table, mut each: impl FnMut(&RecordBatch) -> Result<(), TableError>) -> bool {
        let name = table.file_name();
        let result = self.files.read(table).map_err(TableError::from).and_then(columns::read);
        let result = result.and_then(|batches| batches.iter().try_for_each(&mut each));
        if let Err(problem) = &result {
            self.problems.push(format!("{name}: {problem}"));
        }
        result.is_ok()
    }

    /// Opens `slices.parquet` and checks its footer; returns the file with its [key](FolderContents::slices_key).
    fn open_slices(&mut self) -> Option<(SlicesFile, (u64, u32))> {
        let Files::Folder(folder, sums) = &self.files else { return None };
        let name = SLICES.file_name();
        let open = || -> Result<(SlicesFile, (u64, u32)), TableError> {
            let file = File::open(folder.join(&name)).map_err(PartError::Io)?;
            let len = file.metadata().map_err(PartError::Io)?.len();
            let mut parts: Vec<FilePart> = Vec::new();
            if let Some(sums) = sums {
                sums.check_len(&file, &name)?;
                parts = sums.file_parts(&name).unwrap_or_default().to_vec();
                super::checksums::read_part(&file, *parts.last().ok_or(PartError::NotListed)?)?;
            }
            let metadata = columns::open(&file)?;
            let crc = parts.pop().map_or(0, |footer| footer.crc);
            if sums.is_some() && parts.len() != metadata.metadata().num_row_groups() {
                return Err(TableError::Rows("it has other row groups than the list of checksums"));
            }
            Ok((SlicesFile { file, metadata, parts }, (len, crc)))
        };
        let opened = open();
        if let Err(problem) = &opened {
            self.problems.push(format!("{name}: {problem}"));
        }
        opened.ok()
    }
}

impl FolderContents {
    /// Reads all tables but the slices.
    pub(super) fn read(folder: &Path) -> std::io::Result<FolderContents> {
        std::fs::read_dir(folder)?;
        let mut problems = Vec::new();
        let sums = match std::fs::read(folder.join(FILE_NAME)) {
            Ok(bytes) => Checksums::parse(&String::from_utf8_lossy(&bytes)).or_else(|| {
                problems.push(format!("{FILE_NAME}: it is damaged, so nothing else can be checked"));
                None
            }),
            Err(_) => None,
        };
        let has_checksums = sums.is_some();
        let mut reader = TableReader { files: Files::Folder(folder, sums), problems };
        let mut contents = Contents::default();
        let mut rings = Vec::new();
        let version = if has_checksums { read_names(&mut reader, &mut contents) } else { None };
        let has_names = version.is_some();
        if let Some(version) = version {
            read_sides(&mut reader, &mut contents, version);
            reader.read_table(schema::RingRow::TABLE, |batch| table_rows::rings(batch, &mut rings));
        }
        let (slices, slices_key) = reader.open_slices().map_or((None, (0, 0)), |(file, key)| (Some(file), key));
        let names = Resolver::new(&contents.sites, &contents.nodes);
        Ok(FolderContents { contents, names, slices, rings, problems: reader.problems, has_names, slices_key })
    }
}

/// Reads the tables without which slices cannot be put on lanes. Returns the format's version; `None` if a table is
/// unusable.
fn read_names(reader: &mut TableReader<'_>, contents: &mut Contents) -> Option<u32> {
    let mut format = String::new();
    let is_read = reader.read_table(schema::MetaRow::TABLE, |batch| {
        for schema::MetaRow { key, value } in schema::MetaRow::read(batch)? {
            let number = || value.parse::<i64>().map_err(|_| TableError::Rows("a number is none"));
            match key {
                "format" => format = value.to_owned(),
                "origin_ns" => contents.origin = number()?,
                "first_ns" => contents.range.start = number()?,
                "last_ns" => contents.range.end = number()?,
                _ => {}
            }
        }
        Ok(())
    });
    let version = schema::version_of(&format);
    if is_read && version.is_none() {
        reader
            .problems
            .push(format!("{}: this program does not know the format {format:?}", schema::MetaRow::TABLE.file_name()));
    }
    let has_names = version.is_some()
        && reader.read_table(schema::ProcessRow::TABLE, |batch| table_rows::processes(batch, &mut contents.processes))
        && reader.read_table(schema::SiteRow::TABLE, |batch| table_rows::sites(batch, &mut contents.sites))
        && reader.read_table(schema::NodeRow::TABLE, |batch| table_rows::nodes(batch, &mut contents.nodes))
        && reader.read_table(schema::TrackRow::TABLE, |batch| table_rows::tracks(batch, &mut contents.tracks));
    version.filter(|_| has_names)
}

/// Reads the tables that a trace can lack; the rows of an unusable table are missing.
fn read_sides(reader: &mut TableReader<'_>, contents: &mut Contents, version: u32) {
    reader.read_table(schema::StepRow::TABLE, |batch| table_rows::steps(batch, &mut contents.steps));
    reader.read_table(schema::FlowRow::TABLE, |batch| table_rows::flows(batch, &mut contents.flows));
    reader.read_table(schema::CounterRow::TABLE, |batch| table_rows::points(batch, &mut contents.points));
    reader.read_table(schema::MemoryRow::TABLE, |batch| table_rows::memory(batch, &mut contents.memory));
    reader.read_table(schema::TransferRow::TABLE, |batch| table_rows::transfers(batch, &mut contents.transfers));
    reader.read_table(schema::WarningRow::TABLE, |batch| table_rows::warnings(batch, &mut contents.warnings));
    let mut args = table_rows::ArgsRows::default();
    reader.read_table(schema::InstantRow::TABLE, |batch| table_rows::instants(batch, contents, &mut args));
    if version >= schema::StackRow::TABLE.since {
        let frames = &mut contents.frames;
        reader.read_table(schema::FrameRow::TABLE, |batch| table_rows::frames(batch, frames));
        reader.read_table(schema::FunctionRow::TABLE, |batch| table_rows::functions(batch, frames));
        reader
            .read_table(schema::StackRow::TABLE, |batch| table_rows::stacks(batch, frames.len(), &mut contents.stacks));
    }
    reader.read_table(schema::OpenRow::TABLE, |batch| table_rows::open_slices(batch, contents));
}

/// Reads the tables other than the slices from Parquet files in memory, by table name.
///
/// # Errors
/// Fails with a table that cannot be used, and why.
pub(crate) fn contents_of(tables: &FxHashMap<String, Bytes>) -> Result<Contents, String> {
    let mut reader = TableReader { files: Files::Memory(tables), problems: Vec::new() };
    let mut contents = Contents::default();
    if let Some(version) = read_names(&mut reader, &mut contents) {
        read_sides(&mut reader, &mut contents, version);
    }
    reader.problems.pop().map_or(Ok(contents), Err)
}

/// Reads the position up to which a sealed folder has the records of each ring of the trace folder.
pub(crate) fn positions(folder: &Path) -> std::io::Result<Vec<RingPosition>> {
    let list = std::fs::read_to_string(folder.join(FILE_NAME))?;
    let mut reader = TableReader { files: Files::Folder(folder, Checksums::parse(&list)), problems: Vec::new() };
    let mut rings = Vec::new();
    reader.read_table(schema::RingRow::TABLE, |batch| table_rows::rings(batch, &mut rings));
    Ok(rings)
}

/// An open sealed trace, whose slices stay on disk.
#[derive(Debug)]
pub(crate) struct SealedTrace {
    pub(crate) store: Store,
    /// The position up to which the sealed trace has the records of each ring of the trace folder.
    pub(crate) rings: Vec<RingPosition>,
}

impl SealedTrace {
    /// Opens a sealed folder. Damage becomes warnings of the store.
    ///
    /// # Errors
    /// Fails if the folder cannot be listed.
    pub(crate) fn open(folder: &Path) -> std::io::Result<SealedTrace> {
        let FolderContents { mut contents, names, slices, rings, mut problems, has_names, slices_key } =
            FolderContents::read(folder)?;
        let store = match slices {
            Some(file) if has_names => {
                let sidecar = match Sidecar::open(&folder.join(SIDECAR), slices_key.0, slices_key.1) {
                    Ok(sidecar) => Some(sidecar),
                    Err(problem) => {
                        // A sidecar of another version is not damaged: it is rebuilt without a warning.
                        if !matches!(problem, SidecarError::Version(_)) {
                            problems.push(format!("{SIDECAR}: {problem}; it was made again"));
                        }
                        rebuild_sidecar(folder, &file, &names, slices_key, &mut problems)
                    }
                };
                if let Some(sidecar) = sidecar {
                    add_lanes(&mut contents, Pager::new(file, names, Arc::new(sidecar)));
                }
                Store::from_contents(contents)
            }
            Some(file) => super::foreign::read(folder, file, &mut problems),
            None => Store::from_contents(contents),
        };
        Ok(SealedTrace { store: store.with_warnings(warnings(folder, problems)), rings })
    }
}

fn warnings(folder: &Path, problems: Vec<String>) -> impl Iterator<Item = Warning> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    problems.into_iter().map(move |problem| {
        let source = format!("{name}/{}", problem.split(':').next().unwrap_or_default());
        Warning::new(WarningKind::Damage, source, 1, format!("{name}/{problem}"))
    })
}

/// Adds the lanes that the sidecar lists to their tracks.
fn add_lanes(contents: &mut Contents, pager: Pager) {
    let pager = Arc::new(pager);
    for entry in pager.sidecar().lanes() {
        contents.set_lane(entry.track, entry.lane, || Box::new(PagedLane::new(&pager, *entry)));
    }
    contents.pager = Some(pager);
}

/// Rebuilds the sidecar, and writes it into the folder. If writing fails, the sidecar stays in memory.
fn rebuild_sidecar(
    folder: &Path,
    file: &SlicesFile,
    names: &Resolver,
    key: (u64, u32),
    problems: &mut Vec<String>,
) -> Option<Sidecar> {
    match build_sidecar(file, names, key, problems) {
        Ok(bytes) => {
            let scratch = folder.join(format!("{SIDECAR}.tmp"));
            let written = super::place::write_synced(&scratch, &bytes);
            if written.and_then(|()| std::fs::rename(&scratch, folder.join(SIDECAR))).is_ok()
                && let Ok(sidecar) = Sidecar::open(&folder.join(SIDECAR), key.0, key.1)
            {
                return Some(sidecar);
            }
            Sidecar::from_bytes(&bytes, key.0, key.1).ok()
        }
        Err(problem) => {
            problems.push(format!("{}: {problem}; the timeline is empty", SLICES.file_name()));
            None
        }
    }
}

/// Builds the bytes of a sidecar from the slices; row groups that cannot be read are reported in `problems`.
fn build_sidecar(
    file: &SlicesFile,
    names: &Resolver,
    key: (u64, u32),
    problems: &mut Vec<String>,
) -> Result<Vec<u8>, TableError> {
    let io_error = |e| TableError::Part(PartError::Io(e));
    let mut sidecar = SidecarWriter::new(Vec::new(), Layout::default().min_headers).map_err(io_error)?;
    let mut lane_ends: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for group in 0..file.parts.len() {
        match file.read(group).and_then(|batch| RowGroup::from_batch(&batch, names)) {
            Ok(rows) => {
                let keys = rows.track.iter().copied().zip(rows.lane.iter().copied());
                for (i, key) in keys.enumerate() {
                    let Some(slice) = rows.slices.header(i) else { break };
                    let previous_end = lane_ends.insert(key, slice.end).unwrap_or(i64::MIN);
                    if slice.start < previous_end {
                        return Err(TableError::Rows("the slices of a lane overlap"));
                    }
                    sidecar.push(key.0, key.1, slice, rows.has_args(i)).map_err(io_error)?;
                }
            }
            // Only the slices of this row group are missing.
            Err(problem) => problems.push(format!("{}: row group {group}: {problem}", SLICES.file_name())),
        }
        sidecar.end_group();
    }
    sidecar.finish(key.0, key.1).map_err(io_error)
}
