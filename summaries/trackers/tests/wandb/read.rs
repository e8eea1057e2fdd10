//! Reads a log to its end.

use std::{fs, path::Path};

use trackers::{Batch, Reader, Value, logs_of_file};

pub fn open(path: &Path) -> Box<dyn Reader> {
    logs_of_file(path).first().expect("a log").open()
}

/// Reads until there is no more.
pub fn rest(reader: &mut dyn Reader, allowance: u64) -> Batch {
    let mut all = Batch::default();
    for _ in 0..100_000 {
        let mut batch = Batch::default();
        reader.read(allowance, &mut batch).unwrap();
        all.entries.extend(batch.entries);
        all.problems.extend(batch.problems);
        all.n_bytes += batch.n_bytes;
        if !batch.has_more {
            return all;
        }
    }
    panic!("a log without end");
}

pub fn whole(path: &Path) -> Batch {
    rest(&mut *open(path), u64::MAX)
}

/// The entries as texts: NaN equals itself there.
pub fn shown(batch: &Batch) -> Vec<String> {
    batch.entries.iter().map(|entry| format!("{entry:?}")).collect()
}

/// Steps and values of a tag's scalars.
pub fn scalars(batch: &Batch, tag: &str) -> Vec<(i64, f64)> {
    let of_tag = batch.entries.iter().filter(|entry| entry.tag == tag);
    let scalar = |entry: &trackers::Entry| match entry.value {
        Value::Scalar(value) => Some((entry.step, value)),
        _ => None,
    };
    of_tag.filter_map(scalar).collect()
}

pub fn whats(batch: &Batch) -> Vec<&'static str> {
    batch.problems.iter().map(|problem| problem.what).collect()
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
