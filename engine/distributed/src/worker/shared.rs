//! What the connections of a worker share.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::SessionOptions;
use engine::buffer::Allocator;
use engine::device::Device;
use net::{Channel, Frame, Identity, NetError, Outbox};
use parking_lot::Mutex;

use super::masters::Masters;
use super::peers::{Peers, Task, lost};
use crate::protocol::{self, Broken, Head};
use crate::runners::Runners;
use crate::side::StreamTaker;

/// How masters call themselves.
pub(crate) const MASTER: &str = "master";

/// What the worker's connections share.
pub(super) struct Shared {
    pub identity: Identity,
    pub devices: Vec<Arc<Device>>,
    pub options: SessionOptions,
    pub runners: Runners,
    pub peers: Peers,
    pub masters: Masters,
    /// Connections that others opened.
    pub incoming: Mutex<BTreeMap<u64, Channel>>,
    /// Who takes the streams that are opened to this process.
    pub stream_taker: Mutex<Option<StreamTaker>>,
    /// Held while they are notified, one reset after the other.
    pub reset_watchers: threads::Mutex<Vec<Arc<dyn ResetWatcher>>>,
}

/// Who uses a task's containers besides masters, as a thread that fills a queue, and must let go of what is dropped.
pub trait ResetWatcher: Send + Sync {
    /// A master is about to drop containers.
    fn before_reset(&self);

    /// It did: what is made now is new.
    fn after_reset(&self);
}

impl Shared {
    /// A connection to a task ended. The steps that it takes part in end here; their masters are notified, as what was on its way is lost
    /// for steps that did not begin here yet, or ended here, too.
    pub fn lost(&self, task: &str, incarnation: u64, why: String) {
        self.masters.lose(task, incarnation, &why);
        let task = protocol::Task { name: task.to_owned(), address: String::new(), incarnation };
        let broken = Broken { task: Some(task), why };
        let masters: Vec<Outbox> = {
            let incoming = self.incoming.lock();
            let masters = incoming.values().filter(|channel| channel.peer().name == MASTER);
            masters.map(|channel| channel.outbox().clone()).collect()
        };
        for master in masters {
            // Who is not reached lost this task, and knows that.
            let _ = master.post(broken.frame(Vec::new()));
        }
    }

    /// The memory of the device with this full name.
    pub fn allocator(&self, device: &str) -> &Allocator {
        let found = self.devices.iter().find(|own| own.full_name().to_string() == device);
        match found {
            Some(device) => device.allocator(),
            None => Allocator::host(),
        }
    }

    /// The connection to another task, opened where there is none.
    ///
    /// # Errors
    /// It cannot be reached, or was restarted.
    pub fn outbox(self: &Arc<Self>, task: &Task) -> Result<Outbox, NetError> {
        self.peers.outbox(task, || {
            let shared = Arc::downgrade(self);
            Box::new(move |task: &Task, why: &NetError| {
                if let Some(shared) = shared.upgrade() {
                    shared.peers.forget(task);
                    shared.lost(&task.name, task.incarnation, lost(&task.name, why));
                }
            })
        })
    }

    /// Sends a frame to another task, in this thread where it is small.
    ///
    /// # Errors
    /// As with [`Shared::outbox`]; the connection ended, or the frame is too large.
    pub fn send(self: &Arc<Self>, task: &Task, frame: Frame) -> Result<(), NetError> {
        self.outbox(task)?.send(frame)
    }
}
