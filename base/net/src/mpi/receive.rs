//! Receiving a body as MPI messages, directly into the reader's buffer where that is long enough.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::calls::{MESSAGE, Request};
use super::world::{Here, Using, here};
use crate::NetError;
use crate::outbox::Outbox;
use crate::transport::Source;

/// The most messages that are received at once.
const MAX_REQUESTS: usize = 4;
/// While a message is expected, MPI is polled without pause for `BUSY`, then once in each `PAUSE`.
const BUSY: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(50);

/// A body that is received as messages.
pub struct Messages {
    here: Arc<Here>,
    from: u32,
    tag: u32,
    /// The bytes of each piece that are yet to be received.
    pieces: VecDeque<u64>,
    /// A message that was longer than the reader's buffer.
    buffer: Vec<u8>,
    /// The number of its bytes that were read.
    n_read: usize,
    outbox: Outbox,
}

impl Messages {
    /// Parses a list of pieces; returns the body with its length in bytes. `None` where `list` is malformed, or this
    /// process is in no world.
    pub(crate) fn parse(list: &[u8], outbox: &Outbox) -> Option<(Messages, u64)> {
        let here = here()?;
        let (head, pieces) = list.split_first_chunk::<8>()?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
        let (from, tag) = (number(&head[..4])?, number(&head[4..])?);
        let (pieces, []) = pieces.as_chunks::<8>() else { return None };
        let pieces: VecDeque<u64> = pieces.iter().map(|len| u64::from_le_bytes(*len)).filter(|len| *len > 0).collect();
        let bytes = pieces.iter().try_fold(0u64, |sum, len| sum.checked_add(*len))?;
        if from >= here.size || i32::try_from(tag).is_err() {
            return None;
        }
        let outbox = outbox.clone();
        Some((Messages { here, from, tag, pieces, buffer: Vec::new(), n_read: 0, outbox }, bytes))
    }

    /// The length of the next message, bytes.
    fn next_len(&self) -> Option<usize> {
        self.pieces.front().map(|len| (*len).min(MESSAGE as u64) as usize)
    }

    /// Removes the next message from `pieces`.
    fn advance(&mut self) {
        if let Some(front) = self.pieces.front_mut() {
            *front -= (*front).min(MESSAGE as u64);
            if *front == 0 {
                self.pieces.pop_front();
            }
        }
    }

    /// Receives the next message into `buffer`.
    fn receive_to_buffer(&mut self) -> Result<(), NetError> {
        let Some(len) = self.next_len() else {
            return Err(NetError::Protocol("a body's pieces are shorter than it".into()));
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(len, 0);
        self.advance();
        let received = self.receive(&mut [&mut buffer]);
        (self.buffer, self.n_read) = (buffer, 0);
        received
    }

    /// Receives the next messages, one into each part.
    fn receive(&self, parts: &mut [&mut [u8]]) -> Result<(), NetError> {
        let _using = Using::of(&self.here)?;
        let mut requests = Vec::with_capacity(parts.len());
        let mut outcome = Ok(());
        for part in parts {
            // SAFETY: `end` below gives the memory back only when every request is over; nothing between can panic.
            match unsafe { self.here.all.receive(part, self.from as i32, self.tag as i32) } {
                Ok(request) => requests.push(request),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let outcome = outcome.and_then(|()| self.wait(&mut requests));
        self.end(&mut requests);
        outcome
    }

    /// Waits until all requests are over, or none has ended for [`Limits::silence`](crate::Limits).
    fn wait(&self, requests: &mut Vec<Request>) -> Result<(), NetError> {
        let silence = self.outbox.silence();
        let mut last = threads::now();
        loop {
            if remove_over(requests)? {
                last = threads::now();
            }
            if requests.is_empty() {
                return Ok(());
            }
            if let Some(why) = self.outbox.ended() {
                return Err(why);
            }
            match threads::since(last) {
                time if time > silence => return Err(NetError::Silent(silence)),
                time if time > BUSY => threads::sleep(PAUSE),
                _ => threads::yield_now(),
            }
        }
    }

    /// Takes back what is not over. A message of which half came is waited for, or everything ends: MPI may write into
    /// its memory.
    fn end(&self, requests: &mut Vec<Request>) {
        requests.iter_mut().for_each(Request::cancel);
        let begin = threads::now();
        while !requests.is_empty() {
            // A request that MPI cannot test stays in the list: MPI may still write to its memory.
            let _ = remove_over(requests);
            if threads::since(begin) > self.outbox.silence() {
                self.here.all.abort();
            }
            if !requests.is_empty() {
                threads::sleep(PAUSE);
            }
        }
    }
}

/// Removes the requests that are over. Returns whether any was.
fn remove_over(requests: &mut Vec<Request>) -> Result<bool, NetError> {
    let (n, mut failed) = (requests.len(), None);
    requests.retain_mut(|request| match request.is_over() {
        Ok(is_over) => !is_over,
        Err(error) => {
            failed = Some(error);
            true
        }
    });
    failed.map_or(Ok(requests.len() < n), Err)
}

impl Source for Messages {
    fn read(&mut self, mut to: &mut [u8]) -> Result<(), NetError> {
        while !to.is_empty() {
            if self.n_read < self.buffer.len() {
                let n = to.len().min(self.buffer.len() - self.n_read);
                let (now, later) = to.split_at_mut(n);
                now.copy_from_slice(&self.buffer[self.n_read..self.n_read + n]);
                (self.n_read, to) = (self.n_read + n, later);
                continue;
            }
            let mut parts = Vec::new();
            while let Some(len) = self.next_len().filter(|len| *len <= to.len() && parts.len() < MAX_REQUESTS) {
                let (part, later) = to.split_at_mut(len);
                self.advance();
                parts.push(part);
                to = later;
            }
            match parts.is_empty() {
                true => self.receive_to_buffer()?,
                false => self.receive(&mut parts)?,
            }
        }
        Ok(())
    }

    fn release(mut self: Box<Self>) -> Result<(), NetError> {
        // The sender stores a message until it is received.
        while !self.pieces.is_empty() {
            self.receive_to_buffer()?;
        }
        Ok(())
    }
}
