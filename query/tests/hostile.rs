//! What is no query, names what is not there, or would write or read something else: one clear error, nothing done.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{both, open, rows, try_rows, value};
use query::{Database, Format, Options, QueryError};
use serde_json::json;

#[track_caller]
fn refused(database: &Database, sql: &str, says: &[&str]) {
    match try_rows(database, sql) {
        Err(QueryError::Sql(text)) => {
            for part in says {
                assert!(text.contains(part), "{sql}: {text:?} lacks {part:?}");
            }
            assert!(!text.contains('\n'), "{sql}: {text:?}");
        }
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn errors_name_what_is_wrong_and_what_is_near() {
    let (_dir, file, _) = both(10);
    let database = open(&file);
    refused(&database, "select * from slics", &["no table slics", "did you mean slices?", "tracks"]);
    refused(&database, "select * from customers", &["no table customers", "the tables are slices"]);
    refused(&database, "select durns from slices", &["no column durns", "did you mean dur_ns?", "track_id"]);
    refused(&database, "select s.nam from slices s", &["no column s.nam", "did you mean name?"]);
    refused(&database, "selec * from slices", &["no SQL", "selec"]);
    refused(&database, "", &[]);
    refused(&database, "select", &[]);
    refused(&database, "select 'oops from slices", &["no SQL"]);
    refused(&database, "select count(*) from slices; select 1", &[]);
    refused(&database, "select name from slices where", &["no SQL"]);
    refused(&database, "select name", &["no column name"]);
    refused(&database, "select nosuch(name) from slices", &["nosuch"]);
    refused(&database, &format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000)), &[]);
    assert_eq!(value(&database, "select count(*) from slices;"), json!(20));
    // A name in a CTE is no table.
    assert_eq!(value(&database, "with x as (select 1 one) select one from x"), json!(1));
}

#[test]
fn nothing_is_written_and_nothing_else_read() {
    let (dir, file, folder) = both(10);
    let database = open(&file);
    let before = std::fs::read_dir(dir.path()).unwrap().count();
    let other = folder.join("slices.parquet").display().to_string();
    let out = dir.path().join("out.csv").display().to_string();
    for sql in [
        format!("create external table t stored as parquet location '{other}'"),
        format!("copy slices to '{out}'"),
        format!("copy (select 1) to '{out}' stored as csv"),
        format!("explain analyze copy slices to '{out}'"),
        "create table t as select * from slices".into(),
        "create view v as select * from slices".into(),
        "drop table slices".into(),
        "insert into slices select * from slices".into(),
        "delete from slices".into(),
        "set datafusion.execution.target_partitions = 1".into(),
        "prepare p as select 1".into(),
        format!("select * from '{other}'"),
        format!("select * from read_parquet('{other}')"),
        format!("select * from read_csv('{other}')"),
    ] {
        refused(&database, &sql, &[]);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), before);
    assert_eq!(value(&database, "select count(*) from slices"), json!(20));
    assert!(!rows(&database, "describe slices").is_empty() && !rows(&database, "show tables").is_empty());
}

#[test]
fn paths_without_anything_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("note.txt"), "nothing").unwrap();
    let missing = dir.path().join("missing").display().to_string();
    for path in
        [dir.path().to_str().unwrap(), &missing, &dir.path().join("note.txt").display().to_string(), "", "s3://"]
    {
        let error = Database::open(path, Options::default()).err().unwrap();
        assert!(matches!(&error, QueryError::Open { at, .. } if at == path), "{error}");
    }
}

#[test]
fn errors_of_a_run_are_told() {
    let (_dir, file, _) = both(10);
    let database = open(&file);
    let error = try_rows(&database, "select cast(name as bigint) from slices").unwrap_err();
    assert!(matches!(error, QueryError::Failed(_) | QueryError::Sql(_)), "{error}");
    let error = try_rows(&database, "select dur_ns / (dur_ns - dur_ns) from slices").unwrap_err();
    assert!(error.to_string().to_lowercase().contains("divide"), "{error}");
    // The database is as good as before.
    assert_eq!(value(&database, "select count(*) from slices"), json!(20));
}

#[test]
fn a_query_can_be_cancelled() {
    let (_dir, file, _) = both(100);
    let database = open(&file);
    let canceller = database.canceller();
    let cancel = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        canceller.cancel();
    });
    let endless = "select count(*) from slices a, slices b, slices c, slices d, slices e where a.dur_ns + b.dur_ns + c.dur_ns + d.dur_ns = e.ts_ns";
    let mut out = Vec::new();
    let ended = database.query(endless, None, Format::Csv, &mut out);
    assert!(matches!(ended, Err(QueryError::Cancelled)), "{ended:?}");
    cancel.join().unwrap();
    assert_eq!(value(&database, "select count(*) from slices"), json!(200));
}

#[test]
fn limits_hold() {
    let (_dir, file, _) = both(100);
    let database = open(&file);
    let mut out = Vec::new();
    let n = database.query("select * from slices order by ts_ns", Some(7), Format::Csv, &mut out).unwrap();
    assert_eq!((n, out.iter().filter(|b| **b == b'\n').count()), (7, 8));
    assert_eq!(database.query("select * from slices", Some(0), Format::Csv, &mut Vec::new()).unwrap(), 0);
}
