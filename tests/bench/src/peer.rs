//! Peers: Python processes that measure what they are asked for, between our own measurements.
//!
//! `tensorflow_peer.py` and the others next to it say what they can measure. `STEPSCOPE_TENSORFLOW` names a python that has TensorFlow,
//! `STEPSCOPE_MPI` one that has Open MPI; `cargo xtask bench` makes them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::json;

use crate::report::BenchError;

/// The environment variable that names the python with TensorFlow.
pub const PYTHON: &str = "STEPSCOPE_TENSORFLOW";
/// The environment variable that names the python with mpi4py, next to which lies Open MPI's `mpirun`.
pub const MPI: &str = "STEPSCOPE_MPI";

/// A peer at work.
pub struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What a peer measured, a figure per repetition.
#[derive(Deserialize)]
pub struct Measured {
    /// Wall time in nanoseconds.
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
        let mut command = Command::new(&python);
        command.arg(script("tensorflow_peer.py")).arg(threads.to_string());
        Peer::of(command).map(Some)
    }

    /// Starts a client and servers of TensorFlow; `None` where no python is named.
    ///
    /// # Errors
    /// The python does not start.
    pub fn start_servers() -> Result<Option<Peer>, BenchError> {
        let Some(python) = std::env::var_os(PYTHON) else { return Ok(None) };
        let mut command = Command::new(&python);
        command.arg(script("distributed_peer.py"));
        Peer::of(command).map(Some)
    }

    /// Starts two processes of Open MPI; `None` where no python is named.
    ///
    /// # Errors
    /// They do not start.
    pub fn start_mpi() -> Result<Option<Peer>, BenchError> {
        let Some(python) = std::env::var_os(MPI) else { return Ok(None) };
        let mut command = mpirun(&python);
        command.arg(&python).arg(script("mpi_peer.py"));
        Peer::of(command).map(Some)
    }

    /// Starts two processes of this program in a world of Open MPI; `None` where no python is named.
    ///
    /// # Errors
    /// They do not start.
    #[cfg(feature = "mpi")]
    pub fn start_world(args: &[&str]) -> Result<Option<Peer>, BenchError> {
        let Some(python) = std::env::var_os(MPI) else { return Ok(None) };
        let mut command = mpirun(&python);
        command.arg(std::env::current_exe()?).args(args);
        Peer::of(command).map(Some)
    }

    fn of(mut command: Command) -> Result<Peer, BenchError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|e| format!("starting {command:?}: {e}"))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the peer's pipes are missing".into());
        };
        Ok(Peer { process, requests, answers: BufReader::new(answers) })
    }

    /// Repeats a case and gives what each repetition took.
    ///
    /// # Errors
    /// It is unknown to the script, or the peer failed.
    pub fn measure(&mut self, case: &str, repeat: usize, trace: bool) -> Result<Measured, BenchError> {
        writeln!(self.requests, "{}", json!({"case": case, "repeat": repeat, "trace": trace}))?;
        self.requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(format!("the peer ended while it measured {case}; run its script by hand to see why").into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// Two processes of what follows.
fn mpirun(python: &std::ffi::OsStr) -> Command {
    let mut command = Command::new(Path::new(python).with_file_name("mpirun"));
    command.args(["-n", "2", "--oversubscribe"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with its input anyway, and its own processes with it; killing spares its teardown.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
