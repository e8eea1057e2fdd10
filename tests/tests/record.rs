//! `stepscope record`: the command's output, exit code and signals are its own; what it emits, its scheduling and its samples are in the
//! trace; without privileges the lesser ways work and say so.
#![allow(clippy::print_stderr)] // Tests say what they skip.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use stepscope_tests::{left_out, stepscope_binary};
use trace_model::WarningKind;
use trace_store::{Store, StoreOptions, TraceReader};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn record(binary: &Path, trace: &Path, options: &[&str], command: &[&str]) -> Output {
    let mut record = Command::new(binary);
    record.arg("record").arg("-o").arg(trace).args(options).arg("--").args(command);
    record.stdin(Stdio::null()).output().expect("the binary starts")
}

fn read(trace: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(trace).expect("the trace opens").read_all(&mut store).expect("the trace reads");
    store
}

#[test]
fn the_command_is_as_it_would_be_alone() {
    let Some(binary) = stepscope_binary("record") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let trace = |name: &str| dir.path().join(name);
    let output = record(&binary, &trace("a"), &[], &["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "out\n"));
    assert!(text(&output.stderr).starts_with("err\n") && text(&output.stderr).contains("recorded"));
    let output = record(&binary, &trace("b"), &[], &["sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(137));
    let output = record(&binary, &trace("c"), &[], &["/no/such/command"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("/no/such/command"));
    let output = record(&binary, &trace("a"), &[], &["true"]);
    assert_eq!(output.status.code(), Some(2), "a trace is never written over: {}", text(&output.stderr));
}

#[test]
fn a_signal_reaches_the_command() {
    let Some(binary) = stepscope_binary("record: signals") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let (trace, ready) = (dir.path().join("t"), dir.path().join("ready"));
    let script = format!("trap 'echo caught; exit 5' TERM; touch {}; while :; do sleep 0.01; done", ready.display());
    let mut command = Command::new(&binary);
    command.arg("record").arg("-o").arg(&trace).args(["--", "sh", "-c", &script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    while !ready.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(5), "caught\n"));
}

/// A program that emits events by itself, started by one that does not.
#[test]
fn what_children_emit_is_recorded() {
    let Some(binary) = stepscope_binary("record: children that emit") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let trace = dir.path().join("t");
    let binary_text = binary.display().to_string();
    let script = format!("{binary_text} ops >/dev/null; {binary_text} doctor >/dev/null");
    let output = record(&binary, &trace, &["--sched"], &["sh", "-c", &script]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let store = read(&trace);
    let has = |what: &str| store.processes().iter().any(|p| p.name.contains(what));
    assert!(has("ops") && has("doctor"), "{:?}", store.processes());
}

/// A program that names a trace folder of its own, or emits nothing, leaves the recorder's trace empty: the recorder says why, and
/// nothing of what nobody asked for.
#[test]
fn an_empty_recording_says_why() {
    const OWN: &str = "TEST_RECORDS_INTO";
    if let Some(own) = std::env::var_os(OWN) {
        let _recording = events::start(Path::new(&own), events::Options::default()).expect("it records");
        return drop(events::slice(events::site!("app", "load")));
    }
    let Some(binary) = stepscope_binary("record: programs that record elsewhere") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let (trace, own) = (dir.path().join("t"), dir.path().join("own"));
    let warnings = |output: &Output| -> Vec<String> {
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr).lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
    };
    let program = std::env::current_exe().expect("this program").display().to_string();
    let mut command = Command::new(&binary);
    command.arg("record").arg("-o").arg(&trace).args(["--", &program, "--exact", "an_empty_recording_says_why"]);
    let warned = warnings(&command.env(OWN, &own).output().expect("the binary starts"));
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains(&own.display().to_string()) && warned[0].contains("start_from_env"), "{warned:?}");
    assert_eq!(read(&own).stats().slices, 1);
    let warned = warnings(&record(&binary, &dir.path().join("silent"), &[], &["true"]));
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("no events") && warned[0].contains("start_from_env"), "{warned:?}");
    let emits = warnings(&record(&binary, &dir.path().join("emits"), &[], &[&binary.display().to_string(), "ops"]));
    assert!(emits.is_empty(), "{emits:?}");
}

/// What plays CUDA (profiler/inject/tests), built with `options`; `None` without a C compiler.
fn stand_in(out: &Path, options: &[&str]) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiler/inject/tests/standin.c");
    let done = Command::new("cc").arg(source).arg("-o").arg(out).args(options).arg("-ldl").output().ok()?;
    assert!(done.status.success(), "{}", text(&done.stderr));
    Some(())
}

/// A program that uses CUDA and knows nothing of us.
#[test]
fn cuda_is_recorded_by_the_library_that_its_driver_loads() {
    let Some(binary) = stepscope_binary("record: CUDA") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let print = |trace: &str, options: &[&str], library: Option<&str>| {
        let mut record = Command::new(&binary);
        record.arg("record").arg("-o").arg(dir.path().join(trace)).args(options);
        record.args(["--", "sh", "-c", "echo $CUDA_INJECTION64_PATH $NVTX_INJECTION64_PATH"]);
        let output =
            record.envs(library.map(|path| ("STEPSCOPE_INJECTION", path))).output().expect("the binary starts");
        text(&output.stdout)
    };
    assert_eq!(print("a", &["--no-cuda"], None), "\n");
    assert_eq!(print("b", &[], Some("/no/such")), "\n");
    let both = print("c", &[], None);
    let paths: Vec<&str> = both.split_whitespace().collect();
    let [library, of_nvtx] = paths[..] else { return left_out("record: CUDA: the library is not built") };
    assert!(library == of_nvtx && library.ends_with("/libstepscope_inject.so"), "{both}");

    let (program, cupti) = (dir.path().join("program"), dir.path().join("libcupti.so"));
    let built = stand_in(&program, &[]).and_then(|()| stand_in(&cupti, &["-DCUPTI", "-shared", "-fPIC"]));
    let Some(()) = built else { return left_out("record: CUDA: there is no C compiler (cc)") };
    let trace = dir.path().join("t");
    let mut command = Command::new(&binary);
    command.arg("record").arg("-o").arg(&trace).arg("--").arg(&program).env("LD_LIBRARY_PATH", dir.path());
    let output = command.env("STEPSCOPE_CUDA_LIBRARIES", dir.path()).output().expect("the binary starts");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "1 1 1\n"), "{}", text(&output.stderr));
    let store = read(&trace);
    let track = store.tracks().iter().find(|track| track.name.starts_with("CUDA calls of"));
    assert_eq!(track.map(trace_store::Track::n_slices), Some(1), "{:?}", store.tracks());
}

