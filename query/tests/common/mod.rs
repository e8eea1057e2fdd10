//! What the tests share: a trace of another tool, sealed traces, queries as rows of JSON.

// Each test file uses some of it.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use query::{Database, Format, Options, QueryError};
use serde_json::Value;
use trace_formats::import;
use trace_store::{Store, StoreOptions};

/// Chrome's JSON with `n` groups of nested slices on seven threads of two processes, with arguments, counters, flows, instants.
pub fn chrome(n: u32) -> String {
    let mut text = String::from("{\"traceEvents\": [\n");
    for pid in 1..=2 {
        let _ = writeln!(text, r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":"worker {pid}"}}}},"#);
    }
    for i in 0..n {
        let (pid, tid, at) = (1 + i % 2, i % 7, i * 100);
        let (name, dur) =
            (["load", "mat\\\"mul\\\"", "größe"][(i % 3) as usize], 10 + i.wrapping_mul(2_654_435_761) % 80);
        let place = format!(r#""pid":{pid},"tid":{tid}"#);
        let _ = writeln!(
            text,
            r#"{{"ph":"X","name":"{name}","cat":"cpu_op","ts":{at}.125,"dur":{dur},{place},"args":{{"i":{i}}}}},"#
        );
        let _ = writeln!(
            text,
            r#"{{"ph":"X","name":"inner {}","cat":"cpu_op","ts":{at}.25,"dur":{}.5,{place}}},"#,
            i % 40,
            dur / 3
        );
        if i % 10 == 0 {
            let _ =
                writeln!(text, r#"{{"ph":"C","name":"queue","ts":{at},"pid":{pid},"args":{{"depth":{}}}}},"#, i % 17);
            let _ = writeln!(text, r#"{{"ph":"i","name":"mark","ts":{at},"s":"t",{place}}},"#);
            let _ = writeln!(text, r#"{{"ph":"s","id":{i},"name":"f","cat":"flow","ts":{at}.5,{place}}},"#);
            let _ = writeln!(
                text,
                r#"{{"ph":"f","bp":"e","id":{i},"name":"f","cat":"flow","ts":{}.5,"pid":{},"tid":{}}},"#,
                at + 100,
                1 + (i + 1) % 2,
                (i + 1) % 7
            );
        }
    }
    text + r#"{"ph":"M","name":"thread_name","pid":1,"tid":0,"args":{"name":"main"}}]}"#
}

/// The trace in a file, sealed in a folder.
pub fn sealed(file: &Path, folder: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    import::open(&[file.to_owned()]).unwrap().read_all(&mut store).unwrap();
    trace_store::seal::write(&store, folder).unwrap();
    store
}

/// The folder of a run with a sealed trace.
pub fn run_folder(dir: &Path, run: &str, n: u32) -> PathBuf {
    let (file, folder) = (dir.join("x.json"), dir.join(run));
    std::fs::create_dir_all(folder.join("trace")).unwrap();
    std::fs::write(&file, chrome(n)).unwrap();
    sealed(&file, &folder.join("trace/sealed"));
    std::fs::remove_file(&file).unwrap();
    folder
}

/// A folder with `trace.json` and the same sealed in `sealed`.
pub fn both(n: u32) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("trace.json"), dir.path().join("sealed"));
    std::fs::write(&file, chrome(n)).unwrap();
    sealed(&file, &folder);
    (dir, file, folder)
}

pub fn open(path: impl AsRef<Path>) -> Database {
    Database::open(path.as_ref().to_str().unwrap(), Options::default()).unwrap()
}

/// The rows as JSON objects.
pub fn try_rows(database: &Database, sql: &str) -> Result<Vec<Value>, QueryError> {
    let mut out = Vec::new();
    let n = database.query(sql, None, Format::Json, &mut out)?;
    let rows: Vec<Value> = String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(n, rows.len() as u64);
    Ok(rows)
}

#[track_caller]
pub fn rows(database: &Database, sql: &str) -> Vec<Value> {
    try_rows(database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The only value of a query.
#[track_caller]
pub fn value(database: &Database, sql: &str) -> Value {
    let rows = rows(database, sql);
    assert_eq!(rows.len(), 1, "{sql}");
    rows[0].as_object().unwrap().values().next().unwrap().clone()
}
