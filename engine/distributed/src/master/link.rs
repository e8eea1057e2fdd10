//! The connection to a worker: calls and their answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::Tensor;
use engine::buffer::Allocator;
use engine::device::Device;
use net::{Address, Channel, Connection, Frame, Handler, Identity, Incoming, NetError, Peer};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use threads::Condvar;

use super::options::MasterOptions;
use crate::arrows::{Arrival, MessageKind};
use crate::cluster::TaskName;
use crate::error::DistributedError;
use crate::protocol::{
    Broken, Describe, Described, Done, Failure, FailureKind, FrameKind, Head, Ran, Reset, Stalled, Task,
};
use crate::wire;

/// A worker's answer to a call.
pub(super) enum Reply {
    Described(Described),
    Done(Option<Failure>),
    Ran(Result<Vec<Tensor>, Failure>, Option<Arrival>),
    /// It does not answer any more, and why.
    Lost(String),
}

/// Called with the answer, once; not to wait in.
pub(super) type Waiter = Box<dyn FnOnce(Reply) + Send>;

/// Who hears what workers report without being asked.
pub(super) trait Listens: Send + Sync {
    /// A connection between two tasks ended. What was on its way is lost, whether its step knew of it or had not begun there
    /// yet, and had ended at the other end.
    fn broken(&self, task: (&str, u64), other: &Task, why: &str);

    /// Nothing happens in a task's part of a step.
    fn stalled(&self, step: u64, task: &str, waiting: Vec<String>);
}

/// Calls that wait for their answers.
#[derive(Default)]
struct Calls {
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: FxHashMap<u64, Waiter>,
    /// Why no more answers come.
    lost: Option<String>,
}

/// A worker in one of its lives.
pub(super) struct Link {
    pub task: TaskName,
    address: Address,
    channel: Channel,
    calls: Arc<Calls>,
    /// What is known of its devices.
    pub devices: Vec<Arc<Device>>,
}

impl Link {
    /// Connects to a worker, and asks for its devices.
    pub fn open(
        task: &TaskName,
        address: &Address,
        identity: &Identity,
        MasterOptions { limits, security, .. }: &MasterOptions,
        master: Weak<dyn Listens>,
    ) -> Result<Link, NetError> {
        let connection = Connection::open(address, identity, &task.to_string(), limits, security.as_ref())?;
        let (calls, worker) = (Arc::new(Calls::default()), connection.peer().clone());
        let answers = Answers { calls: Arc::clone(&calls), worker, master };
        let channel = connection.start(|_| answers)?;
        let mut link = Link { task: task.clone(), address: address.clone(), channel, calls, devices: Vec::new() };
        let wait = link.wait_for(limits.silence, |call| Describe { call }.frame(Vec::new()));
        let described = match wait {
            Ok(Reply::Described(described)) => described,
            Ok(_) | Err(_) => return Err(NetError::Protocol(format!("{task} does not report its devices"))),
        };
        for device in described.devices {
            let bad = |e: &dyn std::fmt::Display| NetError::Protocol(format!("a device of {task}: {e}"));
            let name = device.name.parse().map_err(|e: engine::device::DeviceNameError| bad(&e))?;
            let limit = usize::try_from(device.memory_limit).unwrap_or(usize::MAX);
            let known = Device::elsewhere(&name, device.incarnation, limit).map_err(|e| bad(&e))?;
            link.devices.push(Arc::new(known));
        }
        Ok(link)
    }

    /// Why it is lost; `None` while it is not.
    pub fn lost(&self) -> Option<String> {
        self.calls.state.lock().lost.clone()
    }

    /// The error where it is lost.
    pub fn error(&self, why: String) -> DistributedError {
        DistributedError::Lost { task: self.task.to_string(), why }
    }

    /// The error that a worker's failure is to the client.
    pub fn failed(&self, failure: Failure) -> DistributedError {
        match failure.kind() {
            FailureKind::Lost if failure.task.is_empty() => self.error(failure.message),
            FailureKind::Lost => DistributedError::Lost { task: failure.task, why: failure.message },
            kind => DistributedError::Failed {
                task: self.task.clone(),
                message: failure.message,
                is_end_of_data: kind == FailureKind::OutOfRange,
            },
        }
    }

    /// How other workers reach it.
    pub fn as_task(&self) -> Task {
        Task {
            name: self.task.to_string(),
            address: self.address.to_string(),
            incarnation: self.channel.peer().incarnation,
        }
    }

