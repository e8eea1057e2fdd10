//! Imports traces of other tools as batches for a store.
//!
//! * The format of a file is recognised by its content, not its name; gzip and zstd are unpacked.
//! * Everything that can be read is imported: of a damaged or truncated file the intact part, with counted warnings.
//!   Overlapping slices take the next lane.
//! * Arguments stay in the file and are read on demand.
//! * Several files are the ranks of one job, and are put on one clock ([`mod@align`]). [`traces`] says which files of a
//!   folder are one trace. A file that repeats another one is left out ([`copies`]).
//!
//! Reading order: [`input`] (bytes), a [`mod@reader`] per format (such as [`chrome`]), [`stage`] (events in the order of
//! the file), [`marks`], [`flows`], [`lanes`] (pairing and ordering), [`emit`] (batches).

mod align;
mod async_slices;
mod atrace;
mod chrome;
mod copies;
mod emit;
mod flows;
mod folder;
mod ids;
mod input;
mod lanes;
mod linux;
mod marks;
mod messages;
mod nsys;
mod perfetto;
mod problems;
mod reader;
mod sched;
mod sites;
mod stage;
mod step_stats;
mod trace_dat;
mod xplane;

pub use copies::without_copies;
pub(crate) use folder::traces_in;
pub use folder::{Files, traces};
pub use reader::ImportError;

use emit::{Emitter, Pids};
use formats::{FileKind, TraceFormat};
use input::Input;
use problems::Problems;
use reader::Reader;
use stage::Stage;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use trace_model::{Batch, Warning, WarningKind};
use trace_store::Store;

/// Files being imported. All batches belong to one store, in order.
#[derive(Default)]
pub struct Import {
    waiting: VecDeque<PathBuf>,
    reading: Option<OpenFile>,
    staged: Vec<Stage>,
    leaving: VecDeque<Emitter>,
    warnings: Vec<Warning>,
    origin: i64,
    is_ordered: bool,
    /// The last number of an arrow; numbers are unique over all files.
    correlations: u32,
    bytes_done: u64,
    bytes_total: u64,
}

struct OpenFile {
    path: PathBuf,
    reader: Box<dyn Reader>,
    stage: Stage,
    on_disk: u64,
    unpacked: u64,
}

/// The progress of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes on disk that were read.
    pub bytes: u64,
    /// Bytes on disk of all files.
    pub of: u64,
}

/// Begins to import files; several are the ranks of one job. Files that repeat another one are left out, with a
/// warning.
///
/// # Errors
/// Fails if a file cannot be read, or is not a trace in a known format.
pub fn open(paths: &[PathBuf]) -> Result<Import, ImportError> {
    let (paths, warnings) = without_copies(paths);
    let mut bytes_total = 0;
    for path in &paths {
        format_of(path)?;
        bytes_total += std::fs::metadata(path).map_err(|e| ImportError::Io(path.clone(), e))?.len();
    }
    Ok(Import { warnings, waiting: paths.into(), bytes_total, ..Import::default() })
}

