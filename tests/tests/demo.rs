//! The demo without a window: what it prints, what it leaves on disk, and that nothing of anybody's is overwritten.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use stepscope_tests::stepscope_binary;

fn stepscope(binary: &Path, args: &[&str]) -> Output {
    Command::new(binary).args(args).output().unwrap_or_else(|error| panic!("{}: {error}", binary.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn json_is_one_object_with_the_agreed_names() {
    let Some(binary) = stepscope_binary("the demo's JSON") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let logdir = folder.path().join("run");
    let shown = logdir.display().to_string();
    let output =
        stepscope(&binary, &["demo", "--headless", "--json", "--steps", "1500", "--seed", "7", "--logdir", &shown]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("stdout is one JSON object and nothing else");
    assert_eq!(result["steps"], 1500);
    let accuracy = result["test_accuracy"].as_f64().expect("test_accuracy");
    assert!((0.95..=1.0).contains(&accuracy), "test accuracy {accuracy}");
    let loss = result["final_loss"].as_f64().expect("final_loss");
    assert!((0.0..0.2).contains(&loss), "final loss {loss}");
    assert!(result["steps_per_second"].as_f64().expect("steps_per_second") > 1.0);
    let cost = result["tracing_ns_per_slice"].as_f64().expect("tracing_ns_per_slice");
    assert!(cost > 0.0 && cost < 10_000.0, "{cost} ns per slice");
    assert_eq!(result["dropped_events"], 0, "the collector keeps up with the demo");
    assert_eq!(result["restarts"], 0);
    assert_eq!(result["warnings"], serde_json::json!([]), "a run that ends well has nothing to warn of");
    assert_eq!(result["logdir"], shown.as_str());
    check_files(&logdir, Path::new(result["trace"].as_str().expect("trace")));
}

/// The run folder as agreed: event file, graph, run.json and a trace with every op of every step.
fn check_files(logdir: &Path, trace: &Path) {
    let info: Value = serde_json::from_slice(&fs::read(logdir.join("run.json")).expect("run.json")).expect("JSON");
    for key in ["id", "command", "host", "start"] {
        assert!(!info[key].is_null(), "run.json has {key}");
    }
    let graph = formats::graph_file::read(&logdir.join("graph.pb")).expect("graph.pb");
    let mut store = trace_store::Store::default();
    trace_store::TraceReader::open(trace).expect("the trace opens").read_all(&mut store).expect("the trace reads");
    let trained = store.steps().iter().filter(|step| store.sites()[step.site as usize].name == "train").count();
    assert_eq!(trained, 1500, "each training step is in the trace");
    let named = |name: &str| graph.node.iter().any(|node| node.name == name);
    let strangers: Vec<&str> = store.nodes().iter().map(|node| &*node.name).filter(|name| !named(name)).collect();
    assert!(strangers.is_empty(), "slices name nodes that graph.pb does not have: {strangers:?}");
}

#[test]
fn the_summary_names_ops_stalls_and_files() {
    let Some(binary) = stepscope_binary("the demo's summary") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let shown = folder.path().join("run").display().to_string();
    let output = stepscope(&binary, &["demo", "--headless", "--steps", "800", "--logdir", &shown]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (summary, progress) = (text(&output.stdout), text(&output.stderr));
    for words in ["loss", "accuracy", "steps/s", "MatMul", "stall", "tracing", "stepscope view"] {
        assert!(summary.contains(words), "the summary lacks '{words}':\n{summary}");
    }
    assert!(summary.contains(&shown), "the summary says where the files are:\n{summary}");
    assert!(progress.contains("steps/s") && progress.contains("left"), "progress has rate and time left:\n{progress}");
}

#[test]
fn without_a_display_the_demo_says_so_and_runs() {
    let Some(binary) = stepscope_binary("the demo without a display") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let logdir = folder.path().join("run");
    let mut command = Command::new(&binary);
    command
        .args(["demo", "--steps", "50", "--logdir"])
        .arg(&logdir)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY");
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no display"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("accuracy"));
}

#[test]
fn a_run_is_never_overwritten() {
    let Some(binary) = stepscope_binary("the check that no run is overwritten") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("thesis.txt"), "mine").expect("the scratch folder is writable");
    let shown = folder.path().display().to_string();
    let output = stepscope(&binary, &["demo", "--headless", "--steps", "5", "--logdir", &shown]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("not empty"), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing was written next to it");
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let Some(binary) = stepscope_binary("the check of seeds") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let loss = |name: &str, seed: &str| {
        let shown = folder.path().join(name).display().to_string();
        let args = ["demo", "--headless", "--json", "--steps", "60", "--seed", seed, "--logdir", &shown];
        let output = stepscope(&binary, &args);
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        result["final_loss"].as_f64().expect("final_loss")
    };
    let (first, again, other) = (loss("a", "3"), loss("b", "3"), loss("c", "4"));
    assert_eq!(first.to_bits(), again.to_bits(), "same seed, same loss to the bit");
    assert_ne!(first.to_bits(), other.to_bits(), "another seed, another loss");
}

#[test]
fn doctor_and_ops_answer() {
    let Some(binary) = stepscope_binary("doctor and ops") else { return };
    let doctor = stepscope(&binary, &["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&doctor.stdout).expect("doctor --json is one object");
    let checks = report["checks"].as_array().expect("checks");
    for name in ["clock", "perf events", "tracefs", "CUDA driver", "CUPTI", "OpenGL"] {
        let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("doctor checks {name}"));
        assert!(
            check["state"] == "ok" || check["remedy"].is_string() || check["state"] == "limited",
            "{name}: {check}"
        );
    }
    let ops = stepscope(&binary, &["ops", "--json"]);
    let names: Vec<Value> =
        text(&ops.stdout).lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(names.iter().any(|op| op["name"] == "MatMul"), "ops lists MatMul");
}
