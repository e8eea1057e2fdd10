//! `stepscope collect` and `record --collector`: several processes into one trace, by the commands as a user gives them.
#![allow(clippy::print_stderr)] // Tests say what they skip.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stepscope_tests::{TERMINATED, stepscope_binary};
use trace_store::{Store, StoreOptions, TraceReader};

/// A collector and the address that it printed.
fn collect(binary: &Path, folder: &Path, listen: &str) -> (Child, String) {
    let mut command = Command::new(binary);
    command.args(["collect", "--json", "--listen", listen, "-o"]).arg(folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("stdout is piped")).read_line(&mut line).expect("it says where");
    let printed: serde_json::Value = serde_json::from_str(&line).expect("one JSON object");
    let address = printed["address"].as_str().expect("an address").to_owned();
    (child, address)
}

/// Ends it as a user would; gives back what it says at the end.
fn end(child: Child) -> String {
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(TERMINATED), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn read(trace: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(trace).expect("the trace opens").read_all(&mut store).expect("the trace reads");
    store
}

/// Programs of the store.
fn programs(store: &Store) -> Vec<&str> {
    store.processes().iter().map(|p| p.name.as_str()).collect()
}

#[test]
fn three_recordings_become_one_trace() {
    let Some(binary) = stepscope_binary("collect") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let gathered = dir.path().join("gathered");
    let (collector, address) = collect(&binary, &gathered, "127.0.0.1:0");
    let recordings: Vec<Child> = (0..3)
        .map(|n| {
            let mut record = Command::new(&binary);
            record.args(["record", "-q", "--sched", "-o"]).arg(dir.path().join(format!("trace-{n}")));
            // Two by the option, one by the environment.
            match n {
                0 => record.env("STEPSCOPE_COLLECTOR", &address),
                _ => record.args(["--collector", &address]),
            };
            record
                .arg("--")
                .arg(&binary)
                .arg("ops")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary starts")
        })
        .collect();
    for mut recording in recordings {
        assert!(recording.wait().expect("it ends").success());
    }
    let said = end(collector);
    assert!(said.contains("\"folders\":3") && said.contains("\"refused\":0"), "{said}");
    let store = read(&gathered);
    assert_eq!(programs(&store).iter().filter(|name| name.contains("ops")).count(), 3, "{:?}", programs(&store));
    assert!(store.processes().iter().all(|p| p.clock.is_some_and(|c| c.bound_ns == 0)), "one machine, one clock");
    // What is seen at home is what the collector has.
    for n in 0..3 {
        let home = read(&dir.path().join(format!("trace-{n}")));
        for track in home.tracks() {
            let same = |t: &&trace_store::Track| {
                t.name == track.name
                    && store.processes()[t.process as usize].pid == home.processes()[track.process as usize].pid
            };
            let slices: usize = store.tracks().iter().filter(same).map(trace_store::Track::n_slices).sum();
            assert!(slices >= track.n_slices(), "{}: {slices} of {}", track.name, track.n_slices());
        }
    }
    let mut analyze = Command::new(&binary);
    let output = analyze.arg("analyze").arg(&gathered).arg("--json").output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_collector_that_is_away_is_made_up_for_later() {
    let Some(binary) = stepscope_binary("collect later") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let (gathered, trace) = (dir.path().join("gathered"), dir.path().join("trace"));
    let mut record = Command::new(&binary);
    // Nobody listens there.
    record.args(["record", "--collector", "127.0.0.1:1", "-o"]).arg(&trace).arg("--").arg(&binary).arg("ops");
    let output = record.stdout(Stdio::null()).output().expect("the binary starts");
    assert!(output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("record --attach"), "{stderr}");
    let (collector, address) = collect(&binary, &gathered, "127.0.0.1:0");
    let send = || {
        let mut send = Command::new(&binary);
        send.args(["record", "--collector", &address, "--attach"]).arg(&trace).output().expect("the binary starts")
    };
    let output = send();
    assert!(output.status.success(), "{output:?}");
    assert!(send().status.success(), "again: there is nothing more to send");
    end(collector);
    assert!(programs(&read(&gathered)).iter().any(|name| name.contains("ops")));
}

#[test]
fn a_sealed_trace_is_sent_when_there_is_a_collector() {
    let Some(binary) = stepscope_binary("collect what is sealed") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let (gathered, trace) = (dir.path().join("gathered"), dir.path().join("trace"));
    let mut record = Command::new(&binary);
    record.args(["record", "-q", "--sched", "-o"]).arg(&trace).arg("--").arg(&binary).arg("ops");
    assert!(record.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the binary starts").success());
    assert!(trace.join("sealed").is_dir(), "nobody asked for a collector");
    let home = read(&trace);
    let (collector, address) = collect(&binary, &gathered, "127.0.0.1:0");
    let mut send = Command::new(&binary);
    let output = send.args(["record", "--collector", &address, "--attach"]).arg(&trace).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    end(collector);
    let there = read(&gathered);
    let of = |store: &Store| {
        let mut tracks: Vec<(String, usize)> = store.tracks().iter().map(|t| (t.name.clone(), t.n_slices())).collect();
        tracks.sort();
        (tracks, store.counters().len(), store.warnings().len())
    };
    assert_eq!(of(&there), of(&home));
    assert!(there.stats().slices > 0 && programs(&there).iter().any(|name| name.contains("ops")));
}

#[test]
fn wrong_use_is_told() {
    let Some(binary) = stepscope_binary("collect: wrong use") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    std::fs::write(dir.path().join("mine"), "mine").expect("the folder is ours");
    let run = |args: &[&str]| {
        let output = Command::new(&binary).args(args).current_dir(dir.path()).output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = run(&["collect", "-o", ".", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("empty or new folder"), "{stderr}");
    let (collector, address) = collect(&binary, &dir.path().join("gathered"), "127.0.0.1:0");
    let (code, stderr) = run(&["collect", "-o", "gathered", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{stderr}");
    let (code, stderr) = run(&["collect", "-o", "other", "--listen", &address]);
    assert_eq!(code, Some(2), "{stderr}");
    let (code, stderr) = run(&["record", "-o", "t", "--collector", "nonsense", "--", "true"]);
    assert_eq!(code, Some(2), "{stderr}");
    let (code, stderr) = run(&["record", "--attach", "nowhere", "--collector", &address]);
    assert_eq!(code, Some(2), "{stderr}");
    std::thread::sleep(Duration::from_millis(50));
    end(collector);
}
