//! Steps and values between processes: empty steps on other tasks, values from task to task over each transport, training with
//! workers and what tracing it costs. TensorFlow's gRPC servers, Open MPI and bare sockets do the same in the same run, in turns,
//! so that a slow moment of the machine hits all.
//!
//! Task 0 and the master are in this process, each other task in one of its own; TensorFlow's likewise. A value is a variable's of
//! task 1, which each step sends to task 0, where its first element is looked at.

mod one_way;
mod processes;
mod training;
#[cfg(feature = "mpi")]
mod world;

use std::process::ExitCode;
use std::time::Duration;

use ::distributed::{Cluster, Master, MasterOptions, TaskName, Worker};
use ::engine::graph::Graph;
use ::net::simulated::Network;
use ::threads::simulation::Simulation;
use one_way::{OneWay, on, times};
pub use processes::PROCESS;
use processes::{Bare, JOB_ID, Process};

use crate::peer::{MPI, PYTHON, Peer};
use crate::report::{BenchError, Report};
use crate::stats::{median, quantile};

/// Turns that each side has.
const TURNS: usize = 5;
/// Sizes of values, with how many a turn sends.
const SIZES: [(usize, usize); 3] = [(4, 300), (1 << 20, 60), (100 << 20, 4)];
/// Numbers of workers of a null step, in processes of their own; TensorFlow's client cannot start more in a reasonable time.
const WORKERS: [usize; 4] = [1, 2, 4, 8];
/// The same, of workers that are in this process: what a master does with many, the network and other processors aside. Then in a
/// simulation, where each has a processor and the network takes what is said: what is left are waits.
const MANY: [usize; 4] = [16, 100, 300, 1000];
/// What a message takes there.
const DELAY: Duration = Duration::from_micros(25);

/// Is one of the other processes.
pub fn process(what: &str, address: &str) -> ExitCode {
    processes::be(what, address)
}

/// Runs all.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let mut peer = Peer::start_servers()?;
    if peer.is_none() {
        eprintln!("not compared with TensorFlow: {PYTHON} names no python that has it");
    }
    for n in WORKERS.into_iter().chain([16]) {
        null_steps(report, peer.as_mut(), n)?;
    }
    values(report, peer.as_mut())?;
    drop(peer);
    for n in MANY {
        in_one_process(report, n)?;
        simulated(report, n)?;
    }
    training::run(report)
}

/// Workers in processes of their own, task 0 in this one, and the master.
struct Tasks {
    master: Master,
    _own: Worker,
    _others: Vec<Process>,
    _folder: tempfile::TempDir,
}

/// How the tasks reach each other.
#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Tcp,
    Unix,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "TCP",
            Transport::Unix => "Unix socket",
        }
    }

    fn address(self, folder: &tempfile::TempDir, task: usize) -> String {
        match self {
            Transport::Tcp => "127.0.0.1:0".to_owned(),
            Transport::Unix => format!("unix:{}/{task}", folder.path().display()),
        }
    }
}

impl Tasks {
    fn start(n: usize, transport: Transport) -> Result<Tasks, BenchError> {
        let folder = tempfile::tempdir()?;
        let own = processes::worker(0, &transport.address(&folder, 0))?;
        let start = |task| Process::start(&format!("worker {task}"), &transport.address(&folder, task));
        let others: Vec<Process> = (1..=n).map(start).collect::<Result<_, _>>()?;
        let mut tasks = std::collections::BTreeMap::from([(TaskName::new("worker", 0), own.address().clone())]);
        for (task, other) in (1..).zip(&others) {
            tasks.insert(TaskName::new("worker", task), other.address.parse()?);
        }
        let cluster = Cluster { id: JOB_ID.into(), master: None, tasks, certificates: None };
        let master = Master::new(cluster, MasterOptions::default());
        Ok(Tasks { master, _own: own, _others: others, _folder: folder })
    }
}

