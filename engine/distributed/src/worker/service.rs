//! What a worker does with what comes over a connection. Masters ask for things, other workers push values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::buffer::Allocator;
use engine::kernels::{FrameTag, KernelError};
use engine::run::executor::ExecuteError;
use engine::run::rendezvous::{EdgeKey, Key, Message, Rendezvous, RendezvousError};
use engine::session::{Meeting, OnStall, RunError, TaskSession};
use engine::{RunOptions, SessionOptions, Tensor};
use formats::proto::GraphDef;
use net::{Connection, Handler, Incoming, NetError, Outbox, Peer};
use prost::Message as _;

use super::masters::Part;
use super::peers::{lost, routes};
use super::rendezvous::TaskRendezvous;
use super::shared::{MASTER, Shared};
use super::steps::Step;
use crate::arrows::{self, Arrival, MessageKind};
use crate::protocol::{
    Cancel, Describe, Described, Device, Done, Failure, FailureKind, Forget, FrameKind, Head, Push, Ran, Register,
    Reset, Run, Stalled, Task,
};
use crate::{side, wire};

/// The own end of a connection that somebody opened.
pub(super) struct Service {
    shared: Arc<Shared>,
    peer: Peer,
    outbox: Outbox,
    number: u64,
}

/// How long steps may take to end when containers are dropped: as long as one kernel may run.
const TO_END: Duration = Duration::from_secs(30);

/// How long nothing happens in a part of a step before it reports to its master what it waits for.
const STALL: Duration = Duration::from_secs(3);

impl Service {
    /// Serves a connection.
    pub fn start(shared: &Arc<Shared>, connection: Connection) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let peer = connection.peer().clone();
        if let Some(purpose) = peer.name.strip_prefix(side::PREFIX) {
            let taker = shared.stream_taker.lock().clone();
            // Where nobody takes it, or there are no threads, the other end sees the connection close.
            if let (Some(taker), Ok(stream)) = (taker.as_ref(), side::join(connection)) {
                taker(purpose, stream);
            }
            return;
        }
        if peer.name == MASTER {
            shared.masters.add(peer.incarnation);
        }
        let service = |outbox: &Outbox| Service {
            shared: Arc::clone(shared),
            peer: peer.clone(),
            outbox: outbox.clone(),
            number,
        };
        match connection.start(service) {
            Ok(channel) => {
                let mut incoming = shared.incoming.lock();
                incoming.insert(number, channel);
                // It may have ended meanwhile.
                incoming.retain(|_, channel| channel.outbox().end_reason().is_none());
            }
            // No threads: the other end sees the connection close.
            Err(why) => shared.masters.remove(peer.incarnation, &why.to_string()),
        }
    }

    fn is_master(&self) -> bool {
        self.peer.name == MASTER
    }
}

impl Handler for Service {
    fn frame(&mut self, frame: Incoming<'_>) -> Result<(), NetError> {
        let master = self.peer.incarnation;
        match (FrameKind::try_from(frame.kind)?, self.is_master()) {
            (FrameKind::Push, false) => self.push(frame),
            (FrameKind::Run, true) => self.run(frame),
            (FrameKind::Cancel, true) => {
                self.shared.masters.cancel(master, Cancel::of(&frame)?.step);
                Ok(())
            }
            (FrameKind::Register, true) => self.register(Register::of(&frame)?),
            (FrameKind::Describe, true) => {
                self.outbox.post(self.described(Describe::of(&frame)?.call).frame(Vec::new()))
            }
            (FrameKind::Forget, true) => {
                let forget = Forget::of(&frame)?;
                self.shared.masters.forget(master, &forget.sessions, &forget.parts);
                Ok(())
            }
            (FrameKind::Reset, true) => self.reset(Reset::of(&frame)?),
            (kind, _) => Err(NetError::Protocol(format!("{} sent what it may not: kind {kind:?}", self.peer.name))),
        }
    }

    fn on_end(&mut self, why: NetError) {
        self.shared.incoming.lock().remove(&self.number);
        if self.is_master() {
            self.shared.masters.remove(self.peer.incarnation, &why.to_string());
        } else {
            let why = lost(&self.peer.name, &why);
            self.shared.lost(&self.peer.name, self.peer.incarnation, why);
        }
    }
}

