//! Finds the logs of a folder by the names of its files.

use std::path::{Path, PathBuf};

use crate::{
    csv,
    json_lines::JsonLines,
    log::{Log, LogKind, TRAINER_STATE},
    mlflow, sqlite,
    tail::first_line,
    trackio, trainer_state, wandb,
};

/// The longest first line that is looked at.
const MAX_FIRST_LINE: u64 = 1 << 20;

/// Finds the logs of `folder` itself, whose direct entries are `files` and `folders`: those of folders below it are
/// found when it is their turn. Reads no more than names, and what distinguishes one database or `meta.yaml` from another.
pub fn logs_in(folder: &Path, files: &[PathBuf], folders: &[PathBuf]) -> Vec<Log> {
    let mut logs: Vec<Log> = files.iter().flat_map(|file| logs_of_name(file, folders)).collect();
    let has_own = files.iter().any(|file| file.file_name().is_some_and(|name| name == TRAINER_STATE));
    let is_checkpoint =
        |folder: &PathBuf| trainer_state::checkpoint_step(folder).is_some() && folder.join(TRAINER_STATE).is_file();
    if !has_own && folders.iter().any(is_checkpoint) {
        logs.push(Log::folder(LogKind::TrainerState, folder));
    }
    logs
}

/// The logs of a file by its name.
fn logs_of_name(file: &Path, folders: &[PathBuf]) -> Vec<Log> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let folder = file.parent().unwrap_or(file);
    match &*name {
        TRAINER_STATE => {
            // A checkpoint is part of the output folder around it.
            let is_checkpoint = trainer_state::checkpoint_step(folder).is_some();
            let output = folder.parent().filter(|_| is_checkpoint).unwrap_or(folder);
            vec![Log::folder(LogKind::TrainerState, output)]
        }
        "metrics.csv" => vec![Log::file(LogKind::Csv, file)],
        "metrics.jsonl" => vec![Log::file(LogKind::JsonLines, file)],
        mlflow::folder::META => mlflow::folder::runs(folder, folders),
        _ if name.ends_with(".wandb") => vec![Log::file(LogKind::Wandb, file)],
        _ if [".db", ".sqlite", ".sqlite3"].iter().any(|ending| name.ends_with(ending)) => logs_of_database(file),
        _ => Vec::new(),
    }
}

fn logs_of_database(file: &Path) -> Vec<Log> {
    if !sqlite::is_database(file) {
        return Vec::new();
    }
    let Ok(connection) = sqlite::open(file) else { return Vec::new() };
    let tables = sqlite::tables(&connection);
    if mlflow::database::is_one(&tables) {
        mlflow::database::runs(&connection, file)
    } else if trackio::is_one(&connection, &tables) {
        trackio::runs(&connection, file)
    } else {
        Vec::new()
    }
}

/// The logs of a single file that the user named, by its content where its name does not say; none where it is no log.
pub fn logs_of_file(file: &Path) -> Vec<Log> {
    let found = logs_of_name(file, &[]);
    if !found.is_empty() {
        return found;
    }
    if wandb::is_wandb(file) {
        return vec![Log::file(LogKind::Wandb, file)];
    }
    if sqlite::is_database(file) {
        return logs_of_database(file);
    }
    let line = first_line(file, MAX_FIRST_LINE).ok().flatten().unwrap_or_default();
    let kind = match file.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl" | "ndjson") => LogKind::JsonLines,
        Some("csv") if csv::Table::is_header(&line) => LogKind::Csv,
        _ if JsonLines::is_line(&line) => LogKind::JsonLines,
        _ if csv::Table::is_header(&line) && csv::Table::has_step(file) => LogKind::Csv,
        _ => return Vec::new(),
    };
    vec![Log::file(kind, file)]
}
