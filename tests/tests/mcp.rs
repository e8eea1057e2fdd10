//! `stepscope mcp`, called by the protocol's official SDK.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stepscope_tests::{from_env, root, stepscope_binary};
use summaries::{SummaryWriter, WriterOptions};

/// The answers of the client to these requests: the server's name, its tools, and the results.
fn call(binary: &Path, python: &Path, requests: &[Value]) -> (String, Value, Vec<(String, bool)>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/mcp_client.py");
    let mut client = Command::new(python);
    client.arg(script).arg(binary).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = client.spawn().expect("the client starts");
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    client.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("the client reads");
    let output = client.wait_with_output().expect("the client ends");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines();
    let name = lines.next().expect("the server's name").to_owned();
    let tools = serde_json::from_str(lines.next().expect("the tools")).expect("JSON");
    let results = lines.map(|line| {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        (answer["text"].as_str().expect("a text").to_owned(), answer["is_error"].as_bool().expect("yes or no"))
    });
    (name, tools, results.collect())
}

/// What a command prints.
fn stdout(binary: &Path, args: &[&str]) -> String {
    let output = Command::new(binary).args(args).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_official_client_gets_what_the_commands_print() {
    let Some(binary) = stepscope_binary("the server for agents") else { return };
    let Some(python) = from_env("STEPSCOPE_PYTHON", "the server for agents, by the official client") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    for run in ["a", "b"] {
        let writer = SummaryWriter::create(&dir.path().join(run), WriterOptions::default()).expect("a writer");
        (0..1000).for_each(|step| writer.add_scalar("loss", step as f32, step));
        writer.close().expect("all written");
    }
    let logdir = dir.path().display().to_string();
    let trace = root().join("tests/data/traces/synthetic_trackevent_flows.pftrace").display().to_string();
    let requests = [
        json!(["open", { "path": logdir }]),
        json!(["tags", { "path": logdir }]),
        json!(["points", { "path": logdir, "tag": "loss", "run": "b", "max_points": 3 }]),
        json!(["findings", { "path": trace }]),
        json!(["diff", { "a": trace, "b": trace }]),
        json!(["open", { "path": "/nowhere/at/all" }]),
        json!(["points", { "path": logdir }]),
        json!(["remove", { "path": logdir }]),
    ];
    let (name, tools, results) = call(&binary, &python, &requests);
    assert_eq!(name, "stepscope");
    assert_eq!((&tools["points"], &tools["diff"]), (&json!(["path", "tag"]), &json!(["a", "b"])));
    let runs = stdout(&binary, &["runs", &logdir, "--json"]);
    assert_eq!(results[..2], [(runs.clone(), false), (runs, false)]);
    let rows: Vec<Vec<&str>> = results[2].0.lines().map(|line| line.split(',').collect()).collect();
    let values: Vec<(&str, &str, &str)> = rows[1..4].iter().map(|cells| (cells[0], cells[2], cells[4])).collect();
    assert_eq!(values, [("b", "0", "0"), ("b", "499", "499"), ("b", "999", "999")]);
    assert_eq!(rows[4], ["# 3 of 1000 points of b"]);
    let findings = stdout(&binary, &["analyze", &trace, "--format", "markdown"]);
    assert!(results[3].0.starts_with(&findings) && findings.contains("\n## Findings\n"), "{}", results[3].0);
    assert!(!results[4].1, "{}", results[4].0);
    let faults = ["/nowhere/at/all", "the argument 'tag' is missing", "no tool 'remove'"];
    for ((text, is_error), fault) in results[5..].iter().zip(faults) {
        assert!(*is_error && text.contains(fault), "{text}");
    }
}