/// A step with one no-op on each of the other tasks.
fn null_steps(report: &mut Report, mut peer: Option<&mut Peer>, n: usize) -> Result<(), BenchError> {
    let case = format!("null step, {n} other tasks");
    if !report.wants(&case) {
        return Ok(());
    }
    let tasks = Tasks::start(n, Transport::Tcp)?;
    let g = Graph::new();
    let targets: Vec<String> = (1..=n).map(|task| format!("null{task}")).collect();
    for (task, target) in (1..).zip(&targets) {
        on(&g, task).group(target, &[]);
    }
    let session = tasks.master.session(&g)?;
    let names: Vec<&str> = targets.iter().map(String::as_str).collect();
    let step = session.prepare(&[], &[], &names)?;
    let mut peer = peer.as_mut().filter(|_| WORKERS.contains(&n));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        times(&mut ours, 300, || Ok(step.run(&[]).map(drop)?))?;
        if let Some(peer) = &mut peer {
            theirs.extend(peer.measure(&format!("null {n}"), 100, false)?.wall_ns);
        }
    }
    add_times(report, &case, "", &ours, None);
    if !theirs.is_empty() {
        add_times(report, &case, ", TensorFlow", &theirs, None);
        report.add(format!("{case}, of TensorFlow's time"), 100.0 * median(&ours) / median(&theirs), "%");
    }
    Ok(())
}

/// A step with one no-op on each of `n` tasks, all in this process.
fn in_one_process(report: &mut Report, n: usize) -> Result<(), BenchError> {
    let case = format!("null step, {n} tasks of one process");
    if !report.wants(&case) {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let start = |task: usize| processes::worker(task as u32, &Transport::Unix.address(&folder, task));
    let workers: Vec<Worker> = (0..n).map(start).collect::<Result<_, _>>()?;
    let tasks = workers.iter().map(|worker| (worker.task().clone(), worker.address().clone())).collect();
    let cluster = Cluster { id: JOB_ID.into(), master: None, tasks, certificates: None };
    let master = Master::new(cluster, MasterOptions::default());
    let (g, targets) = nulls(n)?;
    let session = master.session(&g)?;
    let names: Vec<&str> = targets.iter().map(String::as_str).collect();
    let step = session.prepare(&[], &[], &names)?;
    let mut taken = Vec::new();
    times(&mut taken, 50, || Ok(step.run(&[]).map(drop)?))?;
    add_times(report, &case, "", &taken, None);
    report.add(format!("{case}, a task"), median(&taken) / n as f64 / 1e3, "us");
    Ok(())
}

/// The null step in a simulation.
fn simulated(report: &mut Report, n: usize) -> Result<(), BenchError> {
    let case = format!("null step, {n} simulated tasks, {} us a message", DELAY.as_micros());
    if !report.wants(&case) {
        return Ok(());
    }
    let (messages, took) = Simulation::run(n as u64, |simulation| simulated_step(simulation, n))?;
    report.add(case.clone(), took.as_secs_f64() * 1e6, "us");
    report.add(format!("{case}, messages a task"), messages as f64 / n as f64, "");
    Ok(())
}

/// The messages and the time of a step of no-ops.
fn simulated_step(simulation: &Simulation, n: usize) -> Result<(u64, Duration), BenchError> {
    simulation.set_turn(Duration::ZERO);
    let network = Network::of(simulation);
    network.set_delays(DELAY, Duration::ZERO);
    let mut tasks = std::collections::BTreeMap::new();
    for task in 0..n as u32 {
        let (process, address) = (simulation.process(&format!("w{task}")), format!("w{task}:4000"));
        tasks.insert(TaskName::new("worker", task), address.parse()?);
        let body = move || {
            // Where it cannot start, nobody answers, which the master reports.
            let _worker = processes::worker(task, &address);
            loop {
                ::threads::sleep(Duration::from_secs(3600));
            }
        };
        simulation.spawn(process, "worker", body)?;
    }
    // Until all listen.
    ::threads::sleep(Duration::from_millis(1));
    let cluster = Cluster { id: JOB_ID.into(), master: None, tasks, certificates: None };
    let (g, targets) = nulls(n)?;
    let session = Master::new(cluster, MasterOptions::default()).session(&g)?;
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let step = session.prepare(&[], &[], &targets)?;
    // Between the connections' heartbeats.
    ::threads::sleep(Duration::from_millis(100));
    let (begin, before) = (::threads::now(), network.n_pieces());
    step.run(&[])?;
    Ok((network.n_pieces() - before, ::threads::since(begin)))
}

/// A no-op on each of `n` tasks.
fn nulls(n: usize) -> Result<(Graph, Vec<String>), BenchError> {
    let g = Graph::new();
    let targets: Vec<String> = (0..n).map(|task| format!("null{task}")).collect();
    for (task, target) in targets.iter().enumerate() {
        on(&g, task).group(target, &[]);
    }
    Ok((g, targets))
}

/// Values from task to task.
fn values(report: &mut Report, mut peer: Option<&mut Peer>) -> Result<(), BenchError> {
    let mut mpi = Peer::start_mpi()?;
    if mpi.is_none() {
        eprintln!("not compared with Open MPI: {MPI} names no python that has it");
    }
    let mut by_mpi = by_mpi()?;
    for (bytes, repeat) in SIZES {
        let case = format!("value of {}", size(bytes));
        if !report.wants(&case) {
            continue;
        }
        let (mut running, mut ways) = (Vec::new(), Vec::new());
        for way in [Transport::Tcp, Transport::Unix] {
            let tasks = Tasks::start(1, way)?;
            ways.push((way, OneWay::new(&tasks.master, bytes)?, Bytes::new(way, bytes)?, Vec::new(), Vec::new()));
            running.push(tasks);
        }
        let (mut theirs, mut mpis, mut ours_by_mpi) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            for (_, ours, bare, of_ours, of_bare) in &mut ways {
                times(of_ours, repeat, || ours.step())?;
                times(of_bare, repeat, || bare.send())?;
            }
            let asked = format!("tensor {bytes}");
            if let Some(peer) = &mut peer {
                theirs.extend(peer.measure(&asked, repeat, false)?.wall_ns);
            }
            if let Some(mpi) = &mut mpi {
                mpis.extend(mpi.measure(&asked, repeat, false)?.wall_ns);
            }
            if let Some(mpi) = &mut by_mpi {
                ours_by_mpi.extend(mpi.measure(&asked, repeat, false)?.wall_ns);
            }
        }
        let bytes = (bytes > 4).then_some(bytes);
        for (way, _, _, ours, bare) in &ways {
            add_times(report, &case, &format!(", {}", way.name()), ours, bytes);
            add_times(report, &case, &format!(", bare {}", way.name()), bare, bytes);
            if !theirs.is_empty() {
                let share = 100.0 * median(ours) / median(&theirs);
                report.add(format!("{case}, {}, of TensorFlow's time", way.name()), share, "%");
            }
        }
        for (peer, times) in [("by MPI", &ours_by_mpi), ("TensorFlow", &theirs), ("Open MPI", &mpis)] {
            if !times.is_empty() {
                add_times(report, &case, &format!(", {peer}"), times, bytes);
            }
        }
    }
    Ok(())
}

