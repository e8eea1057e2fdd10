//! A cluster in a simulation: real workers, masters and network code; processes, sockets, threads and clock are simulated.

pub mod client;
pub mod faults;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use distributed::{Cluster, TaskName, Worker, WorkerOptions};
use net::simulated::Network;
use parking_lot::Mutex;
use threads::simulation::{Process, Simulation};

/// What clients share, as they would a folder of checkpoints.
#[derive(Default)]
pub struct Shared {
    pub state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    /// Counts the moments that `takeovers` refers to.
    now: u64,
    /// Who took the cluster for itself, since when and until when it asked the tasks.
    takeovers: Vec<Takeover>,
    /// The step that the newest checkpoint is of.
    pub saved: u64,
    /// What was fed last: no two steps get the same.
    pub fed: u64,
    /// No more faults come: who trains may end.
    pub is_calm: bool,
    /// Who ended well.
    pub is_done: bool,
    pub n_steps: u64,
    pub n_restarts: u64,
    /// The longest that a step took until it reported a loss.
    pub reported_after: Duration,
    /// When a loss was reported first.
    pub reported_at: Option<i64>,
}

/// From when to when a client took the tasks, one by one.
#[derive(Debug, Clone, Copy)]
pub struct Takeover {
    begin: u64,
    end: u64,
}

impl State {
    /// What happens now happens after all that was before.
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A client that began to take the tasks at `begin` has all of them.
    pub fn take(&mut self, begin: u64) -> Takeover {
        let takeover = Takeover { begin, end: self.tick() };
        self.takeovers.push(takeover);
        takeover
    }

    /// Whether another client took every task after this one had taken it. Of two at once each may have some.
    pub fn is_void(&self, own: Takeover) -> bool {
        self.takeovers.iter().any(|other| own.end < other.begin)
    }
}

/// A task in its present life.
pub struct Task {
    pub host: String,
    pub process: Process,
    worker: Arc<Mutex<Weak<Worker>>>,
}

/// The tasks, and who trains with them.
pub struct Simulated<'s> {
    pub simulation: &'s Simulation,
    pub network: Arc<Network>,
    pub tasks: Vec<Task>,
    pub shared: Arc<Shared>,
    pub clients: Vec<(String, Process)>,
}

impl<'s> Simulated<'s> {
    pub fn start(simulation: &'s Simulation, n: usize) -> Simulated<'s> {
        let network = Network::of(simulation);
        let start = |task| {
            let host = format!("w{task}");
            let process = simulation.process(&host);
            Task { host, process, worker: Arc::default() }
        };
        let tasks = (0..n).map(start).collect();
        let cluster = Simulated { simulation, network, tasks, shared: Arc::default(), clients: Vec::new() };
        (0..n).for_each(|task| cluster.start_worker(task));
        cluster
    }

    fn start_worker(&self, task: usize) {
        let Task { host, process, worker } = &self.tasks[task];
        let address = format!("{host}:4000").parse().unwrap();
        let (name, slot) = (TaskName::new("worker", task as u32), Arc::clone(worker));
        let options = WorkerOptions { job_id: "simulated".into(), threads: Some(1), ..WorkerOptions::default() };
        let body = move || {
            let worker = Arc::new(Worker::start(&name, &address, &options).unwrap());
            *slot.lock() = Arc::downgrade(&worker);
            loop {
                threads::sleep(Duration::from_secs(3600));
            }
        };
        self.simulation.spawn(*process, "worker", body).unwrap();
    }

    /// A task begins a new life.
    pub fn restart(&mut self, task: usize) {
        self.tasks[task].process = self.simulation.process(&self.tasks[task].host);
        self.start_worker(task);
    }

    pub fn cluster(&self) -> Cluster {
        let address = |task: usize| (TaskName::new("worker", task as u32), format!("w{task}:4000").parse().unwrap());
        let tasks: BTreeMap<_, _> = (0..self.tasks.len()).map(address).collect();
        Cluster { id: "simulated".into(), master: None, tasks, certificates: None }
    }

    /// A process that trains, on a host of its own.
    pub fn start_client(&mut self) {
        let host = format!("c{}", self.clients.len());
        let process = self.simulation.process(&host);
        let (cluster, shared) = (self.cluster(), Arc::clone(&self.shared));
        self.simulation.spawn(process, "client", move || client::train(&cluster, &shared)).unwrap();
        self.clients.push((host, process));
    }

    /// Waits until something is so, in simulated time.
    pub fn until(&self, what: &str, within: Duration, mut is_so: impl FnMut() -> bool) {
        let begin = threads::now();
        while !is_so() {
            assert!(threads::since(begin) < within, "not within {within:?}: {what}");
            threads::sleep(Duration::from_millis(20));
        }
    }

    /// Nothing is left of what clients did.
    pub fn check_empty(&self) {
        for task in &self.tasks {
            let left = || {
                let worker = task.worker.lock().upgrade();
                worker.map_or((0, 0), |worker| (worker.n_steps(), worker.n_masters()))
            };
            self.until("steps and masters are forgotten", Duration::from_secs(5), || left() == (0, 0));
        }
    }
}
