//! The modes of `record`: the next steps only, a flight recorder and its dumps, attaching to what runs; and what `doctor`
//! says of their means.
#![allow(clippy::print_stderr)] // Tests say what they skip.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use stepscope_tests::{left_out, stepscope_binary};
use trace_store::{Store, StoreOptions, TraceReader};

fn read(trace: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(trace).expect("the trace opens").read_all(&mut store).expect("the trace reads");
    store
}

/// A process that is ended with the test, however that ends.
struct Running(Option<Child>);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(Some(command.stdin(Stdio::null()).spawn().expect("it starts")))
    }

    fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([name, &self.id().to_string()]).status().expect("kill runs");
        assert!(kill.success());
    }

    /// Waits for it; what it wrote.
    fn output(mut self) -> Output {
        self.0.take().expect("it is ended once").wait_with_output().expect("it ends")
    }

    /// Ends it as a user would; what it said.
    fn end(self) -> String {
        self.signal("-TERM");
        String::from_utf8_lossy(&self.output().stderr).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // Not at once with -KILL: `record` ends what it started.
            Command::new("kill").args(["-TERM", &child.id().to_string()]).status().ok();
            child.wait().ok();
        }
    }
}

/// A training run that goes on until it is ended, recorded with `options`.
fn train(binary: &Path, dir: &Path, options: &[&str]) -> (Running, PathBuf) {
    let trace = dir.join("trace");
    let mut record = Command::new(binary);
    record.args(["record", "-o"]).arg(&trace).args(options).arg("--").arg(binary);
    record.args(["train", "mlp", "--steps", "1000000", "--logdir"]).arg(dir.join("run"));
    (Running::start(record.stdout(Stdio::null()).stderr(Stdio::piped())), trace)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited 30 s: {what}");
}

fn attach(binary: &Path, target: &str, options: &[&str]) -> Output {
    let mut attach = Command::new(binary);
    attach.args(["record", "--attach", target]).args(options).output().expect("the binary starts")
}

fn n_steps(trace: &Path) -> usize {
    if trace.join("control").exists() { read(trace).steps().len() } else { 0 }
}

#[test]
fn only_the_next_steps_are_recorded_and_then_more_on_demand() {
    let Some(binary) = stepscope_binary("record --steps") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let (child, trace) = train(&binary, dir.path(), &["--steps", "7"]);
    wait_until("seven steps", || n_steps(&trace) == 7);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(n_steps(&trace), 7, "and no more");
    let output = attach(&binary, &trace.display().to_string(), &["--steps", "5"]);
    assert!(output.status.success(), "{output:?}");
    wait_until("five more", || n_steps(&trace) == 12);
    let stderr = child.end();
    assert_eq!(n_steps(&trace), 12, "{stderr}");
}

#[test]
fn a_flight_recorder_writes_when_a_signal_or_a_slow_step_asks() {
    let Some(binary) = stepscope_binary("record --flight") else { return };
    for (options, by_signal) in [(vec!["--flight", "5"], true), (vec!["--flight", "5", "--slow-step", "1"], false)] {
        let dir = tempfile::tempdir().expect("a scratch folder");
        let (child, trace) = train(&binary, dir.path(), &options);
        wait_until("it records", || n_steps(&trace) > 20);
        let in_chunks = || {
            let chunks = std::fs::read_dir(&trace).expect("the folder is there").flatten();
            let chunks = chunks.filter(|e| e.file_name().to_string_lossy().starts_with("chunks-"));
            chunks.map(|e| e.metadata().map_or(0, |m| m.len())).sum::<u64>()
        };
        if by_signal {
            assert!(in_chunks() < 4_096, "nothing is written before somebody asks");
            child.signal("-USR2");
        }
        wait_until("the dump is written", || in_chunks() > 32_000);
        let before = in_chunks();
        let output = attach(&binary, &trace.display().to_string(), &["--dump"]);
        assert!(output.status.success(), "{output:?}");
        assert!(in_chunks() > before, "a dump by hand adds to it");
        child.end();
        assert!(n_steps(&trace) > 20);
    }
}

