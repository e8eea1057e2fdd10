//! The same SQL here and on a cluster: the same rows, and clear words where there are none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

extern crate query as query;

mod common;
#[path = "../../tests/common/mod.rs"]
mod traces;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::Ballista;
use common::{Nodes, Sight};
use query::{Database, Options, QueryError};
use serde_json::{Value, json};
use summaries::{SummaryWriter, WriterOptions};
use traces::{chrome, open, rows, run_folder, try_rows, value};

/// Longer than any of these tests: nothing is abandoned that is only slow.
const PATIENT_S: u64 = 180;

#[test]
fn other_process() {
    common::other_process();
}

/// Runs that are sealed, with scalars, one run that is another tool's file.
fn runs(n: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (run, n) in [("a", n), ("b c", n / 2), ("d/ü", n / 3)] {
        let folder = run_folder(dir.path(), run, n);
        let writer = SummaryWriter::create(&folder, WriterOptions::default()).unwrap();
        (0..50).for_each(|step| writer.add_scalar("loss", step as f32 / 2.0, step));
        writer.add_scalar("odd", f32::NAN, 3);
        writer.close().unwrap();
    }
    std::fs::write(dir.path().join("z.json"), chrome(50)).unwrap();
    dir
}

/// Rows in an order that does not depend on how they came.
fn sorted(mut rows: Vec<Value>) -> Vec<String> {
    let mut rows: Vec<String> = rows.drain(..).map(|row| row.to_string()).collect();
    rows.sort();
    rows
}

/// Queries of every kind of plan. Where their order is total they say so by a final `order by`.
const QUERIES: &[&str] = &[
    "select trace, name, count(*) n, sum(dur_ns) ns, min(ts_ns), max(ts_ns) from slices group by 1, 2 order by 1, 2",
    "select count(*) n from slices where ts_ns between 1000000 and 2000000",
    "select trace, count(distinct track_id) t, count(distinct name) n from slices group by 1 order by 1",
    "select s.trace, t.process, t.thread, count(*) n from slices s join tracks t using (trace, track_id) group by 1, 2, 3 order by 1, 2, 3",
    "select trace, ts_ns, name, args from slices where args like '%\"i\":7%' and name <> 'load' order by trace, ts_ns, name limit 40",
    "select trace, name, dur_ns from slices order by dur_ns desc, trace, ts_ns, name limit 17 offset 5",
    "select * from (select trace, track_id, ts_ns, lag(ts_ns) over (partition by trace, track_id, depth order by ts_ns) before, \
     rank() over (partition by trace order by dur_ns desc) place from slices) where place < 4 order by trace, place, track_id, ts_ns",
    "with busy as (select trace, track_id, sum(dur_ns) ns from slices where depth = 0 group by 1, 2) \
     select trace, max(ns) - min(ns) spread from busy group by 1 order by 1",
    "select a.trace, b.trace, a.n - b.n d from (select trace, count(*) n from slices group by 1) a cross join \
     (select trace, count(*) n from instants group by 1) b order by 1, 2",
    "select run, tag, count(*) n, max(value) most from scalars group by 1, 2 order by 1, 2",
    "select trace, min(value) lo, max(value) hi, count(*) n from slices join scalars on trace = run and slices.step is null group by 1 order by 1",
    "select trace, cause, count(*) n, sum(dur_ns) ns from stalls group by 1, 2 order by 1, 2",
    "select trace, name, count, self_ns, p99_ns from ops order by 1, 2",
    "select t.trace, t.track_id, o.name from tracks t left join ops o on o.trace = t.trace and o.count > 100000 order by 1, 2",
    "select name from slices where track_id in (select track_id from tracks where thread like '%1%') group by 1 order by 1",
    "select count(*) n from tracks where track_id not in (select from_track_id from flows where from_track_id is not null)",
    "select trace, count(*) n from tracks t where exists (select 1 from instants i where i.trace = t.trace and i.track_id = t.track_id) group by 1 order by 1",
    "select trace, count(*) n from slices where dur_ns > (select avg(dur_ns) from slices) group by 1 order by 1",
    "select trace from slices union select run from scalars order by 1",
    "select 'c' kind, count(*) n from counters union all select 'f', count(*) from flows union all select 'w', count(*) from warnings order by 1",
    "select coalesce(s.trace, r.run) who, s.n, r.n from (select trace, count(*) n from slices group by 1) s full join \
     (select run, count(*) n from scalars where tag = 'odd' group by 1) r on s.trace = r.run order by 1",
    "select regexp_replace(name, '[0-9]+', '#') kind, upper(category), count(*) n from slices group by 1, 2 order by 1, 2",
    "select trace, name, count(*) n from slices where name like 'inner 1%' group by grouping sets ((trace), (name), ()) order by 1, 2",
    "select value from scalars where tag = 'odd'",
    "select trace, key, value from meta where key <> 'nothing' order by 1, 2",
    "select * from slices where trace = 'b c' and name = 'größe' order by ts_ns limit 3",
    "select * from slices where trace = 'nobody'",
    "select n, sum(n) over (order by n) from generate_series(1, 5) t(n) order by 1",
    "select 1 + 1 two",
];

