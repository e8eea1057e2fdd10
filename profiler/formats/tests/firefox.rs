//! A profile for the Firefox profiler, as the profiler's own library reads it: `STEPSCOPE_FIREFOX` names a folder in which
//! `npm install @firefox-devtools/profiler-cli` was run, `STEPSCOPE_NODE` the node for it (24 or later).

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test file

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_analysis::stalls;
use trace_formats::export::{ExportFormat, export};
use trace_model::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};
use trace_store::Store;

/// The profiler's library, with a profile loaded. It runs as a process of its own until it is stopped.
struct Profiler {
    program: PathBuf,
    node: std::ffi::OsString,
    sessions: tempfile::TempDir,
}

impl Profiler {
    fn load(profile: &Path) -> Option<Profiler> {
        let folder = test_support::variable("STEPSCOPE_FIREFOX", "the Firefox profiler's reading")?;
        let program = Path::new(&folder).join("node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js");
        let node = std::env::var_os("STEPSCOPE_NODE").unwrap_or_else(|| "node".into());
        let profiler = Profiler { program, node, sessions: tempfile::tempdir().unwrap() };
        profiler.run(&["load", profile.to_str().unwrap()]);
        Some(profiler)
    }

    fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new(&self.node);
        command.arg(&self.program).args(args).env("PROFILER_CLI_SESSION_DIR", self.sessions.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn ask(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[args, &["--json"]].concat())).unwrap()
    }

    /// The thread with this name.
    fn thread(&self, name: &str) -> (String, u64) {
        let all = self.ask(&["thread", "list"]);
        let found = all["threads"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap().clone();
        (found["threadHandle"].as_str().unwrap().to_owned(), found["markerCount"].as_u64().unwrap())
    }

    /// The markers of a thread: name, begin (ms), duration (ms, null for none), fields.
    fn markers(&self, thread: &str) -> Vec<(String, f64, Value, Value)> {
        let all = self.ask(&["thread", "markers", "--thread", thread, "--list", "--limit", "100"]);
        let rows = all["flatMarkers"].as_array().unwrap_or_else(|| panic!("{all}"));
        let fields = |marker: &Value| {
            let fields = marker["fields"].as_array().cloned().unwrap_or_default();
            let fields = fields.into_iter().map(|f| (f["key"].as_str().unwrap().to_owned(), f["value"].clone()));
            Value::Object(fields.collect())
        };
        let row = |m: &Value| {
            let name = m["name"].as_str().unwrap().to_owned();
            (name, m["start"].as_f64().unwrap(), m["duration"].clone(), fields(m))
        };
        rows.iter().map(row).collect()
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        self.run(&["stop", "--all"]);
    }
}

const MS: i64 = 1_000_000;

