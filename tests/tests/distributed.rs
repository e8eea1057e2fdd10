//! Training in several processes, a master with workers of its own, and what happens when one of them is killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use stepscope_tests::training::{Running, is_running, signal, until};
use stepscope_tests::{TERMINATED, stepscope_binary};

fn train(binary: &Path, logdir: &Path, more: &[&str]) -> Value {
    let mut command = Command::new(binary);
    command
        .args(["train", "mlp", "--steps", "20", "--seed", "3", "--json", "--quiet", "--logdir"])
        .arg(logdir)
        .args(more);
    let out = command.output().expect("the binary starts");
    let problems = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{more:?}: {problems}");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {problems}"))
}

/// The same until both workers have reported, and no longer; gives how many steps that were.
fn train_until_both_tell(binary: &Path, logdir: &Path, more: &[&str]) -> i64 {
    let mut command = Command::new(binary);
    command
        .args(["train", "mlp", "--steps", "1000000", "--seed", "3", "--json", "--quiet", "--logdir"])
        .arg(logdir)
        .args(more);
    let mut run = Running::start(command.stdout(Stdio::piped()));
    until("both workers report", || {
        let Ok(mut all) = summaries::Logdir::open(&[logdir.to_owned()]) else { return false };
        all.read_all();
        let runs = all.runs();
        let reports = |run: &&str| runs.by_name.get(*run).is_some_and(|run| run.series.contains_key("loss"));
        ["worker_0", "worker_1"].iter().all(reports)
    });
    assert!(signal("-TERM", run.child.id()));
    assert_eq!(run.end(Duration::from_secs(20)).code(), Some(TERMINATED), "{more:?}: {}", run.text());
    let printed: Value =
        serde_json::from_reader(run.child.stdout.take().expect("stdout is piped")).expect("one JSON object");
    printed["steps"].as_i64().expect("a number of steps")
}

#[test]
fn workers_train_as_one_process_does() {
    let Some(binary) = stepscope_binary("training in several processes") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let loss = |result: &Value| result["final_loss"].as_f64().expect("a loss");
    for n in ["1", "2", "3"] {
        let here = train(&binary, &at(&format!("here-{n}")), &["--devices", n, "--trace", "off"]);
        let there = train(&binary, &at(&format!("there-{n}")), &["--workers", n, "--trace", "off"]);
        let (a, b) = (loss(&here), loss(&there));
        assert!((a - b).abs() <= 1e-4 * a.abs(), "{n} workers: {b}, one process: {a}");
        let ring = train(&binary, &at(&format!("ring-{n}")), &["--workers", n, "--all-reduce", "--trace", "off"]);
        assert!((a - loss(&ring)).abs() <= 1e-4 * a.abs(), "{n} workers, each with the variables: {}", loss(&ring));
    }
}

/// The points of a scalar in an event folder: step and value.
fn scalar(logdir: &Path, run: &str, tag: &str) -> Vec<(i64, f64)> {
    let mut all = summaries::Logdir::open(&[logdir.to_owned()]).expect("a logdir");
    all.read_all();
    let runs = all.runs();
    let known = || runs.by_name.keys().collect::<Vec<_>>();
    let run = runs.by_name.get(run).unwrap_or_else(|| panic!("no run {run} in {:?}", known()));
    assert_eq!(run.n_damaged, 0, "{}", run.name);
    match run.series.get(tag) {
        Some(summaries::Series::Scalar(scalars)) => scalars.points().map(|p| (p.step, p.value)).collect(),
        other => panic!("{tag} of {}: {:?}", run.name, other.map(summaries::Series::kind)),
    }
}

