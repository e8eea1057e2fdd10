//! Tables of ops compared with those that XProf makes of the same XPlane files: docs/use/jax.md has what differs.
//!
//! `tests/fixtures/make_xprof.py` made the expectations.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use trace_analysis::ops::op_table;
use trace_analysis::roofline::rooflines;
use trace_analysis::stats::node_stats;
use trace_store::{Store, StoreOptions};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn open(path: PathBuf) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[path]).unwrap().read_all(&mut store).unwrap();
    store
}

/// A file of this repository and XProf's tables of it.
fn shipped(name: &str) -> (Store, Value) {
    let clients = |path: &str| root().join("tests/fixtures/clients").join(path);
    let path = match name {
        "h200" => root().join("tests/data/h200/jax.xplane.pb.gz"),
        "jax_cpu" => clients("jax_profiler/plugins/profile/2026_11_23_18_12_09/vm.xplane.pb"),
        "tensorflow_cpu" => clients("tf_profiler/plugins/profile/2026_11_23_18_10_04/vm.xplane.pb"),
        name => root().join(format!("profiler/formats/tests/fixtures/xprof/{name}.xplane.pb")),
    };
    (open(path), expected(name))
}

/// A file of another project, which may be absent, and XProf's tables of it.
fn of_others(name: &str) -> Option<(Store, Value)> {
    let file = match name {
        "mi300x" => "tracelens_mi300x_conv",
        _ => "tracelens_mi355x_attention",
    };
    let path = test_support::data_if_fetched(&format!("traces/{file}.xplane.pb"))?;
    Some((open(path), expected(name)))
}

fn expected(name: &str) -> Value {
    let path = root().join("profiler/formats/tests/fixtures/xprof/expected.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[name].clone()
}

/// Executions, time and own time, ns.
type Sums = BTreeMap<String, (u64, i64, i64)>;

fn add(sums: &mut Sums, key: String, count: u64, total: i64, own: i64) {
    let sum = sums.entry(key).or_default();
    *sum = (sum.0 + count, sum.1 + total, sum.2 + own);
}

/// XProf's rows, whose times are microseconds, by a key.
fn theirs(table: &Value, time: &str, own: &str, key: impl Fn(&Value) -> Option<String>) -> Sums {
    let mut sums = Sums::new();
    for row in table.as_array().unwrap() {
        let ns = |name: &str| (row[name].as_f64().unwrap() * 1e3).round() as i64;
        if let Some(key) = key(row) {
            add(&mut sums, key, row["occurrences"].as_f64().unwrap() as u64, ns(time), ns(own));
        }
    }
    sums
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap()
}

/// Our instructions, by framework op, instruction and category.
fn instructions(store: &Store) -> Sums {
    let mut sums = Sums::new();
    for node in node_stats(store, store.range()).into_iter().filter(|node| !node.device.is_empty()) {
        add(
            &mut sums,
            format!("{} {}", node.name, node.op),
            node.figures.count,
            node.figures.total_ns,
            node.figures.self_ns,
        );
    }
    sums
}

fn their_instructions(tables: &Value, module: &str) -> Sums {
    theirs(&tables["hlo_stats"], "total_time", "total_self_time", |row| {
        let op = text(row, "tf_op_name").trim_end_matches(':');
        // Without a framework's op, ours have the module for a scope.
        let scope = if op.is_empty() { module } else { op };
        Some(format!("{scope}/{} {}", text(row, "hlo_op_name"), text(row, "category")))
    })
}

/// Compares executions exactly, and times up to the rounding of each execution to nanoseconds.
#[track_caller]
fn same(ours: &Sums, theirs: &Sums) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (key, (count, total, own)) in theirs {
        let (our_count, our_total, our_own) = ours[key];
        assert_eq!(our_count, *count, "executions of {key}");
        let rounding = i64::try_from(*count).unwrap();
        assert!((our_total - total).abs() <= rounding, "{key}: {our_total} ns instead of {total}");
        assert!((our_own - own).abs() <= 3 * rounding, "{key}: own time {our_own} ns instead of {own}");
    }
}

/// Compares the times of the framework's ops. Their executions are not compared: XProf takes those of the instruction
/// that ran most often.
#[track_caller]
fn same_framework_ops(store: &Store, tables: &Value, module: &str) {
    let mut ours = Sums::new();
    for (key, (count, total, own)) in instructions(store) {
        let (scope, instruction) = key.rsplit_once('/').unwrap();
        // XProf calls an instruction without a framework's op by its own name.
        let op = if scope == module { instruction.split_once(' ').unwrap().0 } else { scope };
        add(&mut ours, op.to_owned(), count, total, own);
    }
    let mut rows = theirs(&tables["framework_op_stats"], "total_time", "total_self_time", |row| {
        (text(row, "host_or_device") == "Device").then(|| text(row, "operation").to_owned())
    });
    for (op, sum) in &mut rows {
        sum.0 = ours.get(op).map_or(0, |ours| ours.0);
    }
    same(&ours, &rows);
}

