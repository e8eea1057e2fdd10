//! The examples of the README and of docs/use/commands.md, each as it stands there, one after the other in one folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use stepscope_tests::{root, stepscope_binary};
use summaries::{SummaryWriter, WriterOptions};

/// What is run. The others open windows or wait for other machines, or train for minutes: they have tests of their own.
const COMMANDS: &[&str] = &[
    "analyze",
    "convert",
    "diff",
    "dumps",
    "report",
    "runs",
    "watch",
    "record",
    "import",
    "export",
    "query",
    "ops",
    "completions",
    "doctor",
];
const OTHERS: &[&str] = &["demo", "train", "run", "params", "compare", "master", "freeze", "view", "collect", "mcp"];

fn shell(binary: &Path, folder: &Path, line: &str) -> Output {
    // The program as the user's shell would find it.
    let path =
        format!("{}:{}", binary.parent().expect("a folder").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env("PATH", path);
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().expect("a shell")
}

/// What the examples take for granted: runs, a logdir, traces of two ranks, programs.
fn prepare(binary: &Path, folder: &Path) {
    for run in ["demo", "a", "b"] {
        let line = format!("stepscope train mlp --steps 80 --logdir runs/{run}");
        let output = shell(binary, folder, &line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for (run, rank) in [("a", 0), ("b", 1)] {
        let output = shell(binary, folder, &format!("stepscope export runs/{run} -o rank{rank}.json.gz"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let writer = SummaryWriter::create(&folder.join("logs/first"), WriterOptions::default()).expect("a writer");
    (0..100).for_each(|step| writer.add_scalar("loss", 1.0 / (1.0 + step as f32), step));
    writer.close().expect("all written");
    let lightning = folder.join("lightning_logs/version_0");
    fs::create_dir_all(&lightning).expect("a folder");
    fs::write(lightning.join("metrics.csv"), "epoch,loss,step\n0,0.5,49\n0,0.25,99\n").expect("a log");
    for (fixture, name) in
        [("gpu_p4.pickle", "snapshot.pickle"), ("skipped_0", "nccl_trace_rank_0"), ("skipped_1", "nccl_trace_rank_1")]
    {
        fs::copy(root().join("profiler/dumps/tests/fixtures").join(fixture), folder.join(name)).expect("a dump");
    }
    fs::write(folder.join("train.py"), "print(sum(i * i for i in range(3_000_000)))\n").expect("a script");
    let program = folder.join("my-training");
    fs::write(&program, "#!/bin/sh\ni=0; while [ $i -lt 20000 ]; do i=$((i+1)); done\n").expect("a program");
    #[cfg(unix)]
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it may be run");
}

/// The pages with examples, in the order in which they run.
const PAGES: &[&str] = &["README.md", "docs/use/commands.md"];

/// The lines of a page's code blocks that begin with the program's name.
fn examples(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).expect("the page");
    let blocks = text.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("stepscope "));
    lines.map(str::to_owned).collect()
}

#[test]
fn examples_of_the_pages_run() {
    let Some(binary) = stepscope_binary("the README's examples") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    prepare(&binary, dir.path());
    let mut missing: Vec<&str> = COMMANDS.to_vec();
    for page in PAGES {
        let lines = examples(page);
        assert!(lines.len() > 2, "{page} has only {lines:?}");
        for line in lines {
            let name = line.split_whitespace().nth(1).expect("a command");
            if OTHERS.contains(&name) {
                continue;
            }
            assert!(COMMANDS.contains(&name), "{page}: {line}: run it here, or say in OTHERS that it is not");
            missing.retain(|other| *other != name);
            let output = shell(&binary, dir.path(), &line);
            let errors = String::from_utf8_lossy(&output.stderr);
            if name == "query" && !output.status.success() {
                // Built without SQL: it says how to get it.
                assert!(errors.contains("--features query"), "{line}: {errors}");
                continue;
            }
            assert!(output.status.success(), "{page}: {line}: {errors}");
        }
    }
    assert!(missing.is_empty(), "the pages show no {missing:?}");
    let made = ["page/index.html", "job", "job.pftrace", "loss.parquet", "converted/version_0"];
    assert!(made.iter().all(|path| dir.path().join(path).exists()), "{made:?}");
}