    /// Sends a call; `waiter` gets the answer, at once where there can be none.
    pub fn call(&self, frame: impl FnOnce(u64) -> Frame, waiter: Waiter) {
        let call = self.calls.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut state = self.calls.state.lock();
            match &state.lost {
                Some(why) => {
                    let why = why.clone();
                    drop(state);
                    return waiter(Reply::Lost(why));
                }
                None => state.waiting.insert(call, waiter),
            };
        }
        if let Err(error) = self.channel.outbox().send(frame(call)) {
            // Unless the connection's end reported it already.
            let waiter = self.calls.state.lock().waiting.remove(&call);
            if let Some(waiter) = waiter {
                waiter(match error {
                    NetError::TooLarge { .. } => {
                        Reply::Done(Some(Failure::new(FailureKind::Invalid, error.to_string())))
                    }
                    error => Reply::Lost(error.to_string()),
                });
            }
        }
    }

    /// Sends a call and waits for its answer.
    fn wait_for(&self, within: Duration, frame: impl FnOnce(u64) -> Frame) -> Result<Reply, DistributedError> {
        let reply = Arc::new((Mutex::new(None), Condvar::new()));
        let sender = Arc::clone(&reply);
        let waiter = move |answer| {
            *sender.0.lock() = Some(answer);
            sender.1.notify_all();
        };
        self.call(frame, Box::new(waiter));
        let (answer, changed) = &*reply;
        let mut answer = answer.lock();
        changed.wait_while_for(&mut answer, |answer| answer.is_none(), within);
        match answer.take() {
            Some(Reply::Lost(why)) => Err(self.error(why)),
            Some(answer) => Ok(answer),
            None => Err(self.error(format!("no answer within {} s", within.as_secs_f64()))),
        }
    }

    /// As [`Link::call`], for a message that is not answered. Where the worker is lost nobody needs it.
    pub fn notify(&self, message: &impl Head) {
        let _ = self.channel.outbox().send(message.frame(Vec::new()));
    }

    /// Drops the variables of containers.
    pub fn reset(&self, containers: &[&str], within: Duration) -> Result<(), DistributedError> {
        let containers: Vec<String> = containers.iter().map(|c| (*c).to_owned()).collect();
        match self.wait_for(within, |call| Reset { call, containers }.frame(Vec::new()))? {
            Reply::Done(Some(failure)) => Err(self.failed(failure)),
            _ => Ok(()),
        }
    }
}

/// Takes a worker's answers.
struct Answers {
    calls: Arc<Calls>,
    worker: Peer,
    master: Weak<dyn Listens>,
}

impl Answers {
    fn answer(&self, call: u64, answer: Reply) {
        let waiter = self.calls.state.lock().waiting.remove(&call);
        // Outside the lock: it may call in turn.
        if let Some(waiter) = waiter {
            waiter(answer);
        }
    }
}

impl Handler for Answers {
    fn frame(&mut self, mut frame: Incoming<'_>) -> Result<(), NetError> {
        match FrameKind::try_from(frame.kind)? {
            FrameKind::Described => {
                let described = Described::of(&frame)?;
                self.answer(described.call, Reply::Described(described));
            }
            FrameKind::Done => {
                let done = Done::of(&frame)?;
                self.answer(done.call, Reply::Done(done.failure));
            }
            FrameKind::Ran => {
                let ran = Ran::of(&frame)?;
                let arrival = Arrival::now(MessageKind::Ran, ran.arrow);
                let take = |head| wire::take(head, &mut frame, Allocator::host());
                let fetches = ran.fetches.iter().map(take).collect::<Result<Vec<_>, _>>()?;
                self.answer(ran.call, Reply::Ran(ran.failure.map_or(Ok(fetches), Err), arrival));
            }
            FrameKind::Broken => {
                let broken = Broken::of(&frame)?;
                // Where the master goes its steps do, too.
                if let (Some(master), Some(other)) = (self.master.upgrade(), broken.task) {
                    master.broken((&self.worker.name, self.worker.incarnation), &other, &broken.why);
                }
            }
            FrameKind::Stalled => {
                let stalled = Stalled::of(&frame)?;
                if let Some(master) = self.master.upgrade() {
                    master.stalled(stalled.step, &self.worker.name, stalled.waiting);
                }
            }
            kind => return Err(NetError::Protocol(format!("the worker sent kind {kind:?}"))),
        }
        Ok(())
    }

    fn on_end(&mut self, why: NetError) {
        let waiting = {
            let mut state = self.calls.state.lock();
            state.lost = Some(why.to_string());
            std::mem::take(&mut state.waiting)
        };
        for waiter in waiting.into_values() {
            waiter(Reply::Lost(why.to_string()));
        }
    }
}
