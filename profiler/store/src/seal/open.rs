//! A sealed folder becomes a store: small tables are read, the sidecar is mapped, slices stay on disk.

use super::checksums::{Checksums, FILE_NAME, FilePart, PartError};
use super::columns::{self, TableError};
use super::paged::PagedLane;
use super::pager::{Pager, SlicesFile};
use super::pyramids::Pyramids;
use super::resolver::Resolver;
use super::row_group::RowGroup;
use super::rows;
use super::schema::{self, SLICES};
use super::sidecar::{SIDECAR, Sidecar, SidecarError};
use super::slices::Layout;
use super::table::{StoredRow, Table};
use crate::store::{Contents, Store};
use arrow_array::RecordBatch;
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use trace_model::{RingPosition, Warning, WarningKind};

/// Whether a folder is a sealed trace that was written here, and nothing else.
#[must_use]
pub fn is_sealed(folder: &Path) -> bool {
    folder.join(SLICES.file_name()).is_file() && folder.join(FILE_NAME).is_file()
}

/// The parts of a sealed folder that are always read.
pub(super) struct Opened {
    pub(super) parts: Contents,
    pub(super) names: Resolver,
    pub(super) slices: Option<SlicesFile>,
    pub(super) rings: Vec<RingPosition>,
    /// What is wrong, a line for each file.
    pub(super) problems: Vec<String>,
    /// Whether slices can be placed: names and tracks are there.
    pub(super) is_whole: bool,
    slices_key: (u64, u32),
}

/// Where the tables are.
enum Files<'a> {
    Folder(&'a Path, Option<Checksums>),
    /// By name.
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

/// Reads tables and notes what is wrong with them.
struct TableReader<'a> {
    files: Files<'a>,
    problems: Vec<String>,
}

