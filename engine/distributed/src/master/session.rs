//! A client's session: a graph, and its signatures as they are divided among the workers.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::session::{Division, Signature, Steps, TaskSession};
use engine::{Graph, RunOptions, SessionOptions, Tensor};
use formats::proto::GraphDef;
use lru::LruCache;
use parking_lot::Mutex;
use prost::Message;
use threads::Condvar;

use super::link::{Link, Reply};
use super::shared::Shared;
use super::step::{self, Registered};
use crate::error::DistributedError;
use crate::protocol::{Forget, Head, Register, Task};

/// More signatures than this are registered again when their turn comes.
const MAX_SIGNATURES: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// Runs parts of a graph on the devices of a cluster: what [`engine::Session`] does on those of a process. It may be used from
/// several threads at once.
///
/// When a task is lost its variables are, too: all further steps fail, whatever they need, until a new session is opened.
pub struct Session {
    master: Arc<Shared>,
    number: u64,
    links: Vec<Arc<Link>>,
    planner: engine::Session,
    /// What the workers have compiled; the signature that was not used longest makes room.
    signatures: Mutex<LruCache<Signature, Arc<Registered>>>,
    /// Held while workers compile.
    registering: threads::Mutex<()>,
    is_closed: AtomicBool,
}

/// A step prepared for repeated runs.
pub struct Callable<'s> {
    session: &'s Session,
    registered: Arc<Registered>,
}

impl Session {
    pub(super) fn open(master: Arc<Shared>, graph: &Graph, links: Vec<Arc<Link>>) -> Result<Session, DistributedError> {
        let options = SessionOptions {
            devices: links.iter().flat_map(|link| link.devices.iter().cloned()).collect(),
            passes: TaskSession::passes_of_master(),
            placement: master.options.placement.clone(),
            transfers: master.options.transfers.clone(),
            ..SessionOptions::default()
        };
        let planner = engine::Session::new(graph, options)?;
        Ok(Session {
            number: master.number(),
            master,
            links,
            planner,
            signatures: Mutex::new(LruCache::new(MAX_SIGNATURES)),
            registering: threads::Mutex::default(),
            is_closed: false.into(),
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.planner.graph()
    }

    /// The full names of the devices.
    pub fn devices(&self) -> Vec<String> {
        self.planner.devices().iter().map(|device| device.full_name().to_string()).collect()
    }

    /// The devices, as they are known here.
    pub(crate) fn known_devices(&self) -> &[Arc<engine::device::Device>] {
        self.planner.devices()
    }

    /// As [`engine::Session::extend`].
    ///
    /// # Errors
    /// Another version, or a node that does not fit.
    pub fn extend(&self, def: &GraphDef, expected_version: Option<usize>) -> Result<usize, DistributedError> {
        Ok(self.planner.extend(def, expected_version)?)
    }

    /// Prepares a step for repeated runs: feeds are then given in this order, without names.
    ///
    /// # Errors
    /// A name is unknown, what is asked cannot be planned, or a worker cannot run its part.
    pub fn prepare(
        &self,
        feeds: &[&str],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Callable<'_>, DistributedError> {
        Ok(Callable { session: self, registered: self.registered(feeds, fetches, targets)? })
    }

    /// Closes the session: no further steps run, the workers forget its parts. Variables stay in their containers.
    pub fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            let forget = Forget { sessions: vec![self.number], parts: Vec::new() };
            self.links.iter().for_each(|link| link.notify(&forget));
        }
    }