#[test]
fn a_process_is_found_by_its_id() {
    let Some(binary) = stepscope_binary("record --attach PID") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let mut train = Command::new(&binary);
    train.args(["train", "mlp", "--steps", "1000000", "--logdir"]).arg(dir.path().join("run"));
    let child = Running::start(train.stdout(Stdio::null()).stderr(Stdio::null()));
    let trace = dir.path().join("run/trace");
    wait_until("it records", || n_steps(&trace) > 5);
    let output = attach(&binary, &child.id().to_string(), &["--switch", "off"]);
    assert!(output.status.success(), "{output:?}");
    // The program follows the switch when the thread for it gets a processor: quiet is a second without a new step.
    let (mut before, mut n_same) = (n_steps(&trace), 0);
    wait_until("no step is recorded any more", || {
        std::thread::sleep(Duration::from_millis(100));
        let now = n_steps(&trace);
        n_same = if now == before { n_same + 1 } else { 0 };
        before = now;
        n_same == 10
    });
    let output = attach(&binary, &child.id().to_string(), &["--steps", "3"]);
    assert!(output.status.success(), "{output:?}");
    wait_until("three steps", || n_steps(&trace) == before + 3);
    child.end();
    let other = Running::start(Command::new("sleep").arg("60"));
    let output = attach(&binary, &other.id().to_string(), &["--steps", "3"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("records no events"), "{output:?}");
}

#[test]
fn a_process_that_runs_is_watched_from_outside() {
    let Some(binary) = stepscope_binary("record --attach PID --sched --sample") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let trace = dir.path().join("trace");
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.01; done"]);
    let busy = Running::start(&mut shell);
    let tid = busy.id();
    std::thread::sleep(Duration::from_millis(100));
    let mut watch = Command::new(&binary);
    watch.args(["record", "--attach", &tid.to_string(), "--sched", "--sample", "500", "-o"]).arg(&trace);
    let watching = Running::start(watch.stderr(Stdio::piped()));
    // As much as is asked for below, however late the recorder gets to it; where something cannot be had, ten seconds.
    let begun = events::clock::mono_now();
    let has_enough = || {
        let store = trace.join("control").exists().then(|| read(&trace));
        let of_busy = store.iter().flat_map(Store::tracks).filter(|t| t.tid == tid);
        let (slices, instants) = of_busy.fold((0, 0), |(s, i), t| (s + t.n_slices(), i + t.instants.len()));
        slices > 5 && instants > 20
    };
    while !has_enough() && events::clock::mono_now() - begun < 10_000_000_000 {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    drop(busy);
    // It ends with the process.
    let output = watching.output();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    let store = read(&trace);
    let of_busy = store.tracks().iter().filter(|t| t.tid == tid);
    let (slices, instants) = of_busy.fold((0, 0), |(s, i), t| (s + t.n_slices(), i + t.instants.len()));
    if stderr.contains("samples (perf events)") {
        left_out(format_args!("samples of a running process: {stderr}"));
    } else {
        assert!(instants > 20, "{instants} samples; {stderr}");
        assert!(!store.stacks().is_empty());
    }
    if stderr.contains("context switches (perf events)") {
        left_out(format_args!("scheduling of a running process: {stderr}"));
    } else {
        assert!(slices > 5, "{slices} waits; {stderr}");
    }
    let output = attach(&binary, "4194303", &["--sched"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn doctor_tells_each_means_and_how_to_get_it() {
    let Some(binary) = stepscope_binary("doctor") else { return };
    let output = Command::new(&binary).args(["doctor", "--json"]).output().expect("the binary starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in ["tracefs", "perf events", "samples", "hardware counters", "CUPTI"] {
        let at = text.find(&format!("\"name\":\"{name}\"")).or_else(|| text.find(&format!("\"{name}\"")));
        assert!(at.is_some(), "{name} is missing: {text}");
    }
    let printed: Vec<serde_json::Value> = match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(serde_json::Value::Array(checks)) => checks,
        Ok(object) => object["checks"].as_array().cloned().unwrap_or_default(),
        Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    };
    assert!(!printed.is_empty(), "{text}");
    for check in printed {
        let missing = check["state"] == "missing";
        assert!(!missing || check["remedy"].as_str().is_some_and(|r| r.len() > 10), "{check}");
        assert!(check["seen"].as_str().is_some_and(|seen| !seen.is_empty()), "{check}");
    }
}
