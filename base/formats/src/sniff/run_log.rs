//! Recognises what experiment trackers and training libraries log besides event files.

use std::{fs::File, io::Read as _, path::Path};

/// Bytes of a file that are examined.
const PREFIX: u64 = 64 << 10;
/// The first bytes of Weights & Biases' log.
pub(super) const WANDB_MAGIC: &[u8] = b":W&B";
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Whether a file is a log of another tool: Weights & Biases, MLflow, trackio, Lightning, Hugging Face. Decides by the
/// name where the tool always uses the same one; opens a database, or MLflow's `meta.yaml`.
pub fn is_run_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match &*name {
        "trainer_state.json" | "metrics.csv" | "metrics.jsonl" => true,
        "meta.yaml" => contains(&prefix(path), b"experiment_id"),
        _ if name.ends_with(".wandb") => true,
        _ if is_database_name(path) => is_database(&prefix(path)),
        _ => false,
    }
}

/// Whether a file has the name of an SQLite database.
pub fn is_database_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["db", "sqlite", "sqlite3"].iter().any(|known| ending == *known))
}

/// Whether a file that the user named is one: besides [`is_run_log`], any table or lines of JSON.
pub(super) fn may_be_run_log(path: &Path, prefix: &[u8]) -> bool {
    let is_text = path.extension().is_some_and(|ending| ending == "csv" || ending == "jsonl" || ending == "ndjson");
    is_text && !prefix.contains(&0) || prefix.starts_with(WANDB_MAGIC) || is_database(prefix) || is_run_log(path)
}

/// Whether the bytes begin a database with MLflow's or trackio's tables.
fn is_database(prefix: &[u8]) -> bool {
    let has_table = |name: &str| {
        let forms = [format!("TABLE {name} "), format!("TABLE {name}("), format!("TABLE \"{name}\"")];
        forms.iter().any(|form| contains(prefix, form.as_bytes()))
    };
    prefix.starts_with(SQLITE_MAGIC) && has_table("metrics")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The first bytes of a file; none where it cannot be read.
fn prefix(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = File::open(path).and_then(|file| file.take(PREFIX).read_to_end(&mut bytes));
    bytes
}
