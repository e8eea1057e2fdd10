//! A worker: runs the parts of steps that a master gives it, on the devices of its task.
//!
//! [`service`] takes what comes over connections, [`masters`] keeps what each master registered, [`claims`] which of them may, [`steps`] the steps that run,
//! [`rendezvous`] joins them with other tasks, to which [`peers`] has the connections.

mod claims;
mod masters;
mod peers;
mod rendezvous;
mod service;
mod shared;
mod steps;

use std::sync::Arc;

use engine::SessionOptions;
use engine::device::Device;
use net::{Address, Identity, Limits, Listener, NetError, Security};
use parking_lot::Mutex;

use crate::cluster::TaskName;
use crate::runners::Runners;
use crate::side::StreamTaker;
use masters::Masters;
use peers::Peers;
use service::Service;
pub(crate) use shared::MASTER;
pub use shared::ResetWatcher;
use shared::Shared;

/// What can be chosen for a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The job's id: who does not know it is not let in.
    pub job_id: String,
    /// Its CPU devices.
    pub devices: usize,
    /// Bytes that each of them hands out at most.
    pub memory_limit: usize,
    /// Threads that a step may use; `None`: the process's pool.
    pub threads: Option<usize>,
    /// What connections may take.
    pub limits: Limits,
    /// Encrypts connections over TCP; without it they stay within the host.
    pub security: Option<Security>,
}

impl Default for WorkerOptions {
    fn default() -> WorkerOptions {
        WorkerOptions {
            job_id: "default".into(),
            devices: 1,
            memory_limit: usize::MAX,
            threads: None,
            limits: Limits::default(),
            security: None,
        }
    }
}

/// A task of a cluster, at work until it is dropped.
pub struct Worker {
    task: TaskName,
    listener: Listener,
    shared: Arc<Shared>,
}

impl Worker {
    /// Listens at `address` as a task of a cluster.
    ///
    /// # Errors
    /// The address is in use, or not of this host.
    pub fn start(task: &TaskName, address: &Address, options: &WorkerOptions) -> Result<Worker, NetError> {
        let device = |idx| Arc::new(Device::cpu(idx, options.memory_limit).in_task(&task.job, task.task));
        let devices: Vec<Arc<Device>> = (0..options.devices.max(1)).map(device).collect();
        let identity =
            Identity { job_id: options.job_id.clone(), name: task.to_string(), incarnation: threads::unique() };
        let shared = Arc::new(Shared {
            peers: Peers::new(identity.clone(), options.limits, options.security.clone()),
            options: SessionOptions { threads: options.threads, devices: devices.clone(), ..SessionOptions::default() },
            identity: identity.clone(),
            devices,
            runners: Runners::default(),
            masters: Masters::default(),
            incoming: Mutex::default(),
            stream_taker: Mutex::default(),
            reset_watchers: threads::Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        let accepted = move |connection| Service::start(&accepting, connection);
        let listener = Listener::start(address, identity, options.limits, options.security.clone(), accepted)?;
        Ok(Worker { task: task.clone(), listener, shared })
    }

    /// Which task it is.
    pub fn task(&self) -> &TaskName {
        &self.task
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// Its devices, with their variables.
    pub fn devices(&self) -> &[Arc<Device>] {
        &self.shared.devices
    }

    /// Has `watcher` notified when masters drop containers.
    pub fn watch_resets(&self, watcher: Arc<dyn ResetWatcher>) {
        self.shared.reset_watchers.lock().push(watcher);
    }

    /// Has `taker` take the streams that others open to this process ([`crate::open_stream`]). Without one they are closed.
    pub fn take_streams(&self, taker: StreamTaker) {
        *self.shared.stream_taker.lock() = Some(taker);
    }

    /// Values that came for steps which were over, as those of a task that was restarted.
    pub fn n_late(&self) -> u64 {
        self.shared.masters.n_late()
    }

    /// Masters that are connected.
    pub fn n_masters(&self) -> usize {
        self.shared.masters.n_masters()
    }

    /// Steps that it knows of: those that run, and those that values came for.
    pub fn n_steps(&self) -> usize {
        self.shared.masters.n_steps()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let incoming = std::mem::take(&mut *self.shared.incoming.lock());
        // Masters first: they shall not hear from this task that the others, whose connections it closes, are lost.
        let (masters, others): (Vec<_>, Vec<_>) = incoming.values().partition(|channel| channel.peer().name == MASTER);
        masters.into_iter().chain(others).for_each(|channel| channel.outbox().close(NetError::Closed));
        self.shared.peers.end();
        self.shared.runners.end();
    }
}
