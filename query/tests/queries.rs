//! What queries give: the same from files and through the store, over many traces, of derived tables and logdirs.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{both, chrome, open, rows, run_folder, sealed, try_rows, value};
use query::{Database, Options};
use serde_json::json;
use summaries::{SummaryWriter, WriterOptions};
use trace_analysis::report::analyse;
use trace_analysis::stalls;
use trace_analysis::stalls::by_cause;

#[test]
fn files_and_stores_give_the_same_rows() {
    let (_dir, file, folder) = both(3_000);
    let (of_store, of_files) = (open(&file), open(&folder));
    for table in of_files.tables() {
        if ["scalars", "summaries", "ops", "op_counters", "stalls"].contains(&table.name) {
            continue;
        }
        let columns: Vec<&str> = table.columns().map(|(name, ..)| name).filter(|name| *name != "trace").collect();
        let all = columns.join(", ");
        let sql = format!("select {all} from {} order by {all}", table.name);
        let (a, b) = (rows(&of_store, &sql), rows(&of_files, &sql));
        assert_eq!(a.len(), b.len(), "{}", table.name);
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(a, b, "{}", table.name);
        }
    }
    assert_eq!(value(&of_files, "select count(*) from slices"), json!(6_000));
    assert_eq!(value(&of_files, "select count(*) from slices s join tracks t using (track_id)"), json!(6_000));
    assert!(of_files.take_warnings().is_empty());
}

/// 100 page faults while A ran for half of the time and B for a quarter of it.
#[test]
fn counters_of_ops_add_up() {
    use trace_model::{Batch, Event, EventKind, NO_ARGS, NO_NODE, Name, TrackKey};
    let (key, mut batch) = (TrackKey { pid: 1, ring: 0 }, Batch::new());
    batch.set_origin(0);
    batch.name(Name::Process { pid: 1, host: "h".into(), name: "p".into(), ns_per_tick: 1.0 });
    batch.name(Name::Thread { key, name: "main".into(), tid: 10 });
    for (id, (category, name)) in (0..).zip([("op", "A"), ("op", "B"), ("thread counter", "page-faults")]) {
        batch.name(Name::Site { pid: 1, id, category: category.into(), name: name.into() });
    }
    let event = |kind, site, start, end, arg| Event {
        kind,
        depth: 0,
        start,
        end,
        site,
        node: NO_NODE,
        correlation: 0,
        arg,
        args: NO_ARGS,
    };
    let value = |at, value: f64| event(EventKind::Counter, 2, at, at, value.to_bits());
    let op = |site, start, end| event(EventKind::Slice, site, start, end, 0);
    batch.track(key).events = vec![value(0, 0.0), op(0, 0, 500), op(1, 500, 750), value(1_000, 100.0)];
    let mut store = trace_store::Store::default();
    store.apply(batch);
    let dir = tempfile::tempdir().unwrap();
    trace_store::seal::write(&store, &dir.path().join("sealed")).unwrap();
    let database = open(dir.path().join("sealed"));
    let sql = "select name, counter, value from op_counters order by value desc, name";
    let found: Vec<String> = rows(&database, sql).iter().map(ToString::to_string).collect();
    let row =
        |name: serde_json::Value, value| json!({"name": name, "counter": "page-faults", "value": value}).to_string();
    assert_eq!(found, [row(json!("A"), 50), row(json!("B"), 25), row(json!(null), 25)]);
    let tids = "select distinct tid from counters join tracks using (track_id) where counters.name = 'page-faults'";
    assert_eq!(common::value(&database, tids), json!(10));
}

#[test]
fn windows_read_a_part_of_the_file() {
    let (_dir, _, folder) = both(150_000);
    let database = open(&folder);
    let sql = "select count(*) n, sum(dur_ns) ns from slices where ts_ns between 2000000000 and 2001000000";
    let plan = rows(&database, &format!("explain analyze {sql}"));
    let text = plan[0]["plan"].as_str().unwrap();
    // Three row groups of 131,072 slices: one is read, and of it a page.
    let pruned = text.split("row_groups_pruned_statistics=").nth(1).unwrap();
    assert!(pruned.starts_with("3 total → 1 matched"), "{text}");
    assert_eq!(rows(&database, sql)[0]["n"], json!(20));
}

