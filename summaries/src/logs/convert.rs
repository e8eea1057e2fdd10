//! Writes what other tools logged as event files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use formats::{
    event_file::{self, EventFile},
    is_event_file_name,
    tfrecord::append_record,
};
use prost::Message as _;
use trackers::Batch;

use super::translate::Translator;
use crate::{
    damage::{Damage, DamageKind},
    run::Problem,
    walk::{RunFile, RunSource, walk},
};

/// The bytes of a log that are read before the events are written.
const ALLOWANCE: u64 = 4 << 20;

/// Why a log cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A log cannot be read, or an event file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The log or the event file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder of a run has event files: the run would be there twice.
    #[error("{}: has event files already; choose another folder", .0.display())]
    Exists(PathBuf),
    /// There is no log of another tool.
    #[error("{}: no log of Weights & Biases, MLflow, trackio, Lightning or Hugging Face in or below it", .0.display())]
    NoLog(PathBuf),
}

/// A run that was converted.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedRun {
    /// Its name: the folder below the output folder.
    pub run: String,
    /// The event file that was written; none where the log has no values.
    pub file: Option<PathBuf>,
    /// The number of values, each of them a point, an image, a text, ...
    pub n_values: u64,
    /// What could not be read, and was skipped.
    pub damage: Vec<Damage>,
}

/// Converts the logs of other tools in and below `path`, or the log `path`, to event files: a folder in `out` for each run.
/// Calls `progress` after each run with the number of runs that are done and that there are. Returns the runs, and the
/// folders that could not be searched.
///
/// # Errors
/// When there is no log, a run's folder in `out` has event files, a log cannot be read or a file cannot be written. Runs
/// that were converted before stay.
pub fn convert(
    path: &Path,
    out: &Path,
    mut progress: impl FnMut(usize, usize),
) -> Result<(Vec<ConvertedRun>, Vec<Problem>), ConvertError> {
    let mut problems = Vec::new();
    let found = if path.is_file() { logs_of_file(path) } else { walk(path, path, &mut problems) };
    let logs: Vec<(String, trackers::Log)> = found
        .into_iter()
        .filter_map(|found| match found.source {
            RunSource::Log(log) => Some((found.run, log)),
            RunSource::EventFile(_) => None,
        })
        .collect();
    if logs.is_empty() {
        return Err(ConvertError::NoLog(path.to_owned()));
    }
    for (run, _) in &logs {
        refuse_existing(&out.join(run))?;
    }
    let n_logs = logs.len();
    let mut runs = Vec::with_capacity(n_logs);
    for (i, (run, log)) in logs.into_iter().enumerate() {
        runs.push(convert_log(&log, run, out)?);
        progress(i + 1, n_logs);
    }
    Ok((runs, problems))
}

fn logs_of_file(path: &Path) -> Vec<RunFile> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let run = |log: trackers::Log| {
        let run = if log.name.is_empty() { name.clone() } else { log.name.clone() };
        RunFile { run, folder: log.folder.clone(), source: RunSource::Log(log) }
    };
    trackers::logs_of_file(path).into_iter().map(run).collect()
}

fn refuse_existing(folder: &Path) -> Result<(), ConvertError> {
    let has_events = |entries: fs::ReadDir| entries.flatten().any(|entry| is_event_file_name(&entry.path()));
    if fs::read_dir(folder).is_ok_and(has_events) { Err(ConvertError::Exists(folder.to_owned())) } else { Ok(()) }
}

fn convert_log(log: &trackers::Log, run: String, out: &Path) -> Result<ConvertedRun, ConvertError> {
    let read_error = |source| ConvertError::File { path: log.path.clone(), source };
    let mut converted = ConvertedRun { run, file: None, n_values: 0, damage: Vec::new() };
    let (mut reader, mut translator) = (log.open(), Translator::default());
    let mut file: Option<EventFile> = None;
    loop {
        let mut batch = Batch::default();
        reader.read(ALLOWANCE, &mut batch).map_err(read_error)?;
        let damage = batch.problems.drain(..).map(|problem| Damage {
            file: log.path.as_path().into(),
            kind: DamageKind::Log(problem.what),
            bytes: problem.bytes,
        });
        converted.damage.extend(damage);
        if !batch.entries.is_empty() {
            let file = match &mut file {
                Some(file) => file,
                None => file.insert(create(&out.join(&converted.run), batch.entries[0].wall)?),
            };
            converted.n_values += batch.entries.len() as u64;
            let mut records = Vec::new();
            for event in batch.entries.drain(..).flat_map(|entry| translator.events(entry)) {
                append_record(&mut records, &event.encode_to_vec());
            }
            file.write(&records).map_err(|source| ConvertError::File { path: file.path().to_owned(), source })?;
        }
        if !batch.has_more {
            converted.file = file.map(|file| file.path().to_owned());
            return Ok(converted);
        }
    }
}

/// Creates a run's event file, named after the time of its first value (Unix seconds).
fn create(folder: &Path, wall: f64) -> Result<EventFile, ConvertError> {
    let io_error = |(path, source)| ConvertError::File { path, source };
    let mut file = EventFile::create(folder, "", wall as u64).map_err(io_error)?;
    let mut records = Vec::new();
    append_record(&mut records, &event_file::version(wall).encode_to_vec());
    file.write(&records).map_err(|source| io_error((file.path().to_owned(), source)))?;
    Ok(file)
}
