//! What is to be sent over a connection: small frames at once, in the caller's thread, where nothing waits; all others by a thread
//! of the connection, which also sends heartbeats.
//!
//! Frames may overtake each other.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::frame::{Frame, HEARTBEAT};
use crate::stream::Stream;
use crate::{Limits, NetError};

/// Frames up to this size are sent in their caller's thread.
const SMALL: u64 = 64 << 10;

/// Sends frames; clones send over the same connection.
#[derive(Clone)]
pub struct Outbox(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    writer: Mutex<Stream>,
    /// To end the connection while the writer is at work.
    stream: Stream,
    limits: Limits,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: u64,
    /// Why nothing is sent any more.
    ended: Option<NetError>,
}

impl Outbox {
    pub(crate) fn new(stream: Stream, limits: Limits) -> Result<Outbox, NetError> {
        let writer = Mutex::new(stream.try_clone()?);
        Ok(Outbox(Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), writer, stream, limits })))
    }

    /// Sends a frame, in this thread if it is small and nothing waits: this may take as long as the other end needs to make
    /// room. Not for threads that take what the other end sends.
    ///
    /// # Errors
    /// The connection ended; the frame, or what waits, is over a limit.
    pub fn send(&self, frame: Frame) -> Result<(), NetError> {
        if frame.len() > SMALL || !self.0.queue.lock().frames.is_empty() {
            return self.post(frame);
        }
        let Some(mut writer) = self.0.writer.try_lock() else { return self.post(frame) };
        self.check_ended()?;
        frame.check(&self.0.limits)?;
        let written = frame.write(&mut *writer, self.0.limits.silence);
        drop(writer);
        written.inspect_err(|error| self.close(error.clone()))
    }

    /// Has a frame sent by the connection's thread. Never waits.
    ///
    /// # Errors
    /// As [`Outbox::send`].
    pub fn post(&self, frame: Frame) -> Result<(), NetError> {
        frame.check(&self.0.limits)?;
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
            let frame = next.unwrap_or_else(|| Frame::message(HEARTBEAT, Vec::new()));
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
