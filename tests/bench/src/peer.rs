//! TensorFlow as a peer: a Python process that measures what it is asked for, between our own measurements.
//!
//! `tensorflow_peer.py` says what it can measure. `STEPSCOPE_TENSORFLOW` names a python that has TensorFlow; `cargo xtask
//! bench` makes one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::json;

use crate::BenchError;

/// The environment variable that names the python.
pub const PYTHON: &str = "STEPSCOPE_TENSORFLOW";

/// A running TensorFlow with a fixed number of threads.
pub struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What TensorFlow measured, a figure per repetition.
#[derive(Deserialize)]
pub struct Measured {
    /// Nanoseconds by the clock.
    pub wall_ns: Vec<f64>,
    /// Nanoseconds of CPU time of its whole process.
    pub cpu_ns: Vec<f64>,
    /// Nodes that a repetition executes, where that is known.
    pub nodes: Option<f64>,
}

impl Peer {
    /// Starts TensorFlow; `None` where no python is named.
    ///
    /// # Errors
    /// The python does not start.
    pub fn start(threads: usize) -> Result<Option<Peer>, BenchError> {
        let Some(python) = std::env::var_os(PYTHON) else { return Ok(None) };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tensorflow_peer.py");
        let mut command = Command::new(&python);
        command.arg(script).arg(threads.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|e| format!("starting {}: {e}", python.to_string_lossy()))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the peer's pipes are missing".into());
        };
        Ok(Some(Peer { process, requests, answers: BufReader::new(answers) }))
    }

    /// Repeats a case and gives what each repetition took.
    ///
    /// # Errors
    /// It is unknown to the script, or TensorFlow failed.
    pub fn measure(&mut self, case: &str, repeat: usize, trace: bool) -> Result<Measured, BenchError> {
        writeln!(self.requests, "{}", json!({"case": case, "repeat": repeat, "trace": trace}))?;
        self.requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(format!("TensorFlow ended while it measured {case}; run the script by hand to see why").into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with its input anyway; killing spares its teardown.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