fn kernels(store: &Store) -> Sums {
    let mut sums = Sums::new();
    let (_, ops) = op_table(store, store.range(), &[]);
    for row in ops.into_iter().filter(|row| matches!(row.category.as_str(), "kernel" | "collective")) {
        add(&mut sums, row.name, row.figures.count, row.figures.total_ns, row.figures.total_ns);
    }
    sums
}

fn their_kernels(tables: &Value) -> Sums {
    theirs(&tables["kernel_stats"], "total_duration_us", "total_duration_us", |row| {
        Some(text(row, "kernel_name").to_owned())
    })
}

#[test]
fn kernels_of_an_h200() {
    let (store, tables) = shipped("h200");
    same(&kernels(&store), &their_kernels(&tables));
    assert_eq!(tables["hlo_stats"].as_array().unwrap().len(), 0, "XProf finds no instruction of a command buffer");
    // Here the kernels that are named after an instruction have it.
    let named: u64 = instructions(&store).values().map(|(count, ..)| count).sum();
    assert!(named > 300, "{named} of 616 kernels");
    assert_eq!(store.steps().iter().map(|step| step.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn instructions_and_kernels_of_amd_gpus() {
    for (name, module) in [("mi300x", "jit_forward_3d_conv"), ("mi355x", "jit_loss_fn")] {
        let Some((store, tables)) = of_others(name) else { continue };
        same(&kernels(&store), &their_kernels(&tables));
        same(&instructions(&store), &their_instructions(&tables, module));
        same_framework_ops(&store, &tables, module);
    }
}

#[test]
fn instructions_of_a_tpu() {
    let (store, tables) = shipped("tpu");
    same(&instructions(&store), &their_instructions(&tables, "jit_step"));
    same_framework_ops(&store, &tables, "jit_step");
    let (counted, ops) = op_table(&store, store.range(), &[]);
    let rooflines = rooflines(&store, &store.range(), &counted, &ops);
    for row in tables["hlo_stats"].as_array().unwrap() {
        let name = text(row, "hlo_op_name");
        let works = rooflines.iter().flat_map(|line| &line.rows).filter(|line| line.name == name).map(|row| row.work);
        let (flops, bytes, ns) = works.fold((0.0, 0.0, 0), |sum, w| (sum.0 + w.flops, sum.1 + w.bytes, sum.2 + w.ns));
        // Each execution's time is rounded to nanoseconds.
        let rounding = row["occurrences"].as_f64().unwrap() / ns as f64;
        let near = |ours: f64, theirs: &str| {
            let theirs = row[theirs].as_f64().unwrap();
            assert!((ours - theirs).abs() <= rounding * theirs.abs(), "{name}: {ours} instead of {theirs}");
        };
        if name == "custom-call.7" {
            // XProf leaves out what is said of each execution.
            assert_eq!((row["model_flop_rate"].as_f64(), flops), (Some(0.0), 6.0 * 5e8));
            continue;
        }
        near(flops / ns as f64, "normalized_flop_rate");
        near(bytes / ns as f64 * 1e9 / f64::from(1 << 30), "measured_memory_bw");
    }
}

#[test]
fn ops_of_the_host() {
    for name in ["tensorflow_cpu", "h200"] {
        let (store, tables) = shipped(name);
        let mut ours = Sums::new();
        for node in node_stats(&store, store.range()).into_iter().filter(|node| node.device.is_empty()) {
            add(&mut ours, format!("{} {}", node.name, node.op), node.figures.count, node.figures.total_ns, 0);
        }
        let mut expected = theirs(&tables["framework_op_stats"], "total_time", "total_self_time", |row| {
            Some(format!("{} {}", text(row, "operation"), text(row, "type")))
        });
        // XProf's own time leaves out nested ops only, ours all that is nested.
        expected.values_mut().for_each(|sum| sum.2 = 0);
        same(&ours, &expected);
    }
}

#[test]
fn instructions_on_the_host() {
    let (store, tables) = shipped("jax_cpu");
    let mut ours = Sums::new();
    let (_, ops) = op_table(&store, store.range(), &[]);
    for row in ops.into_iter().filter(|row| row.category == "op") {
        add(&mut ours, row.name, row.figures.count, row.figures.total_ns, 0);
    }
    let expected: Sums = tables["trace_viewer"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, sum)| {
            let ns = (sum[1].as_f64().unwrap() * 1e3).round() as i64;
            (name.clone(), (sum[0].as_u64().unwrap(), ns, 0))
        })
        .collect();
    same(&ours, &expected);
    assert!(node_stats(&store, store.range()).len() >= expected.len(), "each is an instruction of its program");
}
