//! `stepscope dumps`: what PyTorch's memory snapshots and flight recorder dumps say.

mod recordings;
mod snapshot;

use std::fs::File;
use std::path::{Path, PathBuf};

use torch_dumps::{Dump, Error, Recording, rank_of_file, read_dump, read_recording, read_snapshot};

use crate::args;
use crate::outcome::{Failure, Outcome};

/// Reads the files, which are one or two snapshots, or the dumps of a job's ranks.
pub fn run(args: &args::Dumps) -> Outcome {
    let files = files(&args.paths)?;
    let Some((first, others)) = files.split_first() else { return Err(Failure::wrong_use("no file is given")) };
    match (open(first, |file| read_dump(file, rank(first, 0)))?, others) {
        (Dump::Snapshot(snapshot), []) => {
            warn(first, &snapshot.warnings);
            snapshot::explain(&snapshot, args.json);
        }
        (Dump::Snapshot(before), [file]) => {
            let after = open(file, read_snapshot)?;
            warn(first, &before.warnings);
            warn(file, &after.warnings);
            snapshot::compare(&before, &after, args.json);
        }
        (Dump::Snapshot(_), _) => {
            return Err(refused(first, &"a memory snapshot: one is explained, two are compared"));
        }
        (Dump::Recording(recording), _) => {
            let mut all: Vec<Recording> = vec![recording];
            for (file, number) in others.iter().zip(1..) {
                all.push(open(file, |reader| read_recording(reader, rank(file, number)))?);
            }
            files.iter().zip(&all).for_each(|(file, recording)| warn(file, &recording.warnings));
            recordings::explain(&all, args.json);
        }
    }
    Ok(())
}

fn open<T>(file: &Path, read: impl FnOnce(File) -> Result<T, Error>) -> Result<T, Failure> {
    let opened = File::open(file).map_err(|error| refused(file, &error))?;
    read(opened).map_err(|error| refused(file, &error))
}

fn refused(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::wrong_use(format_args!("{}: {error}", file.display()))
}

/// The rank in a file's name, else its number among the files.
fn rank(file: &Path, number: u32) -> u32 {
    file.file_name().and_then(|name| rank_of_file(&name.to_string_lossy())).unwrap_or(number)
}

/// The files of each path, a folder's by name.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| refused(path, &error))?;
        let mut found: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|file| file.is_file()).collect();
        if found.is_empty() {
            return Err(refused(path, &"the folder has no files"));
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

fn warn(file: &Path, warnings: &torch_dumps::Warnings) {
    for (what, count) in warnings {
        note!("warning: {}: {} {what}", file.display(), text::count(*count));
    }
}
