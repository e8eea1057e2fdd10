//! Opens a sealed folder as a store: small tables are read, the sidecar is mapped, slices stay on disk.

use super::checksums::{Checksums, FILE_NAME, FilePart, PartError};
use super::columns::{self, TableError};
use super::paged_lane::PagedLane;
use super::pager::{Pager, SlicesFile};
use super::pyramids::Pyramids;
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

/// What is always read of a sealed folder: everything but the slices.
pub(super) struct Opened {
    pub(super) parts: Contents,
    pub(super) names: Resolver,
    pub(super) slices: Option<SlicesFile>,
    pub(super) rings: Vec<RingPosition>,
    /// What is wrong with the files, a line for each.
    pub(super) problems: Vec<String>,
    /// Whether the tables of names and tracks were read: without them slices cannot be put on lanes.
    pub(super) has_names: bool,
    /// Length of `slices.parquet` and CRC-32C of its footer: the sidecar has to have the same.
    slices_key: (u64, u32),
}

/// Where the tables are read from.
enum Files<'a> {
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

/// Reads tables and collects what is wrong with them.
struct TableReader<'a> {
    files: Files<'a>,
    problems: Vec<String>,
}

impl TableReader<'_> {
    /// Passes the rows of a table to `each`, batch by batch. Returns whether the table could be used.
    fn table(&mut self, table: Table, mut each: impl FnMut(&RecordBatch) -> Result<(), TableError>) -> bool {
        let name = table.file_name();
        let result = self.files.read(table).map_err(TableError::from).and_then(columns::read);
        let result = result.and_then(|batches| batches.iter().try_for_each(&mut each));
        if let Err(problem) = &result {
            self.problems.push(format!("{name}: {problem}"));
        }
        result.is_ok()
    }

    /// Opens `slices.parquet` and checks its footer; returns the file with its [key](Opened::slices_key).
    fn slices(&mut self) -> Option<(SlicesFile, (u64, u32))> {
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

impl Opened {
    /// Reads all but the slices.
    pub(super) fn read(folder: &Path) -> std::io::Result<Opened> {
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
        let mut reading = TableReader { files: Files::Folder(folder, sums), problems };
        let mut parts = Contents::default();
        let mut rings = Vec::new();
        let version = if has_checksums { read_names(&mut reading, &mut parts) } else { None };
        let has_names = version.is_some();
        if let Some(version) = version {
            read_sides(&mut reading, &mut parts, version);
            reading.table(schema::RingRow::TABLE, |batch| table_rows::rings(batch, &mut rings));
        }
        let (slices, slices_key) = reading.slices().map_or((None, (0, 0)), |(file, key)| (Some(file), key));
        let names = Resolver::of(&parts.sites, &parts.nodes);
        Ok(Opened { parts, names, slices, rings, problems: reading.problems, has_names, slices_key })
    }
}

/// Reads the tables without which slices cannot be put on lanes. Returns the format's version, `None` if one is
/// unusable.
fn read_names(reading: &mut TableReader<'_>, parts: &mut Contents) -> Option<u32> {
    let mut format = String::new();
    let is_read = reading.table(schema::MetaRow::TABLE, |batch| {
        for schema::MetaRow { key, value } in schema::MetaRow::read(batch)? {
            let number = || value.parse::<i64>().map_err(|_| TableError::Rows("a number is none"));
            match key {
                "format" => format = value.to_owned(),
                "origin_ns" => parts.origin = number()?,
                "first_ns" => parts.range.start = number()?,
                "last_ns" => parts.range.end = number()?,
                _ => {}
            }
        }
        Ok(())
    });
    let version = schema::version_of(&format);
    if is_read && version.is_none() {
        reading
            .problems
            .push(format!("{}: this program does not know the format {format:?}", schema::MetaRow::TABLE.file_name()));
    }
    let has_names = version.is_some()
        && reading.table(schema::ProcessRow::TABLE, |batch| table_rows::processes(batch, &mut parts.processes))
        && reading.table(schema::SiteRow::TABLE, |batch| table_rows::sites(batch, &mut parts.sites))
        && reading.table(schema::NodeRow::TABLE, |batch| table_rows::nodes(batch, &mut parts.nodes))
        && reading.table(schema::TrackRow::TABLE, |batch| table_rows::tracks(batch, &mut parts.tracks));
    version.filter(|_| has_names)
}

/// Reads the tables that a trace can lack; the rows of an unusable table are missing.
fn read_sides(reading: &mut TableReader<'_>, parts: &mut Contents, version: u32) {
    reading.table(schema::StepRow::TABLE, |batch| table_rows::steps(batch, &mut parts.steps));
    reading.table(schema::FlowRow::TABLE, |batch| table_rows::flows(batch, &mut parts.flows));
    reading.table(schema::CounterRow::TABLE, |batch| table_rows::points(batch, &mut parts.points));
    reading.table(schema::MemoryRow::TABLE, |batch| table_rows::memory(batch, &mut parts.memory));
    reading.table(schema::TransferRow::TABLE, |batch| table_rows::transfers(batch, &mut parts.transfers));
    reading.table(schema::WarningRow::TABLE, |batch| table_rows::warnings(batch, &mut parts.warnings));
    let mut args = table_rows::ArgsRows::default();
    reading.table(schema::InstantRow::TABLE, |batch| table_rows::instants(batch, parts, &mut args));
    if version >= schema::StackRow::TABLE.since {
        let frames = &mut parts.frames;
        reading.table(schema::FrameRow::TABLE, |batch| table_rows::frames(batch, frames));
        reading.table(schema::FunctionRow::TABLE, |batch| table_rows::functions(batch, frames));
        reading.table(schema::StackRow::TABLE, |batch| table_rows::stacks(batch, frames.len(), &mut parts.stacks));
    }
    reading.table(schema::OpenRow::TABLE, |batch| table_rows::open_slices(batch, parts));
}

/// Reads the tables other than the slices from Parquet files in memory, by table name.
///
/// # Errors
/// Names a table that cannot be used, and why.
pub(crate) fn contents_of(tables: &FxHashMap<String, Bytes>) -> Result<Contents, String> {
    let mut reading = TableReader { files: Files::Memory(tables), problems: Vec::new() };
    let mut parts = Contents::default();
    if let Some(version) = read_names(&mut reading, &mut parts) {
        read_sides(&mut reading, &mut parts, version);
    }
    reading.problems.pop().map_or(Ok(parts), Err)
}

/// Reads up to which record each ring of the trace folder is in a sealed folder.
pub(crate) fn positions(folder: &Path) -> std::io::Result<Vec<RingPosition>> {
    let list = std::fs::read_to_string(folder.join(FILE_NAME))?;
    let mut reading = TableReader { files: Files::Folder(folder, Checksums::parse(&list)), problems: Vec::new() };
    let mut rings = Vec::new();
    reading.table(schema::RingRow::TABLE, |batch| table_rows::rings(batch, &mut rings));
    Ok(rings)
}

/// An open sealed trace; its slices stay on disk.
#[derive(Debug)]
pub(crate) struct SealedTrace {
    pub(crate) store: Store,
    /// Up to which record each ring of the trace folder is in the sealed trace.
    pub(crate) rings: Vec<RingPosition>,
}

impl SealedTrace {
    /// Opens a sealed folder. Damage becomes warnings of the store.
    ///
    /// # Errors
    /// Fails if the folder cannot be listed.
    pub(crate) fn open(folder: &Path) -> std::io::Result<SealedTrace> {
        let Opened { mut parts, names, slices, rings, mut problems, has_names, slices_key } = Opened::read(folder)?;
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
                    add_lanes(&mut parts, Pager::new(file, names, Arc::new(sidecar)));
                }
                Store::of_contents(parts)
            }
            Some(file) => super::foreign::store(folder, file, &mut problems),
            None => Store::of_contents(parts),
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

/// Adds to the tracks their lanes, as the sidecar lists them.
fn add_lanes(parts: &mut Contents, pager: Pager) {
    let pager = Arc::new(pager);
    for entry in pager.sidecar().lanes() {
        parts.set_lane(entry.track, entry.lane, || Box::new(PagedLane::new(&pager, *entry)));
    }
    parts.pager = Some(pager);
}

/// Rebuilds the sidecar, and writes it into the folder; it stays in memory if that fails.
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
            Sidecar::of_bytes(&bytes, key.0, key.1).ok()
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
    let failed = |e| TableError::Part(PartError::Io(e));
    let mut pyramids = Pyramids::new(Vec::new(), Layout::default().min_headers).map_err(failed)?;
    let mut end_of: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for group in 0..file.parts.len() {
        match file.read(group).and_then(|batch| RowGroup::of(&batch, names)) {
            Ok(rows) => {
                let keys = rows.track.iter().copied().zip(rows.lane.iter().copied());
                for (i, key) in keys.enumerate() {
                    let Some(slice) = rows.slices.header(i) else { break };
                    let previous_end = end_of.insert(key, slice.end).unwrap_or(i64::MIN);
                    if slice.start < previous_end {
                        return Err(TableError::Rows("the slices of a lane overlap"));
                    }
                    pyramids.push(key.0, key.1, slice, rows.has_args(i)).map_err(failed)?;
                }
            }
            // Only the slices of this row group are missing.
            Err(problem) => problems.push(format!("{}: row group {group}: {problem}", SLICES.file_name())),
        }
        pyramids.end_group();
    }
    pyramids.finish(key.0, key.1).map_err(failed)
}
