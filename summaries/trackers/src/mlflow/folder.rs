//! `mlruns/EXPERIMENT/RUN`, each folder with a `meta.yaml` (mlflow's store/tracking/file_store.py).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    log::{Log, LogKind},
    names::{StoredRun, full_names},
    yaml,
};

pub(crate) const META: &str = "meta.yaml";
/// The folders in that of a run.
const OF_RUN: [&str; 4] = ["metrics", "params", "tags", "artifacts"];

/// The texts of a `meta.yaml`; none where it cannot be read.
type Facts = BTreeMap<String, String>;

fn facts(folder: &Path) -> Facts {
    yaml::read_texts(&folder.join(META)).unwrap_or_default()
}

fn is_run(facts: &Facts) -> bool {
    // Older versions say `run_uuid`.
    facts.contains_key("run_id") || facts.contains_key("run_uuid")
}

fn is_deleted(facts: &Facts) -> bool {
    facts.get("lifecycle_stage").is_some_and(|stage| stage == "deleted")
}

/// The runs of a folder that has a `meta.yaml` and `folders`: those of an experiment. The `meta.yaml` of a run, seen alone,
/// stands for the runs of its experiment: a new one changes the names of others.
pub(crate) fn runs(folder: &Path, folders: &[PathBuf]) -> Vec<Log> {
    let is_of_run = |folder: &PathBuf| folder.file_name().is_some_and(|name| OF_RUN.iter().any(|own| name == *own));
    if folders.iter().any(is_of_run) {
        return Vec::new();
    }
    let own_facts = facts(folder);
    match folder.parent() {
        Some(experiment) if is_run(&own_facts) && folders.is_empty() => {
            runs_of(experiment, &facts(experiment), &folders_in(experiment))
        }
        // The file was named alone.
        _ if folders.is_empty() => runs_of(folder, &own_facts, &folders_in(folder)),
        _ => runs_of(folder, &own_facts, folders),
    }
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort_unstable();
    folders
}

fn runs_of(experiment: &Path, experiment_facts: &Facts, folders: &[PathBuf]) -> Vec<Log> {
    let is_experiment = experiment_facts.contains_key("experiment_id") && !is_run(experiment_facts);
    if !is_experiment || is_deleted(experiment_facts) {
        return Vec::new();
    }
    let folder_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let group = experiment_facts.get("name").cloned().unwrap_or_else(|| folder_name(experiment));
    let (mut runs, mut paths) = (Vec::new(), Vec::new());
    for folder in folders {
        let facts = facts(folder);
        if is_run(&facts) && !is_deleted(&facts) {
            let name = facts.get("run_name").cloned().unwrap_or_default();
            runs.push(StoredRun { group: group.clone(), name, id: folder_name(folder) });
            paths.push(folder.clone());
        }
    }
    let store = experiment.parent().unwrap_or(experiment);
    let log = |(name, path): (String, PathBuf)| Log {
        kind: LogKind::MlflowFolder,
        folder: store.to_owned(),
        name,
        path,
        id: String::new(),
    };
    full_names(&runs).into_iter().zip(paths).map(log).collect()
}