    /// Whether the session can run steps.
    fn check(&self) -> Result<(), DistributedError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(DistributedError::Closed);
        }
        let lost = self.links.iter().find_map(|link| Some(link.error(link.lost()?)));
        lost.map_or(Ok(()), Err)
    }

    fn registered(
        &self,
        feeds: &[&str],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Arc<Registered>, DistributedError> {
        self.check()?;
        let signature = self.planner.signature(feeds, fetches, targets)?;
        if let Some(found) = self.find(&signature) {
            return Ok(found);
        }
        let _one_at_a_time = self.registering.lock();
        if let Some(found) = self.find(&signature) {
            return Ok(found);
        }
        let registered = Arc::new(self.register(self.planner.divide(&signature)?)?);
        let replaced = self.signatures.lock().push(signature.clone(), Arc::clone(&registered));
        // Steps of the one that made room keep what they have.
        for (link, part) in replaced.iter().filter(|(old, _)| *old != signature).flat_map(|(_, old)| &old.parts) {
            link.notify(&Forget { sessions: Vec::new(), parts: vec![*part] });
        }
        Ok(registered)
    }

    /// What the workers have compiled for a signature, unless they were reset since.
    fn find(&self, signature: &Signature) -> Option<Arc<Registered>> {
        let mut signatures = self.signatures.lock();
        let found = signatures.get(signature)?;
        (found.n_resets == self.master.n_resets.load(Ordering::SeqCst)).then(|| Arc::clone(found))
    }

    /// Gives the parts to their workers, which compile them side by side.
    fn register(&self, division: Division) -> Result<Registered, DistributedError> {
        let n_resets = self.master.n_resets.load(Ordering::SeqCst);
        let mut parts = Vec::with_capacity(division.parts.len());
        for part in &division.parts {
            let task = crate::TaskName::of_device(&part.task);
            let link = self.links.iter().find(|link| Some(&link.task) == task.as_ref());
            let link = link.ok_or_else(|| DistributedError::Invalid(format!("no worker is {}", part.task)))?;
            parts.push((Arc::clone(link), self.master.number()));
        }
        let tasks: Arc<[Task]> = parts.iter().map(|(link, _)| link.as_task()).collect();
        let pending = Arc::new((Mutex::new((parts.len(), None)), Condvar::new()));
        for ((link, number), part) in parts.iter().zip(&division.parts) {
            let request = Register {
                call: 0,
                part: *number,
                session: self.number,
                graph: part.graph.encode_to_vec(),
                feeds: part.feeds.iter().map(|(_, name)| name.clone()).collect(),
                fetches: part.fetches.iter().map(|(_, name)| name.clone()).collect(),
                targets: part.targets.clone(),
                tasks: tasks.to_vec(),
            };
            let (pending, of) = (Arc::clone(&pending), Arc::clone(link));
            let waiter = move |answer| {
                let (state, changed) = &*pending;
                let mut state = state.lock();
                state.0 -= 1;
                let error = match answer {
                    Reply::Lost(why) => Some(of.error(why)),
                    Reply::Done(Some(failure)) => Some(of.failed(failure)),
                    _ => None,
                };
                state.1 = state.1.take().or(error);
                changed.notify_all();
            };
            link.call(|call| Register { call, ..request }.frame(Vec::new()), Box::new(waiter));
        }
        let (state, changed) = &*pending;
        let mut state = state.lock();
        while state.0 > 0 && state.1.is_none() {
            if !changed.wait_for(&mut state, self.master.options.registration) {
                let text = "the workers did not compile their parts in time".to_owned();
                return Err(DistributedError::Invalid(text));
            }
        }
        match state.1.take() {
            Some(error) => Err(error),
            None => Ok(Registered { division, parts, tasks, n_resets }),
        }
    }
}

impl Steps for Session {
    type Error = DistributedError;

    fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>, DistributedError> {
        let (names, values): (Vec<&str>, Vec<Tensor>) =
            feeds.iter().map(|(name, value)| (*name, value.clone())).unzip();
        let registered = self.registered(&names, fetches, targets)?;
        step::run(&self.master, &registered, options, &values)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl Callable<'_> {
    /// Runs the step with the feeds' values in the order in which they were prepared.
    ///
    /// # Errors
    /// See [`DistributedError`].
    pub fn run(&self, feeds: &[Tensor]) -> Result<Vec<Tensor>, DistributedError> {
        self.run_step(&RunOptions::default(), feeds)
    }

    /// As [`Callable::run`], with options.
    ///
    /// # Errors
    /// See [`DistributedError`].
    pub fn run_step(&self, options: &RunOptions<'_>, feeds: &[Tensor]) -> Result<Vec<Tensor>, DistributedError> {
        self.session.check()?;
        step::run(&self.session.master, &self.registered, options, feeds)
    }
}