/// Begins to import TensorFlow's `RunMetadata` messages from other files, each with its step, as one trace called
/// `source`.
#[must_use]
pub fn run_metadata(source: &str, steps: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Import {
    let mut stage = Stage::new(source);
    for (step, message) in steps {
        step_stats::message(&message, Some(step), &mut stage);
    }
    let mut import = Import::default();
    stage.finish(&mut import.correlations);
    import.staged.push(stage);
    import
}

fn format_of(path: &Path) -> Result<TraceFormat, ImportError> {
    match formats::sniff(path) {
        Ok(FileKind::Trace(format)) => Ok(format),
        Ok(FileKind::Unknown(what)) => Err(ImportError::Foreign(path.to_owned(), what.to_string())),
        Ok(FileKind::MemorySnapshot) => {
            let what = "a memory snapshot, which `stepscope view` shows and `stepscope dumps` explains";
            Err(ImportError::Foreign(path.to_owned(), what.to_owned()))
        }
        Ok(_) => Err(ImportError::Foreign(path.to_owned(), "it is no file of another tool's trace".to_owned())),
        Err(e) => Err(ImportError::Io(path.to_owned(), e)),
    }
}

fn reader(format: TraceFormat, input: &Input) -> Box<dyn Reader> {
    match format {
        TraceFormat::ChromeJson => Box::new(chrome::Chrome::new(input)),
        TraceFormat::Perfetto => Box::new(perfetto::Perfetto::new(input)),
        TraceFormat::XPlane => Box::new(xplane::XPlane::new(input)),
        TraceFormat::StepStats => Box::new(step_stats::StepStats::new(input)),
        TraceFormat::Ftrace => Box::new(linux::Ftrace::new(input)),
        TraceFormat::PerfScript => Box::new(linux::PerfScript::new(input)),
        TraceFormat::Nsys => Box::new(nsys::Nsys::new(input)),
        TraceFormat::TraceDat => Box::new(trace_dat::TraceDat::new(input)),
    }
}

impl Import {
    /// Reads the next batch, which may be empty. To be called again while [`Batch::has_more`].
    ///
    /// # Errors
    /// Fails if a file cannot be read any more.
    pub fn poll_staged(&mut self) -> Result<Batch, ImportError> {
        let mut batch = Batch::new();
        batch.more = true;
        if self.reading.is_some() || !self.waiting.is_empty() {
            self.read()?;
        } else {
            if !self.is_ordered {
                self.check()?;
                self.order();
            }
            batch.set_origin(self.origin);
            batch.warnings.append(&mut self.warnings);
            if let Some(emitter) = self.leaving.front_mut()
                && !emitter.fill(&mut batch)
            {
                self.leaving.pop_front();
            }
            batch.more = !self.leaving.is_empty();
        }
        (batch.disk_bytes, batch.live) = (self.progress().bytes, Some(false));
        Ok(batch)
    }

    /// Reads all files into a store.
    ///
    /// # Errors
    /// As [`Import::poll_staged`].
    pub fn read_all(&mut self, store: &mut Store) -> Result<(), ImportError> {
        loop {
            let batch = self.poll_staged()?;
            let more = batch.has_more();
            store.apply(batch);
            if !more {
                return Ok(());
            }
        }
    }

    /// The progress so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let of_current = self.reading.as_ref().map_or(0, |r| {
            let share = r.reader.position() as f64 / r.unpacked.max(1) as f64;
            (share.min(1.0) * r.on_disk as f64) as u64
        });
        Progress { bytes: self.bytes_done + of_current, of: self.bytes_total }
    }

    fn read(&mut self) -> Result<(), ImportError> {
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => match self.waiting.pop_front() {
                Some(path) => begin(path)?,
                None => return Ok(()),
            },
        };
        let failed = |e| ImportError::Io(reading.path.clone(), e);
        if reading.reader.read(&mut reading.stage).map_err(failed)? {
            self.reading = Some(reading);
            return Ok(());
        }
        self.finish(reading);
        Ok(())
    }

    fn finish(&mut self, mut reading: OpenFile) {
        reading.reader.finish(&mut reading.stage);
        reading.stage.finish(&mut self.correlations);
        self.bytes_done += reading.on_disk;
        self.staged.push(reading.stage);
    }

    /// Ends the reading; the events that were read so far can still be polled.
    pub fn stop(&mut self) {
        self.waiting.clear();
        if let Some(reading) = self.reading.take() {
            self.finish(reading);
        }
    }

    /// Fails if nothing but damage was found. A trace without events is valid.
    fn check(&self) -> Result<(), ImportError> {
        let is_damage = |kind| matches!(kind, WarningKind::Damage | WarningKind::TornTail | WarningKind::SizeLimit);
        let damage = |stage: &Stage| {
            let warnings = stage.problems.warnings(&stage.source).into_iter();
            warnings.filter(|warning| is_damage(warning.kind)).map(|warning| warning.text)
        };
        match self.staged.iter().find(|stage| stage.is_empty() && damage(stage).next().is_some()) {
            Some(stage) if self.staged.iter().all(Stage::is_empty) => {
                Err(ImportError::Unreadable(stage.path.clone(), damage(stage).collect::<Vec<_>>().join("; ")))
            }
            _ => Ok(()),
        }
    }

    /// Puts all files on one clock.
    fn order(&mut self) {
        self.is_ordered = true;
        let mut stages = std::mem::take(&mut self.staged);
        let messages = messages::join(&mut stages, &mut self.correlations);
        let shifts = align::shifts(&mut stages, &messages, &mut self.warnings);
        let begins = stages.iter().zip(&shifts).filter_map(|(s, shift)| Some(shift.apply(s.range()?.0)));
        self.origin = begins.min().unwrap_or(0);
        let mut pids = Pids::default();
        self.leaving = stages.into_iter().zip(shifts).map(|(s, shift)| Emitter::new(s, shift, &mut pids)).collect();
    }
}

fn begin(path: PathBuf) -> Result<OpenFile, ImportError> {
    let format = format_of(&path)?;
    let on_disk = std::fs::metadata(&path).map_err(|e| ImportError::Io(path.clone(), e))?.len();
    let source = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned();
    let mut problems = Problems::default();
    let input = Input::open(&path, &mut problems)?;
    let unpacked = input.length;
    let mut stage = Stage::new(&source);
    (stage.path, stage.problems) = (path.clone(), problems);
    Ok(OpenFile { path, reader: reader(format, &input), stage, on_disk, unpacked })
}

#[cfg(test)]
mod tests;