/// Two tasks of ours in a world of MPI, where this program was built with it.
#[cfg(feature = "mpi")]
fn by_mpi() -> Result<Option<Peer>, BenchError> {
    Peer::start_world(&[PROCESS, "world", "mpi"])
}

#[cfg(not(feature = "mpi"))]
fn by_mpi() -> Result<Option<Peer>, BenchError> {
    Ok(None)
}

/// The same bytes over a bare socket.
struct Bytes {
    bare: Bare,
    data: Vec<u8>,
    _process: Process,
    _folder: tempfile::TempDir,
}

impl Bytes {
    fn new(transport: Transport, bytes: usize) -> Result<Bytes, BenchError> {
        let folder = tempfile::tempdir()?;
        let process = Process::start("echo", &transport.address(&folder, 1))?;
        let bare = Bare::connect(&process.address)?;
        Ok(Bytes { bare, data: vec![1; bytes], _process: process, _folder: folder })
    }

    fn send(&mut self) -> Result<(), BenchError> {
        self.bare.send(&self.data)
    }
}

fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} B") }
}

/// The median and the least, and the rate where there are bytes.
fn add_times(report: &mut Report, case: &str, who: &str, times: &[f64], bytes: Option<usize>) {
    report.add(format!("{case}{who}"), median(times) / 1e3, "us");
    report.add(format!("{case}{who}, least"), quantile(times, 0.0) / 1e3, "us");
    if let Some(bytes) = bytes {
        report.add(format!("{case}{who}"), bytes as f64 / median(times), "GB/s");
    }
}
