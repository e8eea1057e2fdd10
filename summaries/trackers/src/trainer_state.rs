//! Hugging Face's `trainer_state.json`: each has the whole history so far (transformers' trainer_callback.py, TrainerState).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiter::{JsonObject, JsonValue};

use crate::{
    entry::{Entry, Param, Value},
    file, json,
    log::TRAINER_STATE,
    reader::{Batch, Problem, Reader, keep_entries},
};

/// The largest file that is read.
const MAX_BYTES: u64 = 256 << 20;

/// Follows the files of an output folder.
#[derive(Debug)]
pub(crate) struct TrainerStates {
    folder: PathBuf,
    /// The time of the last change of each file that was read.
    read: BTreeMap<PathBuf, SystemTime>,
    /// The steps of each tag that were handed out.
    steps: BTreeMap<String, BTreeSet<i64>>,
    params: BTreeMap<String, Param>,
}

impl TrainerStates {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), read: BTreeMap::new(), steps: BTreeMap::new(), params: BTreeMap::new() }
    }

    /// Reads a file that has changed. One that is half written is left for a later call.
    fn read_file(&mut self, path: PathBuf, batch: &mut Batch) -> io::Result<()> {
        let metadata = fs::metadata(&path)?;
        let modified = metadata.modified()?;
        if self.read.get(&path) == Some(&modified) {
            return Ok(());
        }
        let bytes = match file::read(&path, MAX_BYTES) {
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => {
                let what = "a trainer_state.json of more than 256 MiB";
                batch.problems.push(Problem { what, bytes: 0..metadata.len() });
                self.read.insert(path, modified);
                return Ok(());
            }
            bytes => bytes?,
        };
        batch.n_bytes += bytes.len() as u64;
        match json::parse_bytes(&bytes) {
            Some(JsonValue::Object(state)) => self.take(&state, file::seconds(Some(modified)), batch),
            _ if !file::is_settled(&metadata) => return Ok(()),
            _ => {
                let what = "a trainer_state.json that is no object of JSON";
                batch.problems.push(Problem { what, bytes: 0..bytes.len() as u64 });
            }
        }
        self.read.insert(path, modified);
        Ok(())
    }

    fn take(&mut self, state: &JsonObject<'_>, wall: f64, batch: &mut Batch) {
        let params = params_of(state);
        if params != self.params && !params.is_empty() {
            self.params.clone_from(&params);
            batch.entries.push(Entry { tag: String::new(), step: 0, wall, value: Value::Params(params) });
        }
        let Some(JsonValue::Array(history)) = json::get(state, "log_history") else { return };
        for row in history.iter() {
            match row {
                JsonValue::Object(row) => self.take_row(row, wall, batch),
                _ => batch.problems.push(Problem { what: "a row of the history that is no object", bytes: 0..0 }),
            }
        }
    }

    fn take_row(&mut self, row: &JsonObject<'_>, wall: f64, batch: &mut Batch) {
        let step = json::get(row, "step").and_then(json::integer).unwrap_or(0);
        for (name, value) in row.iter().filter(|(name, _)| name != "step") {
            let Some(value) = json::number(value) else { continue };
            let tag = tag(name);
            if self.steps.entry(tag.clone()).or_default().insert(step) {
                batch.entries.push(Entry { tag, step, wall, value: Value::Scalar(value) });
            }
        }
    }
}

impl Reader for TrainerStates {
    fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        let files = files(&self.folder);
        if files.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for file in files {
            if batch.n_bytes >= allowance && batch.n_bytes > 0 {
                batch.has_more = true;
                break;
            }
            // A checkpoint may have been deleted meanwhile, as the trainer does with old ones.
            match self.read_file(file, batch) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                result => keep_entries(result, batch)?,
            }
        }
        Ok(())
    }
}

/// The files of an output folder, that of the fewest steps first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let checkpoints = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
        let step = checkpoint_step(&entry.path())?;
        Some((step, entry.path().join(TRAINER_STATE)))
    });
    let mut files: Vec<(u64, PathBuf)> = checkpoints.collect();
    files.sort_unstable();
    let all = files.into_iter().map(|(_, file)| file).chain([folder.join(TRAINER_STATE)]);
    all.filter(|file| file.is_file()).collect()
}

/// The step of a folder that is called `checkpoint-STEP`.
pub(crate) fn checkpoint_step(folder: &Path) -> Option<u64> {
    folder.file_name()?.to_str()?.strip_prefix("checkpoint-")?.parse().ok()
}

/// The tag that transformers' own loggers give a value (integrations/integration_utils.py, rewrite_logs).
fn tag(name: &str) -> String {
    match (name.strip_prefix("eval_"), name.strip_prefix("test_")) {
        (Some(name), _) => format!("eval/{name}"),
        (_, Some(name)) => format!("test/{name}"),
        _ => format!("train/{name}"),
    }
}

/// What stays the same during a run.
fn params_of(state: &JsonObject<'_>) -> BTreeMap<String, Param> {
    const NAMES: [&str; 6] =
        ["num_train_epochs", "max_steps", "train_batch_size", "logging_steps", "eval_steps", "save_steps"];
    let named = |name: &&str| Some(((*name).to_owned(), Param::Number(json::number(json::get(state, name)?)?)));
    let mut params: BTreeMap<String, Param> = NAMES.iter().filter_map(named).collect();
    // Of a search for hyperparameters.
    if let Some(JsonValue::Object(trial)) = json::get(state, "trial_params") {
        params.extend(json::params(trial, "/"));
    }
    params
}
