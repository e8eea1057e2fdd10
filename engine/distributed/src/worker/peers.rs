//! Connections to other tasks, for values that go there.

use std::sync::Arc;

use formats::proto::attr_value::Value;
use net::{Address, Channel, Connection, Handler, Identity, Incoming, Limits, NetError, Outbox, Security};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// A task that takes part in steps: in this life of it, and no other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub name: String,
    pub address: Address,
    pub incarnation: u64,
}

/// Where the values for devices of other tasks go: the task, by the device's full name.
pub(super) type Routes = FxHashMap<String, Task>;

/// The routes of a part's sends. Devices of the own task have none.
pub(super) fn routes(graph: &formats::proto::GraphDef, tasks: &[Task], own: &str) -> Routes {
    let mut routes = Routes::default();
    for node in graph.node.iter().filter(|node| node.op == "_Send") {
        let Some(Value::S(to)) = node.attr.get("recv_device").and_then(|attr| attr.value.as_ref()) else { continue };
        let to = String::from_utf8_lossy(to).into_owned();
        let task = to.parse().ok().and_then(|name| crate::TaskName::of_device(&name)).map(|task| task.to_string());
        if let Some(task) = tasks.iter().find(|known| Some(&known.name) == task.as_ref() && known.name != own) {
            routes.insert(to, task.clone());
        }
    }
    routes
}

/// The connections.
pub(super) struct Peers {
    identity: Identity,
    limits: Limits,
    security: Option<Security>,
    channels: Mutex<FxHashMap<Task, Slot>>,
}

/// Called when the connection to a task ended, with why.
pub(super) type Ended = Box<dyn Fn(&Task, &NetError) + Send>;

/// A connection that is there, or that one thread opens while the others wait.
type Slot = Arc<threads::Mutex<Option<Channel>>>;

impl Peers {
    pub fn new(identity: Identity, limits: Limits, security: Option<Security>) -> Peers {
        Peers { identity, limits, security, channels: Mutex::default() }
    }

    /// The connection to a task, opened where there is none; `ended` makes what is called when that one ends.
    ///
    /// # Errors
    /// It cannot be reached, or was restarted.
    pub fn outbox(&self, task: &Task, ended: impl FnOnce() -> Ended) -> Result<Outbox, NetError> {
        let slot = match self.channels.lock() {
            channels if channels.contains_key(task) => Arc::clone(&channels[task]),
            mut channels => Arc::clone(channels.entry(task.clone()).or_default()),
        };
        let mut slot = slot.lock();
        if let Some(channel) = slot.as_ref().filter(|channel| channel.outbox().end_reason().is_none()) {
            return Ok(channel.outbox().clone());
        }
        let security = self.security.as_ref();
        let connection = Connection::open(&task.address, &self.identity, &task.name, &self.limits, security)?;
        if connection.peer().incarnation != task.incarnation {
            return Err(NetError::Refused(format!("{} was restarted", task.name)));
        }
        let handler = Outgoing { task: task.clone(), ended: ended() };
        let channel = connection.start(|_| handler)?;
        let outbox = channel.outbox().clone();
        *slot = Some(channel);
        Ok(outbox)
    }

    /// Forgets the connection to a task, which ended.
    pub fn forget(&self, task: &Task) {
        self.channels.lock().remove(task);
    }

    /// Ends all connections.
    pub fn end(&self) {
        let channels = std::mem::take(&mut *self.channels.lock());
        for slot in channels.into_values() {
            // One that is being opened goes with who opens it.
            if let Some(channel) = slot.try_lock().and_then(|mut slot| slot.take()) {
                channel.outbox().close(NetError::Closed);
            }
        }
    }
}

/// The own end of a connection to another task, over which nothing comes.
struct Outgoing {
    task: Task,
    ended: Ended,
}

impl Handler for Outgoing {
    fn frame(&mut self, frame: Incoming<'_>) -> Result<(), NetError> {
        Err(NetError::Protocol(format!("{} answered with kind {}", self.task.name, frame.kind)))
    }

    fn on_end(&mut self, why: NetError) {
        (self.ended)(&self.task, &why);
    }
}

/// What is said of a task that is gone.
pub(super) fn lost(task: &str, why: &NetError) -> String {
    format!("{task}: {why}")
}