impl TableReader<'_> {
    /// Gives the rows of a table to `each`, some at a time. False where the table is of no use.
    fn table(&mut self, table: Table, mut each: impl FnMut(&RecordBatch) -> Result<(), TableError>) -> bool {
        let name = table.file_name();
        let result = self.files.read(table).map_err(TableError::from).and_then(columns::read);
        let result = result.and_then(|batches| batches.iter().try_for_each(&mut each));
        if let Err(problem) = &result {
            self.problems.push(format!("{name}: {problem}"));
        }
        result.is_ok()
    }

    /// Opens `slices.parquet` and checks its footer.
    fn slices(&mut self) -> Option<(SlicesFile, (u64, u32))> {
        let Files::Folder(folder, sums) = &self.files else { return None };
        let name = SLICES.file_name();
        let open = || -> Result<(SlicesFile, (u64, u32)), TableError> {
            let file = File::open(folder.join(&name)).map_err(PartError::Io)?;
            let len = file.metadata().map_err(PartError::Io)?.len();
            let mut parts: Vec<FilePart> = Vec::new();
            if let Some(sums) = sums {
                sums.check_len(&file, &name)?;
                parts = sums.parts(&name).unwrap_or_default().to_vec();
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
        let is_ours = sums.is_some();
        let mut reading = TableReader { files: Files::Folder(folder, sums), problems };
        let mut parts = Contents::default();
        let mut rings = Vec::new();
        let version = if is_ours { read_names(&mut reading, &mut parts) } else { None };
        let is_whole = version.is_some();
        if let Some(version) = version {
            read_sides(&mut reading, &mut parts, version);
            reading.table(schema::RingRow::TABLE, |batch| rows::rings(batch, &mut rings));
        }
        let (slices, slices_key) = reading.slices().map_or((None, (0, 0)), |(file, key)| (Some(file), key));
        let names = Resolver::of(&parts.sites, &parts.nodes);
        Ok(Opened { parts, names, slices, rings, problems: reading.problems, is_whole, slices_key })
    }
}

/// Reads the tables without which nothing can be placed; gives the format's version.
fn read_names(reading: &mut TableReader<'_>, parts: &mut Contents) -> Option<u32> {
    let mut format = String::new();
    let meta = reading.table(schema::MetaRow::TABLE, |batch| {
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
    if meta && version.is_none() {
        reading
            .problems
            .push(format!("{}: this program does not know the format {format:?}", schema::MetaRow::TABLE.file_name()));
    }
    let is_whole = version.is_some()
        && reading.table(schema::ProcessRow::TABLE, |batch| rows::processes(batch, &mut parts.processes))
        && reading.table(schema::SiteRow::TABLE, |batch| rows::sites(batch, &mut parts.sites))
        && reading.table(schema::NodeRow::TABLE, |batch| rows::nodes(batch, &mut parts.nodes))
        && reading.table(schema::TrackRow::TABLE, |batch| rows::tracks(batch, &mut parts.tracks));
    version.filter(|_| is_whole)
}

/// Reads what a trace can do without; a table with a problem is left out.
fn read_sides(reading: &mut TableReader<'_>, parts: &mut Contents, version: u32) {
    reading.table(schema::StepRow::TABLE, |batch| rows::steps(batch, &mut parts.steps));
    reading.table(schema::FlowRow::TABLE, |batch| rows::flows(batch, &mut parts.flows));
    reading.table(schema::CounterRow::TABLE, |batch| rows::points(batch, &mut parts.points));
    reading.table(schema::MemoryRow::TABLE, |batch| rows::memory(batch, &mut parts.memory));
    reading.table(schema::TransferRow::TABLE, |batch| rows::transfers(batch, &mut parts.transfers));
    reading.table(schema::WarningRow::TABLE, |batch| rows::warnings(batch, &mut parts.warnings));
    let mut args = rows::ArgsRows::default();
    reading.table(schema::InstantRow::TABLE, |batch| rows::instants(batch, parts, &mut args));
    if version > 1 {
        let frames = &mut parts.frames;
        reading.table(schema::FrameRow::TABLE, |batch| rows::frames(batch, frames));
        reading.table(schema::FunctionRow::TABLE, |batch| rows::functions(batch, frames));
        reading.table(schema::StackRow::TABLE, |batch| rows::stacks(batch, frames.len(), &mut parts.stacks));
    }
    reading.table(schema::OpenRow::TABLE, |batch| rows::open_slices(batch, parts));
}

/// The contents of the tables other than the slices, each a Parquet file in memory, by name.
///
/// # Errors
/// The first table that is of no use, and why.
pub(crate) fn contents_of(tables: &FxHashMap<String, Bytes>) -> Result<Contents, String> {
    let mut reading = TableReader { files: Files::Memory(tables), problems: Vec::new() };
    let mut parts = Contents::default();
    if let Some(version) = read_names(&mut reading, &mut parts) {
        read_sides(&mut reading, &mut parts, version);
    }
    reading.problems.pop().map_or(Ok(parts), Err)
}

/// How far the rings next to a sealed folder are in it.
pub(crate) fn positions(folder: &Path) -> std::io::Result<Vec<RingPosition>> {
    let list = std::fs::read_to_string(folder.join(FILE_NAME))?;
    let mut reading = TableReader { files: Files::Folder(folder, Checksums::parse(&list)), problems: Vec::new() };
    let mut rings = Vec::new();
    reading.table(schema::RingRow::TABLE, |batch| rows::rings(batch, &mut rings));
    Ok(rings)
}

/// A sealed trace, read as far as it is kept in memory.
#[derive(Debug)]
pub(crate) struct SealedTrace {
    pub(crate) store: Store,
    /// How far the rings next to it are in it.
    pub(crate) rings: Vec<RingPosition>,
}

impl SealedTrace {
    /// Opens a sealed folder. What is damaged in it becomes warnings of the store.
    ///
    /// # Errors
    /// That the folder cannot be read at all.
    pub(crate) fn open(folder: &Path) -> std::io::Result<SealedTrace> {
        let Opened { mut parts, names, slices, rings, mut problems, is_whole, slices_key } = Opened::read(folder)?;
        let store = match slices {
            Some(file) if is_whole => {
                let sidecar = match Sidecar::open(&folder.join(SIDECAR), slices_key.0, slices_key.1) {
                    Ok(sidecar) => Some(sidecar),
                    Err(problem) => {
                        // Of another version is no damage.
                        if !matches!(problem, SidecarError::Version(_)) {
                            problems.push(format!("{SIDECAR}: {problem}; it was made again"));
                        }
                        rebuilt(folder, &file, &names, slices_key, &mut problems)
                    }
                };
                if let Some(sidecar) = sidecar {
                    place_lanes(&mut parts, Pager::new(file, names, Arc::new(sidecar)));
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

/// Gives the tracks their lanes.
fn place_lanes(parts: &mut Contents, pager: Pager) {
    let pager = Arc::new(pager);
    for entry in pager.sidecar().lanes() {
        parts.set_lane(entry.track, entry.lane, || Box::new(PagedLane::new(&pager, *entry)));
    }
    parts.pager = Some(pager);
}

/// Makes the sidecar again, and puts it in its place where the folder can be written.
fn rebuilt(
    folder: &Path,
    file: &SlicesFile,
    names: &Resolver,
    key: (u64, u32),
    problems: &mut Vec<String>,
) -> Option<Sidecar> {
    match build(file, names, key, problems) {
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

fn build(
    file: &SlicesFile,
    names: &Resolver,
    key: (u64, u32),
    problems: &mut Vec<String>,
) -> Result<Vec<u8>, TableError> {
    let failed = |e| TableError::Part(PartError::Io(e));
    let mut pyramids = Pyramids::new(Vec::new(), Layout::default().min_headers).map_err(failed)?;
    let mut until: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for group in 0..file.parts.len() {
        match file.read(group).and_then(|batch| RowGroup::of(&batch, names)) {
            Ok(rows) => {
                let keys = rows.track.iter().copied().zip(rows.lane.iter().copied());
                for (i, key) in keys.enumerate() {
                    let Some(slice) = rows.slices.header(i) else { break };
                    let free_from = until.insert(key, slice.end).unwrap_or(i64::MIN);
                    if slice.start < free_from {
                        return Err(TableError::Rows("the slices of a lane overlap"));
                    }
                    pyramids.push(key.0, key.1, slice, rows.has_args(i)).map_err(failed)?;
                }
            }
            // Its slices are missing; all others are there.
            Err(problem) => problems.push(format!("{}: row group {group}: {problem}", SLICES.file_name())),
        }
        pyramids.end_group();
    }
    pyramids.finish(key.0, key.1).map_err(failed)
}