impl Service {
    fn described(&self, call: u64) -> Described {
        let device = |device: &Arc<engine::device::Device>| Device {
            name: device.full_name().to_string(),
            incarnation: device.incarnation(),
            memory_limit: device.memory_limit() as u64,
        };
        Described { call, devices: self.shared.devices.iter().map(device).collect() }
    }

    /// A value from another task.
    fn push(&self, mut frame: Incoming<'_>) -> Result<(), NetError> {
        let push = Push::of(&frame)?;
        // What comes too late is skipped.
        let Some(step) = self.shared.masters.step(push.master, push.step) else { return Ok(()) };
        let edge = EdgeKey::parse(push.edge).ok_or_else(|| NetError::Protocol("a value without its edge".into()))?;
        let allocator = self.shared.allocator(edge.to());
        let value = push.value.as_ref().map(|head| wire::take(head, &mut frame, allocator)).transpose()?;
        let key = Key { edge: Arc::new(edge), frame: FrameTag { frame: push.frame, iteration: push.iteration } };
        let sent = step.rendezvous.send(key, Message { value, transfer: push.transfer, is_there: true });
        // Where the step failed meanwhile nobody wants it.
        if let Err(error @ RendezvousError::SentTwice(_)) = sent {
            step.fail(Failure::new(FailureKind::Other, error.to_string()));
        }
        Ok(())
    }

    /// Containers are dropped, in another thread: steps that run must end first.
    fn reset(&self, request: Reset) -> Result<(), NetError> {
        let (shared, master, outbox) = (Arc::clone(&self.shared), self.peer.incarnation, self.outbox.clone());
        let run = move || {
            let failure = reset(&shared, master, &request.containers).err();
            // Where the master is gone nobody waits for the answer.
            let _ = outbox.send(Done { call: request.call, failure }.frame(Vec::new()));
        };
        Ok(self.shared.runners.run(run)?)
    }

    /// A part of a graph, compiled in another thread: it may take seconds.
    fn register(&self, request: Register) -> Result<(), NetError> {
        let (shared, outbox, master) = (Arc::clone(&self.shared), self.outbox.clone(), self.peer.incarnation);
        let run = move || {
            let call = request.call;
            let failure = register(&shared, master, request).err();
            // Where the master is gone nobody waits for the answer.
            let _ = outbox.send(Done { call, failure }.frame(Vec::new()));
        };
        Ok(self.shared.runners.run(run)?)
    }

    /// A step, in a thread of its own.
    fn run(&self, mut frame: Incoming<'_>) -> Result<(), NetError> {
        let request = Run::of(&frame)?;
        let take = |head| wire::take(head, &mut frame, Allocator::host());
        let feeds = request.feeds.iter().map(take).collect::<Result<Vec<_>, _>>()?;
        let master = self.peer.incarnation;
        let arrival = Arrival::now(MessageKind::Run, request.arrow);
        let begun = self.shared.masters.begin(master, request.part, request.step, request.oldest);
        let (part, step, running) = match begun {
            Ok(begun) => begun,
            Err(failure) => {
                let ran = Ran { call: request.call, failure: Some(failure), fetches: Vec::new(), arrow: 0 };
                return self.outbox.post(ran.frame(Vec::new()));
            }
        };
        let (shared, outbox) = (Arc::clone(&self.shared), self.outbox.clone());
        let run = move || {
            arrival.into_iter().for_each(Arrival::emit);
            let report = |waiting: &[String]| {
                let stalled = Stalled { step: request.step, waiting: waiting.to_vec() };
                // Where the master is gone nobody wants to know.
                let _ = outbox.send(stalled.frame(Vec::new()));
            };
            let on_stall = OnStall { after: STALL, report: &report };
            let result = run(&shared, master, &request, &part, &step, &feeds, on_stall);
            drop(running);
            if result.is_ok() {
                shared.masters.end(master, request.step);
            }
            answer(&outbox, request.call, result);
        };
        Ok(self.shared.runners.run(run)?)
    }
}

/// Drops containers. No step that began before touches what is made after: a master that is gone, or only cut off, changes
/// nothing of what the next one makes.
fn reset(shared: &Shared, master: u64, containers: &[String]) -> Result<(), Failure> {
    // One at a time: watchers are notified in turn.
    let watchers = shared.reset_watchers.lock();
    shared.masters.take_over(master, TO_END)?;
    watchers.iter().for_each(|watcher| watcher.before_reset());
    for (device, container) in shared.devices.iter().flat_map(|device| containers.iter().map(move |c| (device, c))) {
        device.resources().clear(container);
    }
    watchers.iter().for_each(|watcher| watcher.after_reset());
    Ok(())
}

