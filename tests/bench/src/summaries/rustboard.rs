//! TensorBoard's own data server (`tensorboard-data-server` from PyPI) as a peer: how long its load cycle takes.
//!
//! `STEPSCOPE_PYTHON` names a python that has it; `cargo xtask bench` makes one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::cost::{self, Cost};
use crate::report::BenchError;
use ::events::clock;

/// The environment variable that names the python.
const PYTHON: &str = "STEPSCOPE_PYTHON";

/// Where the server's program is; `None` where no python is named.
pub fn program() -> Result<Option<String>, BenchError> {
    const ASK: &str = "import tensorboard_data_server as t; print(t.server_binary())";
    let Some(python) = std::env::var_os(PYTHON) else { return Ok(None) };
    let output = Command::new(python).args(["-c", ASK]).output()?;
    if !output.status.success() {
        return Err(format!("{PYTHON} has no tensorboard_data_server").into());
    }
    Ok(Some(String::from_utf8(output.stdout)?.trim().to_owned()))
}

/// From its start to the end of its first load cycle. `keeps_all`: every point, where it keeps 1,000 of a tag otherwise.
///
/// # Errors
/// It does not start, or ends before its first cycle does.
pub fn load(program: &str, logdir: &Path, keeps_all: bool) -> Result<Cost, BenchError> {
    let mut command = Command::new(program);
    command.arg("--logdir").arg(logdir).args(["--reload", "once", "-v", "--port", "0"]);
    if keeps_all {
        command.args(["--samples-per-plugin", "scalars=all,histograms=all"]);
    }
    let begin_ns = clock::mono_now();
    let mut server = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let log = BufReader::new(server.stderr.take().ok_or("the server's log is missing")?);
    let is_loaded = log.lines().map_while(Result::ok).any(|line| line.contains("Finished load cycle"));
    let wall_s = (clock::mono_now() - begin_ns) as f64 / 1e9;
    let cost = cost::of_process(&server.id().to_string());
    server.kill()?;
    server.wait()?;
    if !is_loaded {
        return Err("the data server ended before it had loaded".into());
    }
    let (cpu_s, rss) = cost?;
    Ok(Cost { wall_s, cpu_s, rss })
}
