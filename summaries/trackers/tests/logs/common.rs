//! Fixtures, and all that a log gives.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use flate2::read::GzDecoder;
use trackers::{Batch, Entry, Log, Reader, Value, logs_in};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A copy of a folder of fixtures, in which databases are unpacked.
pub fn copy(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_into(&fixture(name), folder.path());
    folder
}

fn copy_into(from: &Path, to: &Path) {
    if from.is_file() {
        let name = from.file_name().unwrap().to_str().unwrap();
        let mut bytes = fs::read(from).unwrap();
        let mut unpacked = Vec::new();
        if name.ends_with(".gz") {
            GzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked).unwrap();
            bytes = unpacked;
        }
        fs::write(to.join(name.trim_end_matches(".gz")), bytes).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let below = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&below).unwrap();
            copy_into(&path, &below);
        } else {
            copy_into(&path, to);
        }
    }
}

/// The logs in and below a folder, as a walk finds them.
pub fn walk(folder: &Path) -> Vec<Log> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { folders.push(path) } else { files.push(path) }
    }
    files.sort();
    folders.sort();
    let mut logs = logs_in(folder, &files, &folders);
    logs.extend(folders.iter().flat_map(|folder| walk(folder)));
    logs
}

/// Calls the reader until there is no more.
pub fn read_all(reader: &mut dyn Reader, allowance: u64) -> Batch {
    let mut all = Batch::default();
    loop {
        let mut batch = Batch::default();
        reader.read(allowance, &mut batch).unwrap();
        all.entries.append(&mut batch.entries);
        all.problems.append(&mut batch.problems);
        all.n_bytes += batch.n_bytes;
        if !batch.has_more {
            return all;
        }
    }
}

pub fn read_log(log: &Log) -> Batch {
    read_all(&mut *log.open(), u64::MAX)
}

/// The scalars, by their bits.
pub fn scalars(entries: &[Entry]) -> Vec<(&str, i64, u64)> {
    let scalar = |entry: &'_ Entry| match entry.value {
        Value::Scalar(value) => Some((entry.step, value.to_bits())),
        _ => None,
    };
    entries.iter().filter_map(|entry| scalar(entry).map(|(step, bits)| (entry.tag.as_str(), step, bits))).collect()
}

/// The scalars of a tag.
pub fn values(entries: &[Entry], tag: &str) -> Vec<(i64, f64)> {
    let own = scalars(entries).into_iter().filter(|(name, _, _)| *name == tag);
    own.map(|(_, step, bits)| (step, f64::from_bits(bits))).collect()
}

/// Makes a file look as if it was left alone for a day.
pub fn make_old(path: &Path) {
    let time = fs::metadata(path).unwrap().modified().unwrap() - Duration::from_secs(24 * 60 * 60);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
