//! What a slice costs compared with other tracers, each in a process of its own, visited in turns.
//!
//! A visit is [`BLOCKS`] blocks of slices on one or two threads at once; in each round every tracer gets one visit, in alternating
//! order, so that a busy machine disturbs all alike. Processes and not threads, since each of them wants to be the process's
//! only tracer (global subscriber, global profiler, listening port).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use ::events::clock;
use tempfile::TempDir;

use super::blocks::BLOCK;
use super::tracers::{TRACERS, Tracer};
use crate::report::{BenchError, Report};
use crate::stats::{median, quantile};

/// The option by which this program is one of the tracers' processes.
pub const EMIT: &str = "--emit-with";
/// Blocks of a visit: no ring of ours is full before the last one ends.
const BLOCKS: usize = 8;
/// Odd, and so few that what Tracy keeps until somebody connects stays below half a gigabyte.
const ROUNDS: usize = 61;
const THREADS: [usize; 2] = [1, 2];
/// Tracy's ports, one for each process.
const FIRST_PORT: usize = 18_086;
/// What a process says at its end where no slice is missing.
const COMPLETE: &str = "complete";
/// What the others are compared with: a guard that goes out of scope, as all of them offer.
const OURS: &str = "stepscope, guard";

/// Runs the comparison.
///
/// # Errors
/// A process does not start, or a tracer lost slices.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let processes = TRACERS.iter().enumerate();
    let mut processes =
        processes.map(|(i, (name, _))| Process::start(name, FIRST_PORT + i)).collect::<Result<Vec<_>, _>>()?;
    for n_threads in THREADS {
        let mut rounds: Vec<Vec<f64>> = Vec::new();
        for round in 0..ROUNDS {
            let mut ns = vec![0.0; processes.len()];
            for i in 0..processes.len() {
                let i = if round % 2 == 1 { processes.len() - 1 - i } else { i };
                ns[i] = processes[i].visit(n_threads)?;
            }
            rounds.push(ns);
        }
        add_figures(report, n_threads, &rounds);
    }
    processes.into_iter().try_for_each(Process::end)
}

fn add_figures(report: &mut Report, n_threads: usize, rounds: &[Vec<f64>]) {
    let of = |name: &str| TRACERS.iter().position(|(n, _)| *n == name);
    let Some(ours) = of(OURS) else { return };
    let threads = if n_threads == 1 { "1 thread".to_owned() } else { format!("{n_threads} threads") };
    for (i, (name, _)) in TRACERS.iter().enumerate() {
        let case = format!("next to each other, {threads}: {name}");
        report.add(format!("{case}, median"), median(rounds.iter().map(|ns| ns[i])), "ns");
        report.add(format!("{case}, first decile"), quantile(rounds.iter().map(|ns| ns[i]), 0.1), "ns");
        report.add(format!("{case}, of our guard's"), median(rounds.iter().map(|ns| ns[i] / ns[ours])), "times");
    }
}

/// A process that emits with one tracer when it is asked to.
struct Process {
    name: &'static str,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Process {
    fn start(name: &'static str, port: usize) -> Result<Process, BenchError> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(EMIT).arg(name).arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Tracy listens in all of them, since it begins before `main` does.
        let mut child = command.env("TRACY_PORT", port.to_string()).spawn()?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a tracer's pipes are missing".into());
        };
        let mut process = Process { name, child, requests, answers: BufReader::new(answers), _folder: folder };
        // The first visit makes rings, buffers and names.
        process.visit(THREADS[1])?;
        Ok(process)
    }

    /// ns per slice, the median of the blocks of all threads.
    fn visit(&mut self, n_threads: usize) -> Result<f64, BenchError> {
        let answer = self.ask(n_threads)?;
        answer.parse().map_err(|_| format!("{}: {answer}", self.name).into())
    }

    fn ask(&mut self, n_threads: usize) -> Result<String, BenchError> {
        writeln!(self.requests, "{n_threads}")?;
        self.requests.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn end(mut self) -> Result<(), BenchError> {
        let answer = self.ask(0)?;
        if answer == COMPLETE { Ok(()) } else { Err(format!("{}: {answer}", self.name).into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Not by its own end: Tracy would wait for its viewer.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// This process emits with one tracer: reads a number of threads per line, prints ns per slice; at 0 whether all is there.
pub fn emit_with(name: &str, folder: &str) -> ExitCode {
    match serve(name, Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            println!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn serve(name: &str, folder: &Path) -> Result<(), BenchError> {
    let (_, start) = TRACERS.iter().find(|(n, _)| *n == name).ok_or("no such tracer")?;
    let tracer: Arc<dyn Tracer> = start(folder)?.into();
    let workers: Vec<Worker> = (0..THREADS[1]).map(|_| Worker::start(tracer.clone())).collect();
    let mut emitted = 0;
    for line in std::io::stdin().lines() {
        let n_threads: usize = line?.parse()?;
        if n_threads == 0 {
            tracer.finish(emitted)?;
            println!("{COMPLETE}");
            continue;
        }
        let gate = Arc::new(AtomicUsize::new(n_threads));
        for worker in &workers[..n_threads] {
            worker.go.send(gate.clone())?;
        }
        let mut ns = Vec::new();
        for worker in &workers[..n_threads] {
            ns.extend(worker.done.recv()?);
        }
        emitted += n_threads as u64 * BLOCKS as u64 * BLOCK;
        tracer.drain()?;
        println!("{}", median(ns));
    }
    Ok(())
}

/// A thread that emits on request.
struct Worker {
    go: Sender<Arc<AtomicUsize>>,
    done: Receiver<Vec<f64>>,
}

impl Worker {
    fn start(tracer: Arc<dyn Tracer>) -> Worker {
        let (go, asked) = channel::<Arc<AtomicUsize>>();
        let (answer, done) = channel();
        std::thread::spawn(move || {
            for gate in asked {
                // All begin together.
                gate.fetch_sub(1, Ordering::Relaxed);
                while gate.load(Ordering::Relaxed) > 0 {
                    std::thread::yield_now();
                }
                if answer.send(visit(&*tracer)).is_err() {
                    return;
                }
            }
        });
        Worker { go, done }
    }
}

/// ns per slice of each block.
fn visit(tracer: &dyn Tracer) -> Vec<f64> {
    let mut ns = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        let begin = clock::mono_now();
        tracer.block();
        ns.push((clock::mono_now() - begin) as f64 / BLOCK as f64);
    }
    ns
}
