//! Training in the processes that Open MPI's `mpirun` started. `STEPSCOPE_MPI_BIN` names a program that was built with MPI, `STEPSCOPE_MPI`
//! a python next to `mpirun`; `cargo xtask soak` makes both.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use stepscope_tests::from_env;
use stepscope_tests::training::{Running, checkpoint, is_running, newest, signal, until};

/// Workers are found by their program, whatever world they are of: there is one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The program, and `mpirun`.
fn programs(what: &str) -> Option<(PathBuf, PathBuf)> {
    Some((from_env("STEPSCOPE_MPI_BIN", what)?, from_env("STEPSCOPE_MPI", what)?.with_file_name("mpirun")))
}

/// A client and `n` workers in one world. Workers end with it.
fn world(mpirun: &Path, binary: &Path, n: &str, logdir: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(mpirun);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["--oversubscribe", "--timeout", "300", "-n", "1"]).arg(binary);
    command.args(["train", "mlp", "--seed", "3", "--json", "--cluster", "mpi", "--trace", "off", "--logdir"]);
    command.arg(logdir).args(more);
    command.args([":", "-n", n]).arg(binary).args([
        "worker",
        "--quiet",
        "--cluster",
        "mpi",
        "--input",
        "mlp",
        "--seed",
        "3",
    ]);
    command.stdout(Stdio::piped());
    command
}

fn here(binary: &Path, logdir: &Path, more: &[&str]) -> Value {
    let mut command = Command::new(binary);
    command.args(["train", "mlp", "--seed", "3", "--json", "--quiet", "--trace", "off", "--logdir"]).arg(logdir);
    let out = command.args(more).output().expect("the program starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("one JSON object")
}

fn loss(printed: &Value) -> f64 {
    printed["final_loss"].as_f64().expect("a loss")
}

#[test]
fn processes_of_mpi_train_as_workers_do() {
    let Some((binary, mpirun)) = programs("training by MPI") else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (n, style) in [("1", &[][..]), ("3", &[]), ("3", &["--all-reduce"])] {
        let name = format!("{n}{}", style.concat());
        let steps = ["--steps", "30"];
        let there = folder.path().join(format!("there-{name}"));
        let out = world(&mpirun, &binary, n, &there, &[&steps, style].concat()).output().expect("mpirun starts");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let there: Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
        let workers = [&steps, &["--workers", n][..], style].concat();
        let here = here(&binary, &folder.path().join(format!("here-{name}")), &workers);
        assert_eq!((loss(&there), &there["steps"]), (loss(&here), &here["steps"]), "{name}: the same steps");
    }
}

/// `mpirun` ends a world that loses a process; the next one goes on where it was, to the variables of an undisturbed run.
#[test]
fn a_lost_process_ends_the_world_and_the_next_goes_on() {
    let Some((binary, mpirun)) = programs("kill -9 of a worker in a world of MPI") else { return };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let options = |steps: u64, to: &Path| {
        let to = to.to_str().expect("a path in UTF-8");
        ["--steps", &steps.to_string(), "--checkpoint-every", "20", "--checkpoint-dir", to].map(str::to_owned)
    };
    let there = |steps: u64| {
        let options = options(steps, &at("checkpoints"));
        world(&mpirun, &binary, "2", &at("there"), &options.each_ref().map(String::as_str))
    };
    // It has no end of its own: there is somebody to kill, however late this comes to it.
    let mut first = Running::start(&mut there(1_000_000));
    first.wait_for_checkpoint(&at("checkpoints"), 0, Duration::from_secs(60));
    let workers = workers(&binary);
    assert_eq!(workers.len(), 2, "{workers:?}\n{}", first.text());
    assert!(signal("-KILL", workers[1]));
    assert!(!first.end(Duration::from_secs(20)).success(), "{}", first.text());
    until("no process is left", || !workers.iter().any(|process| is_running(*process)));
    let steps = newest(&at("checkpoints")) + 100;
    let out = there(steps).output().expect("mpirun starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let undisturbed = options(steps, &at("undisturbed"));
    let mut undisturbed: Vec<&str> = undisturbed.iter().map(String::as_str).collect();
    undisturbed.extend(["--workers", "2"]);
    here(&binary, &at("here"), &undisturbed);
    let [went_on, expected] = ["checkpoints", "undisturbed"].map(|name| checkpoint(&at(name), steps));
    assert!(!expected.is_empty() && went_on == expected, "the variables differ");
}

/// Processes of a world's workers.
fn workers(binary: &Path) -> Vec<u32> {
    let ids = std::fs::read_dir("/proc").expect("/proc is there").flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_worker = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
        words[0] == binary.as_os_str().as_encoded_bytes() && words.get(1) == Some(&&b"worker"[..])
    };
    ids.filter(is_worker).collect()
}
