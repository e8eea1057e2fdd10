//! Databases that another connection is writing.

use std::path::Path;

use rusqlite::{Connection, params};
use trackers::{Batch, Entry, Log, Value};

use crate::common::{copy, read_all, read_log, scalars, values, walk};

/// A connection as the tools have it.
fn writer(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    // Rows of runs that are not there are wanted.
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    connection
}

fn find(logs: &[Log], name: &str) -> Log {
    logs.iter().find(|log| log.name == name).unwrap().clone()
}

fn add_trackio(connection: &Connection, run: &str, step: i64, metrics: &str) {
    let row = params![run, "2026-11-26T22:52:01.5+00:00", "first", step, metrics.as_bytes()];
    let query = "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)";
    connection.execute(query, row).unwrap();
}

fn add_mlflow(connection: &Connection, run: &str, step: i64, value: f64) {
    let query = "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES ('loss', ?, 1700000000000, ?, ?, 0)";
    connection.execute(query, params![value, run, step]).unwrap();
}

#[test]
fn a_project_of_trackio_grows() {
    let folder = copy("trackio");
    let path = folder.path().join("project.db");
    let log = find(&walk(folder.path()), "project/first");
    let mut reader = log.open();
    read_all(&mut *reader, 1000);
    let connection = writer(&path);
    add_trackio(&connection, "another", 1, r#"{"loss": 7}"#);
    add_trackio(&connection, &log.id, 100, r#"{"loss": "NaN", "deep": {"a": {"b": "-Infinity"}}, "n": 1e400}"#);
    assert!(path.with_file_name("project.db-wal").metadata().unwrap().len() > 0);
    let batch = read_all(&mut *reader, u64::MAX);
    let expected = [
        ("loss", 100, f64::NAN.to_bits()),
        ("deep.a.b", 100, f64::NEG_INFINITY.to_bits()),
        ("n", 100, f64::INFINITY.to_bits()),
    ];
    assert_eq!((scalars(&batch.entries), batch.problems.len()), (expected.to_vec(), 0));
    assert_eq!(batch.entries[0].wall, 1_795_733_521.5);
    // What is not committed is not there.
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    add_trackio(&connection, &log.id, 101, r#"{"loss": 1}"#);
    assert_eq!(read_all(&mut *reader, u64::MAX), Batch::default());
    connection.execute_batch("COMMIT").unwrap();
    assert_eq!(values(&read_all(&mut *reader, u64::MAX).entries, "loss"), [(101, 1.0)]);
    // Damaged rows, and a row after them.
    for row in ["{", "[1]", "", r#"{"a": {"_type": "trackio.image", "file_path": "../../../etc/passwd"}}"#] {
        add_trackio(&connection, &log.id, 102, row);
    }
    add_trackio(&connection, &log.id, 103, r#"{"loss": 2, "odd": {"_type": "trackio.histogram", "bins": [1]}}"#);
    let batch = read_all(&mut *reader, u64::MAX);
    assert_eq!((scalars(&batch.entries), batch.problems.len()), (vec![("loss", 103, 2_f64.to_bits())], 5));
    assert_eq!(walk(folder.path()).len(), 4, "the other run is found");
}

#[test]
fn rows_of_other_runs_are_passed_over() {
    let folder = copy("trackio");
    let path = folder.path().join("project.db");
    let log = find(&walk(folder.path()), "project/first");
    let mut reader = log.open();
    let n_first = read_all(&mut *reader, 1).entries.len();
    let connection = writer(&path);
    for step in 0..200 {
        let run = if step % 50 == 0 { &*log.id } else { "another" };
        add_trackio(&connection, run, step, r#"{"x": 1}"#);
    }
    let mut batch = Batch::default();
    reader.read(1, &mut batch).unwrap();
    assert!(batch.has_more && batch.entries.len() == 1, "about as much as is allowed");
    assert_eq!(values(&read_all(&mut *reader, 1).entries, "x"), [(50, 1.0), (100, 1.0), (150, 1.0)]);
    assert_eq!(read_log(&log).entries.len(), n_first + 4);
}

#[test]
fn trackio_of_older_versions() {
    let folder = tempfile::tempdir().unwrap();
    let connection = writer(&folder.path().join("old.db"));
    connection
        .execute_batch(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);
             INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES
                 ('2025-01-01T00:00:00', 'a/b', 0, '{\"loss\": 0.5}'), ('2025-01-01T00:00:01', 'c', 0, '{\"loss\": 1}'),
                 ('2025-01-01T00:00:02', 'a/b', 1, '{\"loss\": 0.25}');",
        )
        .unwrap();
    let logs = walk(folder.path());
    let names: Vec<(&str, &str)> = logs.iter().map(|log| (&*log.name, &*log.id)).collect();
    assert_eq!(names, [("old/a_b", "a/b"), ("old/c", "c")]);
    assert_eq!(values(&read_log(&logs[0]).entries, "loss"), [(0, 0.5), (1, 0.25)]);
}

#[test]
fn a_database_of_mlflow_grows() {
    let folder = copy("mlflow.db.gz");
    let path = folder.path().join("mlflow.db");
    let log = find(&walk(folder.path()), "experiment/other_name");
    let mut reader = log.open();
    assert!(!read_all(&mut *reader, 1).entries.is_empty());
    let connection = writer(&path);
    add_mlflow(&connection, &log.id, 50, 0.5);
    add_mlflow(&connection, "another", 50, 0.25);
    connection.execute("INSERT INTO params (key, value, run_uuid) VALUES ('late', '5', ?)", [&log.id]).unwrap();
    let note = "UPDATE tags SET value = 'new' WHERE key = 'mlflow.note.content' AND run_uuid = ?";
    connection.execute(note, [&log.id]).unwrap();
    let batch = read_all(&mut *reader, u64::MAX);
    let [Entry { value: Value::Params(params), .. }, Entry { value: Value::Text(note), .. }, point] = &*batch.entries
    else {
        panic!("{batch:?}")
    };
    assert_eq!((params.len(), note.as_str()), (6, "new"));
    assert_eq!((point.step, &point.value, point.wall), (50, &Value::Scalar(0.5), 1_700_000_000.0));
    assert_eq!(read_all(&mut *reader, u64::MAX).entries, []);
    // Rows get other numbers.
    connection.execute("DELETE FROM metrics WHERE run_uuid <> ?", [&log.id]).unwrap();
    connection.execute_batch("VACUUM").unwrap();
    assert_eq!(read_all(&mut *reader, u64::MAX).entries, []);
    add_mlflow(&connection, &log.id, 51, f64::MAX);
    add_mlflow(&connection, &log.id, 52, 1.0);
    assert_eq!(values(&read_all(&mut *reader, u64::MAX).entries, "loss"), [(51, f64::INFINITY), (52, 1.0)]);
    // A writer with the database for itself makes a reader wait, and then try again later.
    connection.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").unwrap();
    add_mlflow(&connection, &log.id, 53, 2.0);
    assert!(reader.read(u64::MAX, &mut Batch::default()).is_err());
    connection.execute_batch("COMMIT").unwrap();
    assert_eq!(values(&read_all(&mut *reader, u64::MAX).entries, "loss"), [(53, 2.0)]);
}

#[test]
fn a_deleted_run_is_no_log() {
    let folder = copy("mlflow.db.gz");
    assert_eq!(walk(folder.path()).len(), 3);
    let connection = writer(&folder.path().join("mlflow.db"));
    connection.execute_batch("UPDATE experiments SET lifecycle_stage = 'deleted' WHERE name = 'experiment'").unwrap();
    assert_eq!(walk(folder.path()), []);
}
