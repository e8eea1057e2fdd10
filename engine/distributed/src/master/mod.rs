//! A master: divides its clients' graphs among the workers, and runs their steps.
//!
//! [`link`] is the connection to a worker, [`session`] what a client has, [`step`] one step on all workers.

mod answers;
mod link;
mod options;
mod session;
mod shared;
mod step;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Graph;
use net::Identity;
use parking_lot::Mutex;

use crate::cluster::Cluster;
use crate::error::DistributedError;
pub use options::MasterOptions;
pub use session::{Callable, Session};
use shared::Shared;

/// The master of a cluster. Clones are the same one.
#[derive(Clone)]
pub struct Master(Arc<Shared>);

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
