//! One run that a tool logged.

use std::path::{Path, PathBuf};

/// The file in which Hugging Face's trainer keeps its history.
pub(crate) const TRAINER_STATE: &str = "trainer_state.json";

/// The tool that wrote a log, and its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogKind {
    /// Weights & Biases' `run-ID.wandb`, online or offline.
    Wandb,
    /// trackio's `PROJECT.db`.
    Trackio,
    /// A run's folder in MLflow's `mlruns`.
    MlflowFolder,
    /// MLflow's `mlflow.db`.
    MlflowDatabase,
    /// Lightning's `metrics.csv`, with `hparams.yaml` next to it.
    Csv,
    /// `metrics.jsonl`: a JSON object a line.
    JsonLines,
    /// Hugging Face's `trainer_state.json`, in the output folder or in its checkpoints.
    TrainerState,
}

/// One run that a tool logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The tool.
    pub kind: LogKind,
    /// The folder whose name is the beginning of the run's name.
    pub folder: PathBuf,
    /// What follows the folder's name in the run's name, such as `experiment/run`; empty where the folder is the run.
    pub name: String,
    /// The file, or the folder, in which the run is.
    pub path: PathBuf,
    /// The run's id in a database; otherwise empty.
    pub id: String,
}

impl Log {
    pub(crate) fn file(kind: LogKind, file: &Path) -> Self {
        let folder = file.parent().unwrap_or(file).to_owned();
        Self { kind, folder, name: String::new(), path: file.to_owned(), id: String::new() }
    }

    pub(crate) fn folder(kind: LogKind, folder: &Path) -> Self {
        Self { kind, folder: folder.to_owned(), name: String::new(), path: folder.to_owned(), id: String::new() }
    }

    /// Whether a change of `path` may be a change of this log.
    pub fn is_changed_by(&self, path: &Path) -> bool {
        match self.kind {
            LogKind::Trackio | LogKind::MlflowDatabase => {
                let (own, other) = (self.path.as_os_str().as_encoded_bytes(), path.as_os_str().as_encoded_bytes());
                // The index of the journal, `-shm`, changes with each reader.
                other.strip_prefix(own).is_some_and(|rest| matches!(rest, b"" | b"-wal" | b"-journal"))
            }
            LogKind::Csv => path == self.path || path == self.path.with_file_name("hparams.yaml"),
            LogKind::TrainerState => {
                path.starts_with(&self.path) && path.file_name().is_some_and(|name| name == TRAINER_STATE)
            }
            LogKind::Wandb | LogKind::JsonLines | LogKind::MlflowFolder => path.starts_with(&self.path),
        }
    }
}
