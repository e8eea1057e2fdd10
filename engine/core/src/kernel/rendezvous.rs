//! Where a step's sends and receives meet, as kernels see it.
//!
//! A value is known by its [`Key`]: which edge between which devices, in which iteration of which frame. Either side may
//! come first; the other one then finds it waiting. A receive waits as a callback, not as a thread. Each value is taken
//! once.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use super::info::FrameTag;
use crate::tensor::Tensor;

/// An edge between two devices: the part of a key that is the same in every step and iteration.
#[derive(Debug, PartialEq, Eq)]
pub struct EdgeKey {
    /// `source device;incarnation of the source (hexadecimal);destination device;edge`.
    text: String,
    hash: u64,
    to_at: usize,
    edge_at: usize,
}

impl EdgeKey {
    /// The key of edge `edge` (`node:port`) from one device to another, each by its full name.
    pub fn new(from: &str, incarnation: u64, to: &str, edge: &str) -> EdgeKey {
        let prefix = format!("{from};{incarnation:016x};");
        let to_at = prefix.len();
        let edge_at = to_at + to.len() + 1;
        EdgeKey::of(format!("{prefix}{to};{edge}"), to_at, edge_at)
    }

    fn of(text: String, to_at: usize, edge_at: usize) -> EdgeKey {
        // The same in every process: the hash of the text alone, without a seed.
        let hash = FxBuildHasher.hash_one(text.as_str());
        EdgeKey { text, hash, to_at, edge_at }
    }

    /// The key with this text, as another process wrote it; `None` where it is none.
    pub fn parse(text: String) -> Option<EdgeKey> {
        let mut ends = text.match_indices(';').map(|(at, _)| at + 1);
        let (incarnation_at, to_at, edge_at) = (ends.next()?, ends.next()?, ends.next()?);
        let incarnation = text.get(incarnation_at..to_at - 1)?;
        let is_hex = incarnation.len() == 16 && incarnation.bytes().all(|b| b.is_ascii_hexdigit());
        (is_hex && edge_at < text.len()).then(|| EdgeKey::of(text, to_at, edge_at))
    }

    /// The full name of the destination device.
    pub fn to(&self) -> &str {
        &self.text[self.to_at..self.edge_at - 1]
    }

    /// The edge: `node:port`, or `^node` for a control edge.
    pub fn edge(&self) -> &str {
        &self.text[self.edge_at..]
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// One value on its way: an edge, and the iteration in which it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The edge.
    pub edge: Arc<EdgeKey>,
    /// The iteration.
    pub frame: FrameTag,
}

impl Key {
    /// The hash, the same in every process.
    pub fn hash(&self) -> u64 {
        let mut hasher = FxBuildHasher.build_hasher();
        hasher.write_u64(self.edge.hash);
        hasher.write_u64(self.frame.frame);
        hasher.write_u64(self.frame.iteration);
        hasher.finish()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};{}:{}", self.edge.text, self.frame.frame, self.frame.iteration)
    }
}

/// What is handed over.
#[derive(Debug, Clone)]
pub struct Message {
    /// The value as it travels (see the edge's compression); `None`: a dead one.
    pub value: Option<Tensor>,
    /// Joins the events of this transfer; unique in the process.
    pub transfer: u32,
    /// Whether the value lies in the receiver's memory already, as one that came from another process does.
    pub is_there: bool,
}

/// Why a value was not handed over.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RendezvousError {
    /// The step ended before: it failed elsewhere, was cancelled, or is past its deadline.
    #[error("the step ended before the value came")]
    Aborted,
    /// The other end failed.
    #[error("{0}")]
    Remote(Arc<str>),
    /// A value of this key was sent before, and nobody took it.
    #[error("{0} was sent twice")]
    SentTwice(String),
    /// A value of this key is already waited for.
    #[error("{0} is received twice")]
    ReceivedTwice(String),
}

/// Called with the value, or with why there is none; from any thread, once.
pub type Receiver = Box<dyn FnOnce(Result<Message, RendezvousError>) + Send>;

/// Where the two ends of a step's transfers meet.
pub trait Rendezvous: Send + Sync {
    /// Hands a value over; its receiver, if it waits, is called in this thread. Never blocks.
    ///
    /// # Errors
    /// The step was aborted, or the key was used before.
    fn send(&self, key: Key, message: Message) -> Result<(), RendezvousError>;

    /// Has `receiver` called with the value: at once where it is there, otherwise when it comes or the step is aborted.
    /// Never blocks.
    fn recv(&self, key: Key, receiver: Receiver);

    /// Ends all waiting, and what comes later, with `error`. The first error stays.
    fn abort(&self, error: RendezvousError);

    /// The keys of the values that are waited for, in no order.
    fn waiting(&self) -> Vec<String>;
}

/// There is none: outside of steps.
pub struct NoRendezvous;

impl Rendezvous for NoRendezvous {
    fn send(&self, _: Key, _: Message) -> Result<(), RendezvousError> {
        Err(RendezvousError::Aborted)
    }

    fn recv(&self, _: Key, receiver: Receiver) {
        receiver(Err(RendezvousError::Aborted));
    }

    fn abort(&self, _: RendezvousError) {}

    fn waiting(&self) -> Vec<String> {
        Vec::new()
    }
}
