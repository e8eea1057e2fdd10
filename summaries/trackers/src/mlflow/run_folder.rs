//! A run's folder in `mlruns`: a file for each metric, parameter and tag (mlflow's store/tracking/file_store.py).

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::images::Images;
use crate::{
    entry::{Entry, Param, Value},
    file,
    json::param_of_text,
    progress::Progress,
    reader::{Batch, Problem, Reader, keep_entries},
    tail::Tail,
};

/// The largest parameter or tag that is read.
const MAX_BYTES: u64 = 1 << 20;
/// The deepest folders of a metric's name.
const MAX_DEPTH: usize = 16;
/// The fewest bytes that are read of a metric.
const MIN_READ: u64 = 1 << 12;

/// Follows a run's folder.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    metrics: BTreeMap<String, Metric>,
    params: BTreeMap<String, Small>,
    note: Option<Small>,
    images: Images,
}

#[derive(Debug)]
struct Metric {
    tail: Tail,
    progress: Progress,
}

/// A small file, as it was read.
#[derive(Debug, PartialEq)]
struct Small {
    modified: Option<SystemTime>,
    text: String,
}

impl RunFolder {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            metrics: BTreeMap::new(),
            params: BTreeMap::new(),
            note: None,
            images: Images::default(),
        }
    }

    fn read_params(&mut self, batch: &mut Batch) {
        let mut is_changed = false;
        for (name, path) in files_below(&self.path.join("params")) {
            let new = read_small(&path, self.params.get(&name), batch);
            is_changed |= new.is_some();
            self.params.extend(new.map(|new| (name, new)));
        }
        if is_changed {
            let params = self.params.iter().map(|(name, param)| (name.clone(), param_of_text(&param.text)));
            let params: BTreeMap<String, Param> = params.collect();
            batch.entries.push(Entry { tag: String::new(), step: 0, wall: 0.0, value: Value::Params(params) });
        }
    }

    fn read_note(&mut self, batch: &mut Batch) {
        let path = self.path.join("tags/mlflow.note.content");
        if path.is_file()
            && let Some(new) = read_small(&path, self.note.as_ref(), batch)
        {
            let (wall, value) = (file::seconds(new.modified), Value::Text(new.text.clone()));
            batch.entries.push(Entry { tag: "note".to_owned(), step: 0, wall, value });
            self.note = Some(new);
        }
    }

    fn read_metrics(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        for (tag, path) in files_below(&self.path.join("metrics")) {
            let new = || Metric { tail: Tail::new(&path), progress: Progress::default() };
            self.metrics.entry(tag).or_insert_with(new);
        }
        let mut has_more = batch.has_more;
        for (tag, metric) in &mut self.metrics {
            let left = allowance.saturating_sub(batch.n_bytes).max(MIN_READ);
            batch.has_more = false;
            let read = metric.tail.read(left, batch)?;
            has_more |= batch.has_more;
            if read.is_restarted {
                metric.progress.restart();
            }
            for line in read.lines.iter().filter(|line| !line.text.trim().is_empty()) {
                if metric.progress.next(|| line.text.clone()).is_none() {
                    continue;
                }
                match point(tag, &line.text) {
                    Some(entry) => batch.entries.push(entry),
                    None => {
                        batch.problems.push(Problem { what: "a line that is no metric", bytes: line.bytes.clone() });
                    }
                }
            }
        }
        batch.has_more = has_more;
        Ok(())
    }
}

impl Reader for RunFolder {
    fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        fs::metadata(&self.path)?;
        self.read_params(batch);
        self.read_note(batch);
        self.images.read(&self.path, allowance, batch);
        let result = self.read_metrics(allowance, batch);
        keep_entries(result, batch)
    }
}

/// A line `TIMESTAMP VALUE [STEP [DATASET DIGEST]]`, the time in milliseconds.
fn point(tag: &str, line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (time, value, step) = match words[..] {
        [time, value] => (time, value, "0"),
        [time, value, step] | [time, value, step, _, _] => (time, value, step),
        _ => return None,
    };
    let wall = time.parse::<i64>().ok()? as f64 / 1e3;
    let value = Value::Scalar(value.parse().ok()?);
    Some(Entry { tag: tag.to_owned(), step: step.parse().ok()?, wall, value })
}

/// The files in and below a folder, with their names below it.
fn files_below(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    search(folder, "", MAX_DEPTH, &mut found);
    found.sort_unstable();
    found
}

fn search(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => search(&entry.path(), &format!("{name}/"), depth - 1, found),
            Ok(kind) if kind.is_file() => found.push((name, entry.path())),
            _ => {}
        }
    }
}

/// Reads a small file anew if it has changed; `None` if it has not.
fn read_small(path: &Path, known: Option<&Small>, batch: &mut Batch) -> Option<Small> {
    let metadata = fs::metadata(path);
    let modified = metadata.and_then(|metadata| metadata.modified()).ok();
    if known.is_some_and(|known| known.modified == modified) {
        return None;
    }
    let text = match file::read(path, MAX_BYTES) {
        Ok(bytes) => {
            batch.n_bytes += bytes.len() as u64;
            String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned()
        }
        Err(_) => {
            let what = "a parameter or tag that cannot be read, or of more than 1 MiB";
            batch.problems.push(Problem { what, bytes: 0..0 });
            String::new()
        }
    };
    Some(Small { modified, text })
}