/// What each worker reports about itself is in its own event folder; of a synchronous step the run reports the mean of what the workers
/// report.
#[test]
fn workers_write_summaries_of_their_own() {
    let Some(binary) = stepscope_binary("the summaries of several processes") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    // Of two with a backup worker one may be late in all steps.
    let modes: [&[&str]; 3] = [&[], &["--all-reduce"], &["--async"]];
    for mode in modes {
        let logdir = folder.path().join(format!("run{}", mode.concat()));
        let more = [mode, &["--workers", "2", "--trace", "off", "--summary-every", "7"]].concat();
        let steps = if mode == ["--async"] {
            // The workers share the steps: of a few, one that gets no processor for a while does none. And at the end one may give a step
            // back that it took before the other took the last one: then one more was done than is counted.
            train_until_both_tell(&binary, &logdir, &more) + 1
        } else {
            train(&binary, &logdir, &more);
            20
        };
        let of_workers = ["worker_0", "worker_1"].map(|run| scalar(&logdir, run, "loss"));
        assert!(of_workers.iter().all(|points| !points.is_empty()), "{mode:?}: {of_workers:?}");
        assert!(
            of_workers.iter().flatten().all(|(step, loss)| (1..=steps).contains(step) && *loss > 0.0),
            "{steps}: {of_workers:?}"
        );
        for run in ["worker_0", "worker_1"] {
            for tag in ["accuracy", "seconds/input", "seconds/gradients", "examples_per_second", "input/queued"] {
                let points = scalar(&logdir, run, tag);
                assert!(
                    !points.is_empty() && points.iter().all(|(_, v)| *v >= 0.0),
                    "{mode:?} {run} {tag}: {points:?}"
                );
            }
            let input = scalar(&logdir, run, "seconds/input");
            let whole = scalar(&logdir, run, "seconds/gradients");
            assert!(input.iter().zip(&whole).all(|((_, part), (_, all))| part <= all), "{mode:?}: {input:?} {whole:?}");
        }
        if mode.is_empty() || mode == ["--all-reduce"] {
            let run = scalar(&logdir, ".", "loss");
            assert_eq!(run.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [1, 10, 20], "{mode:?}");
            assert_eq!(of_workers[0].len(), run.len(), "{mode:?}");
            for (((step, mean), a), b) in run.iter().zip(&of_workers[0]).zip(&of_workers[1]) {
                assert_eq!((a.0, b.0), (*step, *step));
                assert!(
                    (mean - (a.1 + b.1) / 2.0).abs() < 1e-6 * mean.abs(),
                    "{mode:?} step {step}: {mean}, {a:?}, {b:?}"
                );
                assert_ne!(a.1, b.1, "each has its own batch");
            }
            let mut all = summaries::Logdir::open(&[logdir.join("worker_1")]).expect("a logdir");
            all.read_all();
            let runs = all.runs();
            let histograms = runs.by_name["."].series.iter().filter(|(_, series)| series.kind() == "histograms");
            let (tag, first) = histograms.clone().next().expect("histograms of gradients");
            assert!(tag.ends_with("/gradient") && first.n_points() == 3, "{tag}: steps 1, 7 and 14");
        }
    }
}

#[test]
fn one_trace_has_all_tasks() {
    let Some(binary) = stepscope_binary("the trace of several processes") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let logdir = folder.path().join("run");
    let result = train(&binary, &logdir, &["--workers", "2", "--async"]);
    assert_eq!(result["steps"], 20);
    let mut command = Command::new(&binary);
    command.args(["analyze", "--json"]).arg(logdir.join("trace"));
    let out = command.output().expect("the binary starts");
    let printed: Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
    // The steps of the launcher's process are run by the tasks, each under the number that it has there.
    let n_steps = printed["steps"].as_array().map(Vec::len).or_else(|| printed["steps"].as_u64().map(|n| n as usize));
    assert!(
        printed["slices"].as_u64() > Some(500) && n_steps >= Some(20),
        "{} slices, {n_steps:?} steps",
        printed["slices"]
    );
}

/// A run with two workers that goes on until it is ended, and its processes' ids: the training client's, and the workers'.
fn endless(binary: &Path, logdir: &Path) -> (Running, Vec<u32>) {
    let mut command = Command::new(binary);
    command.args(["train", "mlp", "--steps", "1000000", "--workers", "2", "--trace", "off", "--logdir"]).arg(logdir);
    let run = Running::start(command.stdout(Stdio::null()));
    run.wait_for("step", 1, Duration::from_secs(20));
    let processes = run.processes();
    assert_eq!(processes.len(), 3, "{processes:?}");
    (run, processes)
}

/// One that is killed closes its connections; one that is stopped falls silent. Without a checkpoint there is nothing to go on from.
#[test]
fn a_lost_worker_ends_the_run_by_name_and_leaves_no_process() {
    let Some(binary) = stepscope_binary("kill -9 and kill -STOP of a worker") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (how, lost) in [("-KILL", 1), ("-STOP", 0)] {
        let (mut run, processes) = endless(&binary, &folder.path().join(format!("run{how}")));
        assert!(signal(how, processes[1 + lost]));
        assert_eq!(run.end(Duration::from_secs(20)).code(), Some(1), "{how}");
        let printed = run.text();
        assert!(printed.contains(&format!("/job:worker/task:{lost} was lost")), "{how}: {printed}");
        assert!(printed.contains("with --checkpoint-dir DIR the run would continue"), "{how}: {printed}");
        until("no process is left", || !processes.iter().any(|process| is_running(*process)));
    }
}

