//! What is sealed, read by DuckDB, pandas and pyarrow: they give our numbers.
//!
//! `STEPSCOPE_PYTHON` names a Python that has them (`cargo xtask test` makes one); unset skips.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use trace_model::{Batch, Event, EventKind, Function, NO_ARGS, NO_NODE, Name, TrackKey};
use trace_store::{Store, StoreOptions};

/// More than two row groups.
const SLICES: u32 = 300_000;

/// Slices of eight tracks with nodes, args and steps; counters and flows next to them.
fn store() -> Store {
    let mut batch = Batch::new();
    batch.set_origin(0);
    batch.name(Name::Process { pid: 7, host: "löwe".into(), name: "train.py".into(), ns_per_tick: 1.0 });
    let sites = [("op", "MatMul"), ("op", "Ünïcode \"add\""), ("wait", "idle"), ("kernel", "k"), ("queue", "depth")];
    for (id, (category, name)) in (0..).zip(sites) {
        batch.name(Name::Site { pid: 7, id, category: category.into(), name: name.into() });
    }
    for id in 0..50 {
        let (name, device) = (format!("layer{}/n{id}", id % 7), "cpu:0".into());
        batch.name(Name::Node { pid: 7, id, name, op: "MatMul".into(), device });
    }
    let mut at = [0i64; 8];
    for i in 0..SLICES {
        let track = (i * 7 % 8) as usize;
        let start = at[track] + i64::from(i % 13);
        let end = start + i64::from(i.wrapping_mul(2_654_435_761) >> 16);
        at[track] = end;
        let site = i % 4;
        let args = if i % 1_000 == 0 { batch.args(&format!("{{\"i\":{i}}}")) } else { NO_ARGS };
        let key = TrackKey { pid: 7, ring: track as u32 };
        let node = if site < 2 { i % 50 } else { NO_NODE };
        let (correlation, arg) = (i % 50, u64::from(i / 1_000) << 32 | u64::from(i % 500));
        let slice = Event { node, correlation, arg, args, ..Event::slice(site, start, end) };
        batch.track(key).events.push(slice);
        let other = Event { start, end: start, node: NO_NODE, args: NO_ARGS, correlation: i, ..slice };
        if i % 100 == 0 {
            let arg = f64::from(i).to_bits();
            batch.track(key).events.push(Event { kind: EventKind::Counter, site: 4, arg, ..other });
        }
        if i % 50 == 0 {
            batch.track(key).events.push(Event { kind: EventKind::FlowOut, site: 3, ..other });
            let key = TrackKey { pid: 7, ring: 3 };
            batch.track(key).events.push(Event { kind: EventKind::FlowIn, site: 3, ..other });
        }
    }
    samples(&mut batch);
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    store.apply(batch);
    store
}

/// Two functions are sampled a hundred times, the inner one in three of four; every tenth sample has arguments.
fn samples(batch: &mut Batch) {
    batch.name(Name::Site { pid: 7, id: 5, category: "sample".into(), name: "cpu".into() });
    for (id, name) in [(0, "main"), (1, "inner")] {
        batch.name(Name::Frame { pid: 7, id, module: "/bin/train".into(), address: 64 });
        let function = Function { name: name.into(), file: "train.c".into(), line: 3 };
        batch.name(Name::Function { pid: 7, frame: id, function });
        let parent = if id == 0 { u32::MAX } else { 0 };
        batch.name(Name::Stack { pid: 7, id, parent, frame: id });
    }
    for i in 0..100 {
        let args = if i % 10 == 0 { batch.args(&format!("{{\"cpu\":{i}}}")) } else { NO_ARGS };
        let (start, arg) = (i64::from(i) * 1_000, u64::from(i % 4 > 0));
        let event = Event { arg, args, ..Event::at(EventKind::Instant, 5, start) };
        batch.track(TrackKey { pid: 7, ring: 0 }).events.push(event);
    }
}

/// Count and sum of durations by name, as lines.
fn by_name(store: &Store) -> Vec<String> {
    let mut names: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    for slice in store.tracks().iter().flat_map(|t| &t.lanes).flat_map(|l| l.slices(&(i64::MIN..i64::MAX))) {
        let sums = names.entry(&store.sites()[slice.site as usize].name).or_default();
        *sums = (sums.0 + 1, sums.1 + slice.dur());
    }
    names.iter().map(|(name, (count, sum))| format!("{name} {count} {sum}")).collect()
}

