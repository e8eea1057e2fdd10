//! The frames that wait to be sent over a connection. A small frame is sent at once, in the caller's thread, if no
//! frame waits; a thread of the connection sends all others, and heartbeats.
//!
//! Frames may overtake each other.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use threads::Condvar;

use crate::frame::{BY_FABRIC, Frame, HEARTBEAT, IN_MEMORY, Outgoing};
use crate::memory::lender::Lender;
use crate::stream::Stream;
use crate::transport::{Transport, check_under_way, is_sent_outside};
use crate::{Limits, NetError};

/// Frames up to this size, in bytes, may be sent in the caller's thread.
const MAX_DIRECT_BYTES: u64 = 64 << 10;

/// Sends frames; clones send over the same connection.
#[derive(Clone)]
pub struct Outbox(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Locked while a frame is written, which may take until the other end reads.
    writer: threads::Mutex<Stream>,
    /// Shuts the connection down, without the writer's lock.
    stream: Stream,
    limits: Limits,
    lender: Lender,
    /// The transport to the other end by the fabric that both are in, if there is one.
    fabric: OnceLock<Box<dyn Transport>>,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Outgoing>,
    bytes: u64,
    /// Why the connection ended.
    end_reason: Option<NetError>,
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
            fabric: OnceLock::new(),
        };
        Ok(Outbox(Arc::new(shared)))
    }

    /// Lends bodies in this process's memory to the other end.
    pub(crate) fn lender(&self) -> &Lender {
        &self.0.lender
    }

    /// Sends large bodies by this transport from now on.
    pub(crate) fn set_fabric(&self, transport: Box<dyn Transport>) {
        // A second offer is ignored.
        let _ = self.0.fabric.set(transport);
    }

    /// How long the other end may be silent.
    pub fn silence(&self) -> Duration {
        self.0.limits.silence
    }

    /// The number of bodies that were lent to the other end.
    pub fn n_lent(&self) -> u64 {
        self.0.lender.n_sent()
    }

    /// The number of bodies that were sent by a fabric.
    pub fn n_by_fabric(&self) -> u64 {
        self.0.fabric.get().map_or(0, |fabric| fabric.n_sent())
    }

    /// The transport of large bodies outside the connection, if there is one, with the flag of their frames. Within a
    /// host, memory comes before a fabric.
    fn transport(&self) -> Option<(&dyn Transport, u8)> {
        match self.0.lender.is_readable() {
            true => Some((&self.0.lender, IN_MEMORY)),
            false => self.0.fabric.get().map(|fabric| (&**fabric, BY_FABRIC)),
        }
    }

    /// Hands the frame's body to a transport, if there is one for it, and returns what goes over the connection.
    fn prepare(&self, frame: Frame) -> Result<Outgoing, NetError> {
        frame.check(&self.0.limits)?;
        let Some((transport, flag)) = self.transport().filter(|_| is_sent_outside(&frame)) else {
            return Ok(frame.into());
        };
        self.check_open()?;
        let bytes = frame.body_len();
        let Frame { kind, head, body } = frame;
        let list = transport.send(body, bytes, &self.0.limits)?;
        Ok(Outgoing::with_list(kind, head, flag, list))
    }

    /// Sends a frame, in this thread if the frame is small and no other waits. That may block until the other end
    /// reads, so a thread that receives from the other end uses [`Outbox::post`]: two such ends would block each other.
    ///
    /// # Errors
    /// The connection ended; the frame or the queue is over a limit.
    pub fn send(&self, frame: Frame) -> Result<(), NetError> {
        let frame = self.prepare(frame)?;
        if frame.len() > MAX_DIRECT_BYTES || !self.0.queue.lock().frames.is_empty() {
            return self.enqueue(frame);
        }
        let Some(mut writer) = self.0.writer.try_lock() else { return self.enqueue(frame) };
        self.check_open()?;
        let written = frame.write(&mut *writer, self.0.limits.silence);
        drop(writer);
        written.inspect_err(|error| self.close(error.clone()))
    }

    /// Queues a frame for the connection's thread. Never blocks.
    ///
    /// # Errors
    /// As [`Outbox::send`].
    pub fn post(&self, frame: Frame) -> Result<(), NetError> {
        self.enqueue(self.prepare(frame)?)
    }

    fn enqueue(&self, frame: Outgoing) -> Result<(), NetError> {
        let len = frame.len();
        let mut queue = self.0.queue.lock();
        if let Some(error) = &queue.end_reason {
            return Err(error.clone());
        }
        let bytes = queue.bytes.saturating_add(len);
        check_under_way(bytes, &self.0.limits)?;
        queue.bytes = bytes;
        queue.frames.push_back(frame);
        self.0.changed.notify_one();
        Ok(())
    }

    /// Closes the connection at once and drops the frames that wait. The reason of the first call is stored.
    pub fn close(&self, reason: NetError) {
        let dropped = {
            let mut queue = self.0.queue.lock();
            queue.end_reason.get_or_insert(reason);
            queue.bytes = 0;
            std::mem::take(&mut queue.frames)
        };
        drop(dropped);
        self.0.stream.shutdown();
        self.0.lender.close();
        self.0.changed.notify_all();
    }

    /// Why the connection ended; `None` while it is open.
    pub fn end_reason(&self) -> Option<NetError> {
        self.0.queue.lock().end_reason.clone()
    }

    fn check_open(&self) -> Result<(), NetError> {
        self.end_reason().map_or(Ok(()), Err)
    }

    /// Sends queued frames, and heartbeats in pauses, until the connection ends.
    pub(crate) fn run(&self) {
        loop {
            let next = {
                let mut queue = self.0.queue.lock();
                if queue.frames.is_empty() && queue.end_reason.is_none() {
                    self.0.changed.wait_for(&mut queue, self.0.limits.heartbeat);
                }
                if queue.end_reason.is_some() {
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
