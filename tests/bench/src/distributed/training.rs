//! `stepscope train` in one process and with workers, traced and not: the program as it is used, in turns.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::{BenchError, Report};
use crate::stats::median;

/// Turns of each way.
const TURNS: usize = 5;
const STEPS: u32 = 60;

/// The release program next to this one.
fn program() -> Result<PathBuf, BenchError> {
    let found = std::env::current_exe()?.with_file_name("stepscope");
    if found.is_file() { Ok(found) } else { Err(format!("{} is missing: build it first", found.display()).into()) }
}

/// Steps a second of the training loop.
fn rate(program: &Path, workers: Option<u32>, is_traced: bool) -> Result<f64, BenchError> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.args(["train", "convnet", "--json", "--steps", &STEPS.to_string()]);
    command.arg("--logdir").arg(folder.path().join("run"));
    if let Some(n) = workers {
        command.args(["--workers", &n.to_string(), "--threads", "1"]);
    }
    if !is_traced {
        command.args(["--trace", "off"]);
    }
    let output = command.stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status).into());
    }
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    result["steps_per_second"].as_f64().ok_or_else(|| "no rate in what the training printed".into())
}

/// Compares them.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    if !report.wants("convnet") {
        return Ok(());
    }
    let program = program()?;
    let ways = [("one process", None), ("1 worker", Some(1)), ("2 workers", Some(2))];
    for (name, workers) in ways {
        let (mut traced, mut plain) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            for is_traced in [turn % 2 == 0, turn % 2 == 1] {
                let into = if is_traced { &mut traced } else { &mut plain };
                into.push(rate(&program, workers, is_traced)?);
            }
        }
        report.add(format!("convnet, {name}"), median(&plain), "steps/s");
        let cost: Vec<f64> = plain.iter().zip(&traced).map(|(plain, traced)| (plain / traced - 1.0) * 100.0).collect();
        report.add(format!("convnet, {name}, tracing costs"), median(&cost), "%");
    }
    Ok(())
}
