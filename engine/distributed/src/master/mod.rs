//! A master: divides its clients' graphs among the workers, and runs their steps.
//!
//! [`link`] is the connection to a worker, [`session`] what a client has, [`step`] one step on all workers.

mod link;
mod session;
mod step;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::Graph;
use engine::compile::partition::TransferOptions;
use engine::compile::placement::PlacementOptions;
use net::{Identity, Limits, Security};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::cluster::{Cluster, TaskName};
use crate::error::DistributedError;
use crate::protocol::{Failure, FailureKind, Task};
use link::Link;
pub use session::{Callable, Session};
use step::Answers;

/// What can be chosen for a master.
#[derive(Debug, Clone)]
pub struct MasterOptions {
    /// How long it tries to reach a worker that is not there yet.
    pub patience: Duration,
    /// How long a worker may take to compile a part.
    pub registration: Duration,
    /// What connections may take.
    pub limits: Limits,
    /// Encrypts connections over TCP; without it they stay within the host.
    pub security: Option<Security>,
    /// How nodes are placed.
    pub placement: PlacementOptions,
    /// How values get from device to device: 16-bit compression, late receives.
    pub transfers: TransferOptions,
}

impl Default for MasterOptions {
    fn default() -> MasterOptions {
        MasterOptions {
            patience: Duration::from_secs(10),
            registration: Duration::from_secs(300),
            limits: Limits::default(),
            security: None,
            placement: PlacementOptions::default(),
            transfers: TransferOptions::default(),
        }
    }
}

/// The master of a cluster. Clones are the same one.
#[derive(Clone)]
pub struct Master(Arc<Shared>);

/// What the sessions share.
struct Shared {
    cluster: Cluster,
    identity: Identity,
    options: MasterOptions,
    /// Held while one is opened.
    links: threads::Mutex<FxHashMap<TaskName, Arc<Link>>>,
    /// Steps that run.
    running: Mutex<BTreeMap<u64, Arc<Answers>>>,
    next_step: AtomicU64,
    next_number: AtomicU64,
    /// Counts what makes the workers forget all parts.
    n_resets: AtomicU64,
}

impl Master {
    /// A master of a cluster. Workers are looked for when a session is opened.
    pub fn new(cluster: Cluster, options: MasterOptions) -> Master {
        let identity = Identity {
            job_id: cluster.id.clone(),
            name: crate::worker::MASTER.to_owned(),
            incarnation: threads::unique(),
        };
        Master(Arc::new(Shared {
            cluster,
            identity,
            options,
            links: threads::Mutex::default(),
            running: Mutex::default(),
            next_step: AtomicU64::new(1),
            next_number: AtomicU64::new(1),
            n_resets: AtomicU64::new(0),
        }))
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    /// Opens a session on a graph, on the devices of all tasks. Nodes that are added to the graph later can be run too.
    ///
    /// # Errors
    /// A worker cannot be reached.
    pub fn session(&self, graph: &Graph) -> Result<Session, DistributedError> {
        let links = self.0.connect()?;
        Session::open(Arc::clone(&self.0), graph, links)
    }

    /// Drops the variables of containers (of the default one: `localhost`) on all tasks. Steps that run, of any master, end first:
    /// nothing that began before touches what is made after.
    ///
    /// # Errors
    /// A worker cannot be reached.
    pub fn reset(&self, containers: &[&str]) -> Result<(), DistributedError> {
        self.0.n_resets.fetch_add(1, Ordering::SeqCst);
        for link in self.0.connect()? {
            link.reset(containers, self.0.options.registration)?;
        }
        self.0.n_resets.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// The full names of all devices.
    ///
    /// # Errors
    /// A worker cannot be reached.
    pub fn devices(&self) -> Result<Vec<String>, DistributedError> {
        let links = self.0.connect()?;
        Ok(links.iter().flat_map(|link| link.devices.iter().map(|device| device.full_name().to_string())).collect())
    }
}

impl Shared {
    /// Connections to all workers, in the order of the tasks. Those that were lost are opened anew.
    fn connect(self: &Arc<Self>) -> Result<Vec<Arc<Link>>, DistributedError> {
        let mut links = self.links.lock();
        let begin = threads::now();
        let mut all = Vec::with_capacity(self.cluster.tasks.len());
        for (task, address) in &self.cluster.tasks {
            if let Some(link) = links.get(task).filter(|link| link.lost().is_none()) {
                all.push(Arc::clone(link));
                continue;
            }
            let link = loop {
                let error = match Link::open(task, address, self) {
                    Ok(link) => break Arc::new(link),
                    Err(error) => error,
                };
                let waited = threads::since(begin);
                let is_final =
                    matches!(error, net::NetError::Refused(_) | net::NetError::Address(_) | net::NetError::Protocol(_));
                if is_final || waited >= self.options.patience {
                    let (task, address) = (task.clone(), address.to_string());
                    return Err(DistributedError::Unreachable { task, address, source: error });
                }
                threads::sleep(Duration::from_millis(50));
            };
            links.insert(task.clone(), Arc::clone(&link));
            all.push(link);
        }
        Ok(all)
    }

    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a step; gives its number, and that of the oldest one that runs.
    fn begin_step(&self, answers: &Arc<Answers>) -> (u64, u64) {
        let mut running = self.running.lock();
        // Taken under the lock: no later step can be told to be the oldest meanwhile.
        let step = self.next_step.fetch_add(1, Ordering::Relaxed);
        running.insert(step, Arc::clone(answers));
        (step, running.first_key_value().map_or(step, |(first, _)| *first))
    }

    /// A connection between two tasks ended. What was on its way is lost, whether its step knew of it or had not begun there yet, and had
    /// ended at the other end.
    fn broken(&self, (task, incarnation): (&str, u64), other: &Task, why: &str) {
        let both = [(task, incarnation), (other.name.as_str(), other.incarnation)];
        let steps: Vec<Arc<Answers>> =
            self.running.lock().values().filter(|step| both.iter().all(|(n, i)| step.has(n, *i))).cloned().collect();
        for step in steps {
            let failure = Failure::new(FailureKind::Lost, why);
            step.fail(Failure { task: other.name.clone(), ..failure });
        }
    }

    /// Nothing happens in a task's part of a step.
    fn stalled(&self, step: u64, task: &str, waiting: Vec<String>) {
        let answers = self.running.lock().get(&step).cloned();
        if let Some(answers) = answers {
            answers.stalled(task, waiting);
        }
    }

    fn end_step(&self, step: u64) {
        self.running.lock().remove(&step);
    }
}