#[test]
fn a_folder_of_many_says_the_trace_of_each_row() {
    let dir = tempfile::tempdir().unwrap();
    for (run, n) in [("a", 100), ("b c", 200), ("d/ü", 300)] {
        let folder = run_folder(dir.path(), run, n);
        let writer = SummaryWriter::create(&folder, WriterOptions::default()).unwrap();
        (0..5).for_each(|step| writer.add_scalar("loss", step as f32 / 2.0, step));
        writer.close().unwrap();
    }
    std::fs::write(dir.path().join("z.json"), chrome(50)).unwrap();
    std::fs::write(dir.path().join("broken.json"), "{\"traceEvents\": [{\"ph\":\"X\",\"ts\":").unwrap();
    let database = open(dir.path());
    let counted = rows(&database, "select trace, count(*) n from slices group by trace order by trace");
    let expected: Vec<_> = [("a", 200), ("b c", 400), ("d/ü", 600), ("z.json", 100)]
        .map(|(trace, n)| json!({"trace": trace, "n": n}))
        .into();
    assert_eq!(counted, expected);
    // Only the trace that is asked for is opened.
    let some = open(dir.path());
    let plan = rows(&some, "explain select * from slices where trace = 'b c'");
    let text = plan.iter().map(|row| row["plan"].as_str().unwrap()).collect::<String>();
    assert!(text.contains("b c/trace") && !text.contains("StreamingTable") && !text.contains("/a/"), "{text}");
    assert_eq!(value(&some, "select count(*) from slices where trace like 'd%'"), json!(600));
    let joined =
        "select trace, min(value) lo, max(value) hi from slices join scalars on trace = run group by trace order by 1";
    assert_eq!(rows(&database, joined)[2], json!({"trace": "d/ü", "lo": 0.0, "hi": 2.0}));
}

#[test]
fn analyses_are_tables() {
    let (_dir, file, folder) = both(2_000);
    let scratch = tempfile::tempdir().unwrap();
    let store = sealed(&file, &scratch.path().join("again"));
    let range = store.range();
    let database = open(&folder);
    let causes =
        rows(&database, "select cause, count(*) n, sum(dur_ns) ns from stalls group by cause order by ns desc, cause");
    let own = by_cause(&stalls(&store, range.clone()));
    assert_eq!(causes.len(), own.len());
    for total in own {
        let row = json!({"cause": total.cause.name(), "n": total.count, "ns": total.total_ns});
        assert!(causes.contains(&row), "{row} in {causes:?}");
    }
    let ops = rows(&database, "select name, count, self_ns, p99_ns, critical_ns from ops order by self_ns desc, name");
    for (row, op) in ops.iter().zip(&analyse(&store, range).ops) {
        let (f, critical) = (op.figures, op.critical_ns);
        let own = json!({"name": op.name, "count": f.count, "self_ns": f.self_ns, "p99_ns": f.p99_ns, "critical_ns": critical});
        assert_eq!(*row, own);
    }
    assert!(!ops.is_empty());
}

#[test]
fn logdirs_are_tables() {
    let dir = tempfile::tempdir().unwrap();
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    (0..40_000).for_each(|step| writer.add_scalar("loss", 1.0 / (1.0 + step as f32), step));
    writer.add_scalar("odd", f32::NAN, 3);
    writer.add_text("note", "hello", 1);
    writer.close().unwrap();
    let database = open(dir.path());
    assert_eq!(database.traces().len(), 0);
    let sums =
        rows(&database, "select run, tag, count(*) n, max(step) last from scalars group by run, tag order by tag");
    assert_eq!(sums[0], json!({"run": ".", "tag": "loss", "n": 40_000, "last": 39_999}));
    assert_eq!(value(&database, "select value from scalars where tag = 'odd'"), json!("NaN"));
    let kinds = rows(&database, "select tag, kind, points, last_step from summaries order by tag");
    assert_eq!(kinds[0], json!({"tag": "loss", "kind": "scalars", "points": 40_000, "last_step": 39_999}));
    assert_eq!((kinds[1]["tag"].as_str(), kinds[1]["kind"].as_str()), (Some("note"), Some("text")));
    assert_eq!(value(&database, "select count(*) from slices"), json!(0));
}

#[test]
fn damage_is_left_out_and_told() {
    let (_dir, _, folder) = both(150_000);
    let path = folder.join("slices.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[1_000] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    let database = open(&folder);
    assert_eq!(value(&database, "select count(*) from slices"), json!(300_000 - (1 << 17)));
    let warnings = database.take_warnings();
    assert!(warnings.iter().any(|text| text.contains("slices.parquet")), "{warnings:?}");
}

#[test]
fn more_than_the_memory_goes_to_disk_or_is_refused() {
    let (_dir, _, folder) = both(150_000);
    let small = Options { memory_bytes: 24 << 20, threads: std::num::NonZeroUsize::new(2) };
    let database = Database::open(folder.to_str().unwrap(), small).unwrap();
    let sorted = "select sum(n) from (select row_number() over (order by dur_ns, ts_ns, name, args) n from slices)";
    assert_eq!(value(&database, sorted), json!(300_000_u64 * 300_001 / 2));
    let tiny = Options { memory_bytes: 1 << 16, ..small };
    let database = Database::open(folder.to_str().unwrap(), tiny).unwrap();
    let error = try_rows(&database, "select ts_ns, name, count(*) from slices group by 1, 2 order by 3").unwrap_err();
    assert!(error.to_string().contains("--memory"), "{error}");
}