/// Counts of threads are reported by op; an unknown counter's name is refused.
#[test]
fn counters_are_told_of_threads() {
    let Some(binary) = stepscope_binary("record --counters") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let trace = dir.path().join("t");
    let binary_text = binary.display().to_string();
    let counters = ["--counters", "page-faults,task-clock,instructions"];
    let output = record(&binary, &trace, &counters, &["sh", "-c", &format!("{binary_text} ops >/dev/null")]);
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    if stderr.contains(" of threads: not recorded") {
        return left_out(format_args!("counters of threads: {stderr}"));
    }
    let analyze = Command::new(&binary).arg("analyze").arg(&trace).arg("--json").output().expect("the binary starts");
    let printed: serde_json::Value = serde_json::from_slice(&analyze.stdout).expect("one JSON object");
    let total = &printed["counters"]["total"];
    assert!(total["page-faults"].as_u64() > Some(100) && total["task-clock"].as_u64() > Some(100_000), "{total}");
    let outside = printed["counters"]["outside_ops"]["page-faults"].as_u64().expect("a number");
    let ops = printed["ops"].as_array().expect("a list");
    let inside: u64 = ops.iter().filter_map(|op| op["counters"]["page-faults"].as_u64()).sum();
    assert_eq!(Some(inside + outside), total["page-faults"].as_u64());
    let has_instructions = total["instructions"].as_u64().is_some_and(|n| n > 1_000_000);
    assert!(has_instructions || stderr.contains("instructions: not recorded on this machine"), "{stderr}");
    let people = Command::new(&binary).arg("analyze").arg(&trace).output().expect("the binary starts");
    assert!(text(&people.stdout).contains("counted by op"), "{}", text(&people.stdout));
    let wrong = record(&binary, &dir.path().join("w"), &["--counters", "cycels"], &["true"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("cycles"), "{}", text(&wrong.stderr));
}

/// `nobody` may not read root's files: a copy of the binary in a folder that all may read.
fn copy_for_all(binary: &Path, dir: &Path) -> PathBuf {
    let copy = dir.join("stepscope");
    fs::copy(binary, &copy).expect("the binary can be copied");
    for (path, mode) in [(dir, 0o777), (&copy, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the folder is ours");
    }
    copy
}

#[test]
fn without_privileges_the_lesser_ways_work_and_say_so() {
    let Some(binary) = stepscope_binary("record without privileges") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let copy = copy_for_all(&binary, dir.path());
    let trace = dir.path().join("t");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(["record", "-o"]).arg(&trace);
    command.args(["--sched", "--sample", "500", "--counters", "task-clock,cycles", "--", "sh", "-c"]);
    command.arg("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.05");
    let Ok(output) = command.output() else {
        return left_out("record without privileges: setpriv is not installed");
    };
    let stderr = text(&output.stderr);
    if stderr.starts_with("setpriv:") {
        return left_out(format_args!("record without privileges: {stderr}"));
    }
    assert!(output.status.success(), "{stderr}");
    let warnings = stderr.lines().filter(|l| l.starts_with("warning: ")).count();
    assert!(warnings > 0 && stderr.contains("tracefs") && stderr.contains("root"), "{stderr}");
    let store = read(&trace);
    let printed = store.warnings().iter().filter(|w| w.kind == WarningKind::Unavailable).count();
    assert_eq!(printed, warnings, "the trace says the same: {:?}", store.warnings());
    if stderr.contains("(perf events)") {
        let switches = stderr.lines().find(|l| l.contains("switches")).expect("the summary prints switches");
        assert!(!switches.contains(" 0 switches"), "{switches}");
    } else {
        assert!(store.counters().len() >= 2, "the counters of /proc are the last resort");
    }
}