const SCRIPT: &str = r#"
import sys, duckdb, pandas, pyarrow.fs, pyarrow.parquet
folder = sys.argv[1]
# Not through a file object of Python's: https://github.com/apache/arrow/issues/34314
files = pyarrow.fs.LocalFileSystem()
def table(name): return f"'{folder}/{name}.parquet'"
for row in duckdb.sql(f"select name, count(*), sum(dur_ns)::bigint from {table('slices')} group by name").fetchall():
    print("duckdb", *row)
frame = pandas.read_parquet(folder + "/slices.parquet", filesystem=files)
for row in frame.groupby("name")["dur_ns"].agg(["count", "sum"]).itertuples():
    print("pandas", *row)
print("args", *duckdb.sql(f"select count(args), max(args) from {table('slices')}").fetchall()[0])
print("step", *duckdb.sql(f"select count(*), sum(arg)::bigint from {table('slices')} where category = 'op' and step = 17").fetchall()[0])
print("tracks", *duckdb.sql(f"select count(*), min(host), min(process) from {table('tracks')}").fetchall()[0])
print("join", duckdb.sql(f"select count(*) from {table('slices')} join {table('tracks')} using (track_id)").fetchall()[0][0])
print("flows", duckdb.sql(f"select count(*) from {table('flows')} where from_ts_ns = to_ts_ns").fetchall()[0][0])
print("counter", *duckdb.sql(f"select count(*), sum(value)::bigint from {table('counters')}").fetchall()[0])
for row in duckdb.sql(f"""select f.name, count(*) from {table('instants')} i join {table('stacks')} s on i.arg = s.stack_id
        join {table('functions')} f using (frame_id) where i.category = 'sample' group by f.name""").fetchall():
    print("sample", *row)
frame = pandas.read_parquet(folder + "/instants.parquet", filesystem=files)
print("instant args", frame["args"].count(), frame["args"].dropna().str.extract(r"(\d+)")[0].astype(int).sum())
file = pyarrow.parquet.ParquetFile(folder + "/slices.parquet")
for i in range(file.num_row_groups):
    group, ts = file.metadata.row_group(i), file.read_row_group(i, ["ts_ns"])["ts_ns"].to_pandas()
    ts_column = group.column(0)
    print("group", group.num_rows, ts.is_monotonic_increasing, ts_column.compression, ts_column.has_offset_index,
          ts_column.has_column_index, "DELTA_BINARY_PACKED" in ts_column.encodings)
"#;

#[test]
fn duckdb_pandas_and_pyarrow_give_our_numbers() {
    let Some(python) = test_support::variable("STEPSCOPE_PYTHON", "DuckDB and pandas on sealed traces") else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sealed");
    let store = store();
    let sealed = trace_store::seal::write(&store, &folder).unwrap();
    assert_eq!(sealed.slices, u64::from(SLICES));
    let lines = run(&python, &folder);
    let of = |prefix: &str| -> Vec<String> {
        let mut found: Vec<String> = lines.iter().filter_map(|l| Some(l.strip_prefix(prefix)?.to_owned())).collect();
        found.sort();
        found
    };
    let expected = by_name(&store);
    assert_eq!(of("duckdb "), expected);
    assert_eq!(of("pandas "), expected);
    assert_eq!(of("args "), ["300 {\"i\":99000}"]);
    // Of the thousand slices of that step the first two of each four sites.
    let waits: u32 = (17_000..18_000).filter(|i| i % 4 < 2).map(|i| i % 500).sum();
    assert_eq!(of("step "), [format!("500 {waits}")]);
    assert_eq!(of("tracks "), ["8 löwe train.py"]);
    assert_eq!(of("join "), [SLICES.to_string()]);
    assert_eq!(of("flows "), [(SLICES / 50).to_string()]);
    let counted: u64 = (0..u64::from(SLICES)).step_by(100).sum();
    assert_eq!(of("counter "), [format!("{} {counted}", SLICES / 100)]);
    assert_eq!(of("sample "), ["inner 75", "main 25"]);
    assert_eq!(of("instant args "), ["10 450"]);
    let rest = SLICES - 2 * 131_072;
    let groups = [131_072, 131_072, rest].map(|rows| format!("{rows} True ZSTD True True True"));
    assert_eq!(of("group "), groups);
}

fn run(python: &std::ffi::OsStr, folder: &Path) -> Vec<String> {
    let output =
        Command::new(python).args(["-c", SCRIPT]).arg(folder).env("PYTHONIOENCODING", "utf-8").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(ToOwned::to_owned).collect()
}