/// Two threads: a loader that logs, and a worker that waits for it; an arrow between them, a counter.
fn store() -> Store {
    let mut batch = Batch::new();
    batch.set_origin(0);
    let (pid, keys) = (7, [TrackKey { pid: 7, ring: 0 }, TrackKey { pid: 7, ring: 1 }]);
    batch.name(Name::Process { pid, host: "host".into(), name: "trainer".into(), ns_per_tick: 1.0 });
    for (key, name) in keys.iter().zip(["loader", "worker"]) {
        batch.name(Name::Thread { key: *key, name: name.into(), tid: 70 + key.ring });
    }
    let sites = [
        ("input", "load"),
        ("op", "MatMul"),
        ("app::data", "event src/data.rs:5"),
        ("edge", "batch"),
        ("counter", "rows"),
        ("step", "train"),
    ];
    for (id, (category, name)) in (0..).zip(sites) {
        batch.name(Name::Site { pid, id, category: category.into(), name: name.into() });
    }
    batch.name(Name::Node { pid, id: 0, name: "a/MatMul".into(), op: "MatMul".into(), device: "cpu:0".into() });
    let log = batch.args(r#"{"message":"half of the rows are there"}"#);
    batch.track(keys[0]).events = vec![
        Event::slice(0, 10 * MS, 60 * MS),
        Event { args: log, ..Event::at(EventKind::Instant, 2, 30 * MS) },
        Event { correlation: 5, ..Event::at(EventKind::FlowOut, 3, 60 * MS) },
        Event { arg: 12f64.to_bits(), ..Event::at(EventKind::Counter, 4, 60 * MS) },
    ];
    let op = |start, end| Event { node: 0, correlation: NO_NODE, arg: 1 << 32, ..Event::slice(1, start, end) };
    batch.track(keys[1]).events = vec![
        op(0, 5 * MS),
        Event { correlation: 5, ..Event::at(EventKind::FlowIn, 3, 70 * MS) },
        op(70 * MS, 90 * MS),
        Event { correlation: 1, arg: 3, ..Event::slice(5, 0, 100 * MS) },
    ];
    let mut store = Store::new();
    store.apply(batch);
    store
}

#[test]
fn the_firefox_profiler_reads_what_is_exported() {
    let store = store();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile.json");
    let mut bytes = Vec::new();
    export(&store, ExportFormat::Firefox, &mut bytes, &mut |_| {}).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let Some(profiler) = Profiler::load(&path) else { return };
    let (loader, n) = profiler.thread("loader");
    assert_eq!(n, 3, "a slice, a log message, the begin of an arrow");
    let (worker, n) = profiler.thread("worker");
    let held_up = stalls(&store, store.range());
    assert!(!held_up.is_empty());
    let of_worker = held_up.iter().filter(|stall| stall.track.0 == 1).count() as u64;
    assert_eq!(n, 4 + of_worker, "two ops, a step, the end of an arrow, stalls");

    let found = profiler.markers(&loader);
    let of = |name: &str| found.iter().find(|m| m.0 == name).unwrap_or_else(|| panic!("{name}: {found:?}"));
    assert_eq!((of("load").1, of("load").2.as_f64()), (10.0, Some(50.0)));
    let arrow = of("batch").3["leaves"].clone();
    assert_eq!(of("app::data").3["message"], json!("half of the rows are there"));
    let logs = profiler.ask(&["profile", "logs"]);
    assert_eq!(logs["totalCount"], 1, "{logs}");
    assert!(logs.to_string().contains("half of the rows are there"), "{logs}");

    let found = profiler.markers(&worker);
    let arrives = found.iter().find(|m| m.0 == "batch").unwrap();
    assert_eq!((arrives.1, &arrives.3["arrives"]), (70.0, &arrow), "one id joins the two ends");
    assert!(arrow.as_str().is_some_and(|id| !id.is_empty()), "{arrow}");
    for stall in held_up.iter().filter(|stall| stall.track.0 == 1) {
        let name = format!("stall: {}", stall.cause.name());
        let marker = found.iter().find(|m| m.0 == name && (m.1 * 1e6 - stall.start as f64).abs() < 1.0);
        let marker = marker.unwrap_or_else(|| panic!("{name}: {found:?}"));
        assert_eq!(marker.2.as_f64().map(|ms| (ms * 1e6).round() as i64), Some(stall.dur()));
        assert_eq!((&marker.3["text"], &marker.3["why"]), (&json!(stall.text(&store)), &json!(stall.cause.name())));
    }
    let info = profiler.run(&["profile", "info", "--all", "--json"]);
    assert!(info.contains("\"rows\"") && info.contains("trainer"), "{info}");
    let schema: Value = serde_json::from_slice(&bytes).unwrap();
    let format = |kind: &str| {
        let all = schema["meta"]["markerSchema"].as_array().unwrap().clone();
        all.into_iter().find(|s| s["name"] == kind).unwrap()["fields"][0]["format"].clone()
    };
    assert_eq!((format("arrow leaves"), format("arrow arrives")), (json!("flow-id"), json!("terminating-flow-id")));
}