#[test]
fn processes_end_with_a_killed_launcher() {
    let Some(binary) = stepscope_binary("kill -9 of a launcher") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (mut run, processes) = endless(&binary, &folder.path().join("run"));
    run.child.kill().expect("kill -9");
    run.end(Duration::from_secs(5));
    until("no process is left", || !processes.iter().any(|process| is_running(*process)));
}

/// What a command says first on its standard output.
fn first_line(mut command: Command) -> (Child, Value) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("it says where it is");
    (child, serde_json::from_str(&line).expect("one JSON object"))
}

#[test]
fn a_cluster_of_processes_trains_what_it_is_told() {
    let Some(binary) = stepscope_binary("worker and master as processes") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("cluster.toml");
    let socket = |n: usize| format!("\"unix:{}\"", folder.path().join(n.to_string()).display());
    let text = format!("id = \"t\"\nmaster = \"127.0.0.1:0\"\n[jobs]\nworker = [{}, {}]\n", socket(0), socket(1));
    std::fs::write(&file, text).expect("the scratch folder is ours");
    let mut processes = Vec::new();
    for task in ["0", "1"] {
        let mut command = Command::new(&binary);
        command.args([
            "worker",
            "--job",
            "worker",
            "--task",
            task,
            "--input",
            "mlp",
            "--seed",
            "3",
            "--json",
            "--cluster",
        ]);
        command.arg(&file);
        let (child, printed) = first_line(command);
        assert_eq!(printed["task"], format!("/job:worker/task:{task}"));
        processes.push(child);
    }
    let mut command = Command::new(&binary);
    command.args(["master", "--json", "--cluster"]).arg(&file);
    let (master, printed) = first_line(command);
    assert_eq!(printed["tasks"], 2);
    processes.push(master);
    let cluster = file.to_str().expect("a path in UTF-8");
    let there = train(&binary, &folder.path().join("there"), &["--cluster", cluster, "--trace", "off"]);
    let here = train(&binary, &folder.path().join("here"), &["--devices", "2", "--trace", "off"]);
    let (a, b) = (here["final_loss"].as_f64().expect("a loss"), there["final_loss"].as_f64().expect("a loss"));
    assert!((a - b).abs() <= 1e-4 * a.abs(), "{a} {b}");
    for mut process in processes {
        process.kill().expect("it runs");
        process.wait().expect("it ends");
    }
    // Addresses of other hosts are refused, with what to do instead.
    std::fs::write(&file, "[jobs]\nworker = [\"0.0.0.0:4001\"]\n").expect("the scratch folder is ours");
    let mut command = Command::new(&binary);
    command.args(["worker", "--job", "worker", "--task", "0", "--cluster"]).arg(&file);
    let out = command.output().expect("the binary starts");
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("forward the ports through ssh"));
}

/// A worker that nobody gave an input.
fn worker_without_input(binary: &Path, task: &str, cluster: &Path) -> Child {
    let mut command = Command::new(binary);
    command.args(["worker", "--job", "worker", "--task", task, "--json", "--cluster"]).arg(cluster);
    first_line(command).0
}

#[test]
fn training_without_input_says_what_it_waits_for_and_can_be_ended() {
    let Some(binary) = stepscope_binary("worker and client as processes") else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("cluster.toml");
    let socket = |n: usize| format!("\"unix:{}\"", folder.path().join(n.to_string()).display());
    std::fs::write(&file, format!("id = \"t\"\n[jobs]\nworker = [{}, {}]\n", socket(0), socket(1)))
        .expect("it is ours");
    let mut workers = ["0", "1"].map(|task| worker_without_input(&binary, task, &file));
    let mut command = Command::new(&binary);
    command.args(["train", "mlp", "--trace", "off", "--steps", "100", "--cluster"]).arg(&file);
    command.arg("--logdir").arg(folder.path().join("run")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut client = command.spawn().expect("the binary starts");
    let mut lines = BufReader::new(client.stderr.take().expect("stderr is piped")).lines().map_while(Result::ok);
    let printed = lines.find(|line| line.contains("makes no progress")).expect("it says so before it ends");
    assert!(printed.contains("step 1 (train)") && printed.contains("/job:worker/task:"), "{printed}");
    assert!(printed.contains("QueueDequeue"), "{printed}");
    assert!(signal("-TERM", client.id()));
    assert!(lines.last().is_some_and(|line| line.contains("cancelled")), "the last line says why it ended");
    let ended = client.wait().expect("it ends");
    assert_eq!(ended.code(), Some(TERMINATED), "{ended}");
    for worker in &mut workers {
        worker.kill().expect("it runs");
        worker.wait().expect("it ends");
    }
}