#[test]
fn a_cluster_gives_the_rows_that_this_machine_gives() {
    let dir = runs(3_000);
    let nodes = Nodes::start(Sight::All, PATIENT_S);
    let scratch = tempfile::tempdir().unwrap();
    let (here, there) = (open(dir.path()), nodes.open(dir.path(), Some(scratch.path())));
    assert_eq!(names(&here), names(&there));
    for table in here.tables() {
        let sql = format!("select * from {}", table.name);
        let (a, b) = (sorted(rows(&here, &sql)), sorted(rows(&there, &sql)));
        assert_eq!(a.len(), b.len(), "{sql}");
        a.iter().zip(&b).for_each(|(a, b)| assert_eq!(a, b, "{sql}"));
    }
    for sql in QUERIES {
        let (mut a, mut b) = (rows(&here, sql), rows(&there, sql));
        if !sql.contains(" order by ") {
            (a, b) =
                (sorted(a).into_iter().map(Value::from).collect(), sorted(b).into_iter().map(Value::from).collect());
        }
        assert_eq!(a, b, "{sql}");
    }
    assert!(here.take_warnings() == there.take_warnings());
    // What describes needs no cluster.
    assert_eq!(sorted(rows(&here, "show tables")), sorted(rows(&there, "show tables")));
    assert_eq!(value(&there, "select count(*) from information_schema.tables where table_name = 'stalls'"), json!(1));
    let plan = rows(&there, "explain select count(*) from slices where trace = 'a'");
    assert!(plan.iter().any(|row| row["plan"].as_str().unwrap().contains("slices.parquet")), "{plan:?}");
    let error = try_rows(&there, "explain analyze select count(*) from slices").unwrap_err();
    assert!(matches!(&error, QueryError::Sql(text) if text.contains("explain")), "{error}");
    // Nothing stays: neither jobs nor files.
    nodes.wait_until_idle();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// The tables with their columns and types.
fn names(database: &Database) -> Vec<String> {
    let tables = database.tables().iter();
    tables.map(|table| format!("{} {:?}", table.name, table.columns().collect::<Vec<_>>())).collect()
}

#[test]
fn rows_that_are_too_many_for_a_plan_need_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.json");
    std::fs::write(&file, chrome(60_000)).unwrap();
    let nodes = Nodes::start(Sight::All, PATIENT_S);
    let sql = "select name, count(*) n, sum(dur_ns) ns, max(args) a from slices group by 1 order by 1";
    let error = try_rows(&nodes.open(&file, None), sql).unwrap_err().to_string();
    assert!(error.contains("--scratch") && error.contains("slices"), "{error}");
    let scratch = tempfile::tempdir().unwrap();
    let there = nodes.open(&file, Some(scratch.path()));
    assert_eq!(rows(&open(&file), sql), rows(&there, sql));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn the_loss_of_an_executor_costs_time_or_is_told() {
    let dir = runs(2_400);
    // Some hundred times what a heartbeat takes.
    let mut nodes = Nodes::start(Sight::All, 8);
    let sql = "select a.trace, count(*) n, sum(b.dur_ns - a.dur_ns) ns from slices a join slices b on a.trace = b.trace and \
               a.track_id = b.track_id and a.ts_ns <> b.ts_ns group by 1 order by 1";
    let expected = rows(&open(dir.path()), sql);
    let there = nodes.open(dir.path(), None);
    let answer = loop {
        let (answer, is_killed) = std::thread::scope(|scope| {
            let query = scope.spawn(|| try_rows(&there, sql));
            let mut at_work = None;
            while at_work.is_none() && !query.is_finished() {
                at_work = nodes.at_work();
                std::thread::sleep(Duration::from_millis(1));
            }
            at_work.into_iter().for_each(|executor| nodes.kill(executor));
            (query.join().unwrap(), at_work.is_some())
        });
        // One that ended before it was seen at work is asked again.
        if is_killed {
            break answer;
        }
    };
    match answer {
        Ok(rows) => assert_eq!(rows, expected),
        Err(QueryError::Failed(text)) => assert!(text.contains("executor"), "{text}"),
        Err(error) => panic!("{error}"),
    }
    // The one that is left goes on.
    assert_eq!(value(&there, "select count(*) from slices where trace = 'a'"), json!(4_800));
}

#[test]
fn a_cancelled_query_ends_on_the_cluster() {
    let dir = runs(3_000);
    let nodes = Nodes::start(Sight::All, PATIENT_S);
    let there = nodes.open(dir.path(), None);
    let canceller = there.canceller();
    // A billion rows.
    let sql = "select sum(a.dur_ns + b.dur_ns * c.depth) from slices a, slices b, slices c";
    let answer = std::thread::scope(|scope| {
        let query = scope.spawn(|| try_rows(&there, sql));
        while nodes.n_running() == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        canceller.cancel();
        query.join().unwrap()
    });
    assert!(matches!(answer, Err(QueryError::Cancelled)), "{answer:?}");
    nodes.wait_until_idle();
    // Its executors are free again.
    assert_eq!(value(&there, "select count(*) from slices where trace = 'a'"), json!(6_000));
}

fn at(address: &str, root: &Path) -> Database {
    let ballista = Ballista::new(address, None).unwrap();
    Database::open_on(root.to_str().unwrap(), Options::default(), Some(Arc::new(ballista))).unwrap()
}

#[test]
fn who_is_not_there_is_named() {
    let dir = runs(60);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Somebody who hangs up at once.
    let other = std::thread::spawn(move || {
        for stream in listener.incoming().take(3) {
            drop(stream);
        }
    });
    let error =
        try_rows(&at(&format!("df://127.0.0.1:{port}"), dir.path()), "select count(*) from slices").unwrap_err();
    assert!(matches!(error, QueryError::Failed(_)) && error.to_string().contains(&port.to_string()), "{error}");
    // Ends its waiting, where the query asked less often.
    (0..3).for_each(|_| drop(std::net::TcpStream::connect(("127.0.0.1", port))));
    other.join().unwrap();
    let error =
        try_rows(&at(&format!("df://127.0.0.1:{port}"), dir.path()), "select count(*) from slices").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("no Ballista scheduler answers at 127.0.0.1") && text.contains("refused"), "{text}");
}

#[test]
fn a_file_that_executors_do_not_see_is_named() {
    let dir = runs(60);
    let nodes = Nodes::start(Sight::Nothing, PATIENT_S);
    let error = try_rows(&nodes.open(dir.path(), None), "select count(*), max(name) from slices where trace = 'a'")
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("does not see") && text.contains("slices.parquet"), "{text}");
}
