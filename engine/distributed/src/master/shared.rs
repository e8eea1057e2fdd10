//! What the sessions of a master share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use net::{Address, Identity, NetError};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::answers::Answers;
use super::link::{Link, Listens};
use super::options::MasterOptions;
use crate::cluster::{Cluster, TaskName};
use crate::error::DistributedError;
use crate::protocol::{Failure, FailureKind, Task};

/// What the sessions share.
pub(super) struct Shared {
    pub cluster: Cluster,
    pub identity: Identity,
    pub options: MasterOptions,
    /// Held while one is opened.
    pub links: threads::Mutex<FxHashMap<TaskName, Arc<Link>>>,
    /// Steps that run.
    pub running: Mutex<BTreeMap<u64, Arc<Answers>>>,
    pub next_step: AtomicU64,
    pub next_number: AtomicU64,
    /// Counts what makes the workers forget all parts.
    pub n_resets: AtomicU64,
}

impl Shared {
    /// Connections to all workers, in the order of the tasks. Those that were lost are opened anew.
    pub fn connect(self: &Arc<Self>) -> Result<Vec<Arc<Link>>, DistributedError> {
        let mut links = self.links.lock();
        let begin = threads::now();
        let mut all = Vec::with_capacity(self.cluster.tasks.len());
        for (task, address) in &self.cluster.tasks {
            if let Some(link) = links.get(task).filter(|link| link.lost().is_none()) {
                all.push(Arc::clone(link));
                continue;
            }
            let link = loop {
                let error = match self.open(task, address) {
                    Ok(link) => break Arc::new(link),
                    Err(error) => error,
                };
                let waited = threads::since(begin);
                let is_final = matches!(error, NetError::Refused(_) | NetError::Address(_) | NetError::Protocol(_));
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

    /// A number that no session or part has.
    pub fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a step; gives its number, and that of the oldest one that runs.
    pub fn begin_step(&self, answers: &Arc<Answers>) -> (u64, u64) {
        let mut running = self.running.lock();
        // Taken under the lock: no later step can be reported as the oldest meanwhile.
        let step = self.next_step.fetch_add(1, Ordering::Relaxed);
        running.insert(step, Arc::clone(answers));
        (step, running.first_key_value().map_or(step, |(first, _)| *first))
    }

    /// A step is over.
    pub fn end_step(&self, step: u64) {
        self.running.lock().remove(&step);
    }

    fn open(self: &Arc<Self>, task: &TaskName, address: &Address) -> Result<Link, NetError> {
        let own: Weak<Shared> = Arc::downgrade(self);
        Link::open(task, address, &self.identity, &self.options, own)
    }
}

impl Listens for Shared {
    fn broken(&self, (task, incarnation): (&str, u64), other: &Task, why: &str) {
        let both = [(task, incarnation), (other.name.as_str(), other.incarnation)];
        let steps: Vec<Arc<Answers>> =
            self.running.lock().values().filter(|step| both.iter().all(|(n, i)| step.has(n, *i))).cloned().collect();
        for step in steps {
            let failure = Failure::new(FailureKind::Lost, why);
            step.fail(Failure { task: other.name.clone(), ..failure });
        }
    }

    fn stalled(&self, step: u64, task: &str, waiting: Vec<String>) {
        let answers = self.running.lock().get(&step).cloned();
        if let Some(answers) = answers {
            answers.stalled(task, waiting);
        }
    }
}
