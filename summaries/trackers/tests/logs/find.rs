//! Which files and folders are logs, and what changes them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use trackers::{Log, LogKind, logs_in, logs_of_file};

use crate::common::{copy, fixture, walk};

fn kinds(logs: &[Log]) -> Vec<LogKind> {
    logs.iter().map(|log| log.kind).collect()
}

#[test]
fn files_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        kinds(&logs_of_file(&path))
    };
    assert_eq!(write("any.csv", "epoch,loss\n0,1\n"), [LogKind::Csv]);
    assert_eq!(write("any.log", "loss,iteration\n0,1\n"), [LogKind::Csv]);
    assert_eq!(write("other.csv", "name,age\nx,1\n"), []);
    assert_eq!(write("any.jsonl", "{\"loss\": 1}\n"), [LogKind::JsonLines]);
    assert_eq!(write("metrics.json", "{\"iteration\": 1, \"loss\": 1}\n"), [LogKind::JsonLines]);
    assert_eq!(write("trace.json", "{\"traceEvents\": []}\n"), []);
    assert_eq!(write("text", "hello, step\nby, step\n"), []);
    assert_eq!(write("empty", ""), []);
    assert_eq!(write("a.db", "no database"), []);
    assert_eq!(logs_of_file(&folder.path().join("missing.csv")), []);
    // A database under another name.
    let other = folder.path().join("copy.bin");
    fs::copy(copy("mlflow.db.gz").path().join("mlflow.db"), &other).unwrap();
    assert_eq!(kinds(&logs_of_file(&other)), [LogKind::MlflowDatabase; 3]);
    // Another program's database.
    let other = folder.path().join("other.sqlite3");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE metrics (id, name)").unwrap();
    assert_eq!(logs_of_file(&other), []);
}

#[test]
fn a_folder_without_logs_is_not_opened() {
    // No such files exist: only their names are looked at.
    let files = ["a.csv", "model.pt", "events.log", "metrics.json"].map(PathBuf::from);
    assert_eq!(logs_in(Path::new("/missing"), &files, &[PathBuf::from("/missing/checkpoint-x")]), []);
    let files = ["metrics.csv", "metrics.jsonl"].map(PathBuf::from);
    assert_eq!(kinds(&logs_in(Path::new("/missing"), &files, &[])), [LogKind::Csv, LogKind::JsonLines]);
    assert_eq!(logs_in(Path::new("/missing"), &["meta.yaml", "a.db"].map(PathBuf::from), &[]), []);
}

#[test]
fn runs_of_mlruns() {
    let folder = fixture("mlruns");
    let logs = walk(&folder);
    assert_eq!(logs.len(), 3);
    for log in &logs {
        assert_eq!((log.folder.as_path(), log.path.parent().and_then(Path::parent)), (&*folder, Some(&*folder)));
        let changed = ["metrics/val/acc", "params/lr", "tags/mlflow.note.content", "artifacts/images/x.png"];
        assert!(changed.iter().all(|file| log.is_changed_by(&log.path.join(file))));
        assert!(!log.is_changed_by(&folder.join("other/metrics/loss")));
    }
    // A new run's own file is what is seen first.
    let meta = logs[0].path.join("meta.yaml");
    let mut found = logs_in(&logs[0].path, std::slice::from_ref(&meta), &[]);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let mut all = logs.clone();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(found, all);
}

#[test]
fn checkpoints_are_one_run() {
    let folder = copy("trainer");
    let checkpoint = folder.path().join("checkpoint-6");
    let file = checkpoint.join("trainer_state.json");
    let [log] = &*logs_in(&checkpoint, std::slice::from_ref(&file), &[]) else { panic!("one log") };
    assert_eq!((log.kind, &*log.path, &*log.folder), (LogKind::TrainerState, folder.path(), folder.path()));
    assert!(log.is_changed_by(&file) && !log.is_changed_by(&checkpoint.join("model.safetensors")));
    // Before the training ends there are only checkpoints.
    fs::remove_file(folder.path().join("trainer_state.json")).unwrap();
    let folders = [checkpoint, folder.path().join("runs")];
    assert_eq!(logs_in(folder.path(), &[], &folders), std::slice::from_ref(log));
}

#[test]
fn what_changes_a_log() {
    let log = |kind, path: &str| Log {
        kind,
        folder: PathBuf::from("/a"),
        name: String::new(),
        path: PathBuf::from(path),
        id: String::new(),
    };
    let is_changed = |kind, path, other: &str| log(kind, path).is_changed_by(Path::new(other));
    for kind in [LogKind::Trackio, LogKind::MlflowDatabase] {
        for (file, wanted) in
            [("x.db", true), ("x.db-wal", true), ("x.db-journal", true), ("x.db-shm", false), ("y.db", false)]
        {
            assert_eq!(is_changed(kind, "/a/x.db", &format!("/a/{file}")), wanted, "{file}");
        }
    }
    assert!(is_changed(LogKind::Csv, "/a/metrics.csv", "/a/hparams.yaml"));
    assert!(is_changed(LogKind::Csv, "/a/metrics.csv", "/a/metrics.csv"));
    assert!(!is_changed(LogKind::Csv, "/a/metrics.csv", "/a/other.csv"));
    assert!(is_changed(LogKind::JsonLines, "/a/metrics.jsonl", "/a/metrics.jsonl"));
    assert!(!is_changed(LogKind::JsonLines, "/a/metrics.jsonl", "/a/metrics.jsonl2"));
}
