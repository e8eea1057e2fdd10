//! What is to be sent over a connection: small frames at once, in the caller's thread, where nothing waits; all others by a thread
//! of the connection, which also sends heartbeats.
//!
//! Frames may overtake each other.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use threads::Condvar;

use crate::frame::{Frame, HEARTBEAT, Outgoing};
use crate::memory::lender::Lender;
use crate::mpi;
use crate::stream::Stream;
use crate::transport::{Transport, is_worth_it};
use crate::{Limits, NetError};

/// Frames up to this size are sent in their caller's thread.
const SMALL: u64 = 64 << 10;

/// Sends frames; clones send over the same connection.
#[derive(Clone)]
pub struct Outbox(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Held while the other end makes room.
    writer: threads::Mutex<Stream>,
    /// To end the connection while the writer is at work.
    stream: Stream,
    limits: Limits,
    lender: Lender,
    /// The other end, where it is of the same world.
    mpi: OnceLock<mpi::Peer>,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Outgoing>,
    bytes: u64,
    /// Why nothing is sent any more.
    ended: Option<NetError>,
}

impl Outbox {
    pub(crate) fn new(stream: Stream, limits: Limits) -> Result<Outbox, NetError> {
        let writer = threads::Mutex::new(stream.try_clone()?);
        let shared = Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            writer,
            stream,
            limits,
            lender: Lender::new(),
            mpi: OnceLock::new(),
        };
        Ok(Outbox(Arc::new(shared)))
    }

    /// Lets the other end read bodies from this process's memory, if it can.
    pub(crate) fn offer_memory(&self) -> Result<(), NetError> {
        self.post(self.0.lender.offer())
    }

    /// This process's memory.
    pub(crate) fn lender(&self) -> &Lender {
        &self.0.lender
    }

    /// Bodies may go to this one by MPI.
    pub(crate) fn set_mpi(&self, peer: mpi::Peer) {
        // Who says it twice stays who it was.
        let _ = self.0.mpi.set(peer);
    }

    /// How long the other end may be silent.
    #[cfg(feature = "mpi")]
    pub(crate) fn silence(&self) -> std::time::Duration {
        self.0.limits.silence
    }

    /// Bodies that the other end took from this process's memory, or will.
    pub fn n_lent(&self) -> u64 {
        self.0.lender.n_lent()
    }

    /// Bodies that went by MPI.
    pub fn n_by_mpi(&self) -> u64 {
        self.0.mpi.get().map_or(0, mpi::Peer::n_sent)
    }

    /// The transport of large bodies outside the connection, if there is one. Within a host the other end takes them itself.
    fn transport(&self) -> Option<&dyn Transport> {
        match self.0.lender.is_read() {
            true => Some(&self.0.lender),
            false => self.0.mpi.get().map(|peer| peer as &dyn Transport),
        }
    }

    /// The frame as it goes over the connection.
    fn outgoing(&self, frame: Frame) -> Result<Outgoing, NetError> {
        frame.check(&self.0.limits)?;
        let Some(transport) = self.transport().filter(|_| is_worth_it(&frame)) else { return Ok(frame.into()) };
        self.check_ended()?;
        let bytes = frame.body_len();
        let Frame { kind, head, body } = frame;
        let list = transport.send(body, bytes, &self.0.limits)?;
        Ok(Outgoing::with_list(kind, head, transport.flag(), list))
    }

    /// Sends a frame, in this thread if it is small and nothing waits: this may take as long as the other end needs to make
    /// room. Not for threads that take what the other end sends.
    ///
    /// # Errors
    /// The connection ended; the frame, or what waits, is over a limit.
    pub fn send(&self, frame: Frame) -> Result<(), NetError> {
        let frame = self.outgoing(frame)?;
        if frame.len() > SMALL || !self.0.queue.lock().frames.is_empty() {
            return self.queue(frame);
        }
        let Some(mut writer) = self.0.writer.try_lock() else { return self.queue(frame) };
        self.check_ended()?;
        let written = frame.write(&mut *writer, self.0.limits.silence);
        drop(writer);
        written.inspect_err(|error| self.close(error.clone()))
    }

    /// Has a frame sent by the connection's thread. Never waits.
    ///
    /// # Errors
    /// As [`Outbox::send`].
    pub fn post(&self, frame: Frame) -> Result<(), NetError> {
        self.queue(self.outgoing(frame)?)
    }

    fn queue(&self, frame: Outgoing) -> Result<(), NetError> {
        let len = frame.len();
        let mut queue = self.0.queue.lock();
        if let Some(error) = &queue.ended {
            return Err(error.clone());
        }
        let bytes = queue.bytes.saturating_add(len);
        if bytes > self.0.limits.outbox {
            return Err(NetError::TooLarge { what: "what waits to be sent", bytes, limit: self.0.limits.outbox });
        }
        queue.bytes = bytes;
        queue.frames.push_back(frame);
        self.0.changed.notify_one();
        Ok(())
    }

    /// Ends the connection, now; what waits is not sent. The first reason stays.
    pub fn close(&self, why: NetError) {
        let dropped = {
            let mut queue = self.0.queue.lock();
            queue.ended.get_or_insert(why);
            queue.bytes = 0;
            std::mem::take(&mut queue.frames)
        };
        drop(dropped);
        self.0.stream.shutdown();
        self.0.lender.close();
        self.0.changed.notify_all();
    }

    /// Why nothing is sent any more; `None` while it is.
    pub fn ended(&self) -> Option<NetError> {
        self.0.queue.lock().ended.clone()
    }

    fn check_ended(&self) -> Result<(), NetError> {
        self.ended().map_or(Ok(()), Err)
    }

    /// Sends what comes, and heartbeats in pauses, until the connection ends.
    pub(crate) fn run(&self) {
        loop {
            let next = {
                let mut queue = self.0.queue.lock();
                if queue.frames.is_empty() && queue.ended.is_none() {
                    self.0.changed.wait_for(&mut queue, self.0.limits.heartbeat);
                }
                if queue.ended.is_some() {
                    return;
                }
                queue.frames.pop_front()
            };
            let frame = next.unwrap_or_else(|| Frame::message(HEARTBEAT, Vec::new()).into());
            let written = frame.write(&mut *self.0.writer.lock(), self.0.limits.silence);
            let mut queue = self.0.queue.lock();
            queue.bytes = if queue.frames.is_empty() { 0 } else { queue.bytes.saturating_sub(frame.len()) };
            drop(queue);
            if let Err(error) = written {
                self.close(error);
            }
        }
    }
}
