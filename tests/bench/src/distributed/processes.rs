//! The other processes of the benchmark: workers, and what sends bytes back over a bare socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use ::distributed::{TaskName, Worker, WorkerOptions};

use crate::report::BenchError;

/// The option that makes this program one of the other processes.
pub const PROCESS: &str = "--process";

/// The job's id.
pub const JOB_ID: &str = "bench";

/// A process that runs as long as this.
pub struct Process {
    child: Child,
    _stdin: Option<ChildStdin>,
    /// Where it listens.
    pub address: String,
}

impl Process {
    /// Starts this program as `what`, and waits until it listens at `address`.
    pub fn start(what: &str, address: &str) -> Result<Process, BenchError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PROCESS, what, address]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().ok_or("a pipe is missing")?);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().to_owned();
        let process = Process { child, _stdin: stdin, address };
        if process.address.is_empty() { Err(format!("the process '{what}' ended at once").into()) } else { Ok(process) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Is such a process, until standard input ends.
pub fn be(what: &str, address: &str) -> ExitCode {
    let done = match what.split_once(' ') {
        Some(("worker", task)) => be_worker(task, address),
        _ if what == "echo" => be_echo(address),
        #[cfg(feature = "mpi")]
        _ if what == "world" => super::world::be(),
        _ => Err(format!("no process is called {what}").into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{what} at {address}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_address(address: &dyn std::fmt::Display) -> Result<(), BenchError> {
    println!("{address}");
    #[expect(clippy::disallowed_methods, reason = "a program whose output is its result")]
    let mut stdout = std::io::stdout();
    Ok(stdout.flush()?)
}

/// A task's worker with one thread.
pub fn worker(task: u32, address: &str) -> Result<Worker, BenchError> {
    let options = WorkerOptions { job_id: JOB_ID.into(), threads: Some(1), ..WorkerOptions::default() };
    Ok(Worker::start(&TaskName::new("worker", task), &address.parse()?, &options)?)
}

fn be_worker(task: &str, address: &str) -> Result<(), BenchError> {
    let worker = worker(task.parse()?, address)?;
    print_address(worker.address())?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Bytes that come back over a bare socket: those of the length said before, answered by one.
fn be_echo(address: &str) -> Result<(), BenchError> {
    if let Some(path) = address.strip_prefix("unix:") {
        let listener = UnixListener::bind(path)?;
        print_address(&address)?;
        return answer(listener.accept()?.0);
    }
    let listener = TcpListener::bind(address)?;
    print_address(&listener.local_addr()?)?;
    let stream = listener.accept()?.0;
    stream.set_nodelay(true)?;
    answer(stream)
}

fn answer(mut stream: impl Read + Write) -> Result<(), BenchError> {
    let mut data = Vec::new();
    let mut len = [0; 8];
    while stream.read_exact(&mut len).is_ok() {
        let n = usize::try_from(u64::from_le_bytes(len))?;
        data.resize(n, 0);
        stream.read_exact(&mut data)?;
        stream.write_all(&[1])?;
    }
    Ok(())
}

/// The near end of a bare socket.
pub enum Bare {
    /// TCP.
    Tcp(TcpStream),
    /// In the file system.
    Unix(UnixStream),
}

impl Bare {
    /// Connects to an `echo` process.
    pub fn connect(address: &str) -> Result<Bare, BenchError> {
        if let Some(path) = address.strip_prefix("unix:") {
            return Ok(Bare::Unix(UnixStream::connect(path)?));
        }
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Bare::Tcp(stream))
    }

    /// Sends bytes and waits for the answer.
    pub fn send(&mut self, data: &[u8]) -> Result<(), BenchError> {
        match self {
            Bare::Tcp(stream) => send(stream, data),
            Bare::Unix(stream) => send(stream, data),
        }
    }
}

fn send(stream: &mut (impl Read + Write), data: &[u8]) -> Result<(), BenchError> {
    stream.write_all(&(data.len() as u64).to_le_bytes())?;
    stream.write_all(data)?;
    Ok(stream.read_exact(&mut [0])?)
}