fn register(shared: &Arc<Shared>, master: u64, request: Register) -> Result<(), Failure> {
    let invalid = |text: String| Failure::new(FailureKind::Invalid, text);
    let graph = GraphDef::decode(&request.graph[..]).map_err(|e| invalid(format!("the part's graph: {e}")))?;
    let task = |task: Task| {
        let address = task.address.parse().map_err(|e: net::AddressError| invalid(e.to_string()))?;
        Ok::<_, Failure>(super::peers::Task { name: task.name, address, incarnation: task.incarnation })
    };
    let tasks: Arc<[super::peers::Task]> = request.tasks.into_iter().map(task).collect::<Result<_, _>>()?;
    let routes = routes(&graph, &tasks, &shared.identity.name);
    for task in routes.values() {
        // Now rather than in the first step.
        if let Err(error) = shared.outbox(task) {
            let failure = Failure::new(FailureKind::Lost, format!("from {}: {error}", shared.identity.name));
            return Err(Failure { task: task.name.clone(), ..failure });
        }
    }
    let Some(kernels) = shared.masters.kernels(master, request.session) else { return Ok(()) };
    let numbered = |names: Vec<String>| names.into_iter().enumerate().collect();
    let part = engine::compile::partition::Part {
        task: shared.devices[0].full_name().task_name(),
        graph,
        feeds: numbered(request.feeds),
        fetches: numbered(request.fetches),
        targets: request.targets,
    };
    let options = SessionOptions { kernels, ..shared.options.clone() };
    let session = TaskSession::new(&part, options).map_err(|e| invalid(e.to_string()))?;
    let part = Part { session, of: request.session, tasks, routes: Arc::new(routes) };
    shared.masters.register(master, request.part, part)
}

fn run(
    shared: &Arc<Shared>,
    master: u64,
    request: &Run,
    part: &Part,
    step: &Arc<Step>,
    feeds: &[Tensor],
    on_stall: OnStall<'_>,
) -> Result<Vec<Tensor>, Failure> {
    let rendezvous = TaskRendezvous {
        shared: Arc::clone(shared),
        routes: Arc::clone(&part.routes),
        step: Arc::clone(step),
        master,
        number: request.step,
    };
    let meeting = Meeting { step_id: request.step, rendezvous: Arc::new(rendezvous) };
    let options = RunOptions {
        label: &request.label,
        summary_step: request.summary_step,
        cancel: Some(&step.cancel),
        timeout: None,
        on_stall: Some(on_stall),
    };
    let result = part.session.run(&options, &meeting, feeds);
    result.map_err(|error| step.failure().unwrap_or_else(|| failure(&error)))
}

/// What the master learns of an error.
fn failure(error: &RunError) -> Failure {
    let kind = match (error, error.kernel()) {
        _ if error.is_end_of_data() => FailureKind::OutOfRange,
        (_, Some(KernelError::Rendezvous(RendezvousError::Aborted) | KernelError::Cancelled))
        | (RunError::Execute(ExecuteError::Cancelled { .. }), _) => FailureKind::Derived,
        (RunError::Execute(_), _) => FailureKind::Other,
        _ => FailureKind::Invalid,
    };
    Failure::new(kind, error.to_string())
}

fn answer(outbox: &Outbox, call: u64, result: Result<Vec<Tensor>, Failure>) {
    let mut body = Vec::new();
    let heads = result.and_then(|fetches| {
        let heads = fetches.iter().map(|value| wire::put(value, &mut body)).collect::<Result<Vec<_>, _>>();
        heads.map_err(|stays| Failure::new(FailureKind::Invalid, format!("a fetch: {stays}")))
    });
    let ran = match heads {
        Ok(fetches) => Ran { call, failure: None, fetches, arrow: arrows::leaves(MessageKind::Ran) },
        Err(failure) => {
            body.clear();
            Ran { call, failure: Some(failure), fetches: Vec::new(), arrow: 0 }
        }
    };
    if let Err(error @ NetError::TooLarge { .. }) = outbox.send(ran.frame(body)) {
        let failure = Some(Failure::new(FailureKind::Invalid, format!("the fetches: {error}")));
        let _ = outbox.send(Ran { call, failure, fetches: Vec::new(), arrow: 0 }.frame(Vec::new()));
    }
}
