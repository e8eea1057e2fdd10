//! Receiving a body as MPI messages, directly into the reader's buffer where that is long enough.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use net::{BodySource, NetError, Outbox};

use crate::calls::{MAX_MESSAGE, Request};
use crate::world::{Membership, UseGuard};

/// The most messages that are received at once.
const MAX_REQUESTS: usize = 4;
/// While a message is expected, MPI is polled without pause for `SPIN_TIME`, then once in each `POLL_PERIOD`.
const SPIN_TIME: Duration = Duration::from_millis(5);
const POLL_PERIOD: Duration = Duration::from_micros(50);

/// A body that is received as messages.
pub struct MpiBody {
    membership: Arc<Membership>,
    from: u32,
    tag: u32,
    /// The bytes of each piece that are yet to be received.
    pieces: VecDeque<u64>,
    /// The last message that was longer than the reader's buffer.
    buffer: Vec<u8>,
    /// The number of bytes of `buffer` that were read.
    n_read: usize,
    outbox: Outbox,
}

impl MpiBody {
    /// Parses a list of pieces; returns the body with its length in bytes. `None` where `list` is malformed.
    pub fn parse(membership: Arc<Membership>, list: &[u8], outbox: &Outbox) -> Option<(MpiBody, u64)> {
        let (head, pieces) = list.split_first_chunk::<8>()?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
        let (from, tag) = (number(&head[..4])?, number(&head[4..])?);
        let (pieces, []) = pieces.as_chunks::<8>() else { return None };
        let pieces: VecDeque<u64> = pieces.iter().map(|len| u64::from_le_bytes(*len)).filter(|len| *len > 0).collect();
        let bytes = pieces.iter().try_fold(0u64, |sum, len| sum.checked_add(*len))?;
        if from >= membership.size || i32::try_from(tag).is_err() {
            return None;
        }
        let outbox = outbox.clone();
        Some((MpiBody { membership, from, tag, pieces, buffer: Vec::new(), n_read: 0, outbox }, bytes))
    }

    /// The length of the next message, bytes.
    fn next_len(&self) -> Option<usize> {
        self.pieces.front().map(|len| (*len).min(MAX_MESSAGE as u64) as usize)
    }

    /// Removes the next message from `pieces`.
    fn advance(&mut self) {
        if let Some(front) = self.pieces.front_mut() {
            *front -= (*front).min(MAX_MESSAGE as u64);
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
        let _guard = UseGuard::acquire(&self.membership)?;
        let mut requests = Vec::with_capacity(parts.len());
        let mut outcome = Ok(());
        for part in parts {
            // SAFETY: `cancel_all` below returns only when every request is over; no code between can panic.
            match unsafe { self.membership.communicator.receive(part, self.from as i32, self.tag as i32) } {
                Ok(request) => requests.push(request),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let outcome = outcome.and_then(|()| self.wait(&mut requests));
        self.cancel_all(&mut requests);
        outcome
    }

    /// Waits until all requests are over, or until none has ended for [`Limits::silence`](net::Limits).
    fn wait(&self, requests: &mut Vec<Request>) -> Result<(), NetError> {
        let silence = self.outbox.silence();
        let mut last_progress = threads::now();
        loop {
            if remove_over(requests)? {
                last_progress = threads::now();
            }
            if requests.is_empty() {
                return Ok(());
            }
            if let Some(reason) = self.outbox.end_reason() {
                return Err(reason);
            }
            match threads::since(last_progress) {
                time if time > silence => return Err(NetError::Silent(silence)),
                time if time > SPIN_TIME => threads::sleep(POLL_PERIOD),
                _ => threads::yield_now(),
            }
        }
    }

    /// Cancels the requests that are not over and waits for them. Where one does not end within the silence limit,
    /// aborts the world: MPI may still write to the memory of a message that was received in part.
    fn cancel_all(&self, requests: &mut Vec<Request>) {
        requests.iter_mut().for_each(Request::cancel);
        let begin = threads::now();
        while !requests.is_empty() {
            // A request that MPI cannot test stays in the list: MPI may still write to its memory.
            let _ = remove_over(requests);
            if threads::since(begin) > self.outbox.silence() {
                self.membership.communicator.abort();
            }
            if !requests.is_empty() {
                threads::sleep(POLL_PERIOD);
            }
        }
    }
}

/// Removes the requests that are over. Returns whether there were any.
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

impl BodySource for MpiBody {
    fn read(&mut self, mut to: &mut [u8]) -> Result<(), NetError> {
        while !to.is_empty() {
            if self.n_read < self.buffer.len() {
                let n = to.len().min(self.buffer.len() - self.n_read);
                let (part, rest) = to.split_at_mut(n);
                part.copy_from_slice(&self.buffer[self.n_read..self.n_read + n]);
                (self.n_read, to) = (self.n_read + n, rest);
                continue;
            }
            let mut parts = Vec::new();
            while let Some(len) = self.next_len().filter(|len| *len <= to.len() && parts.len() < MAX_REQUESTS) {
                let (part, rest) = to.split_at_mut(len);
                self.advance();
                parts.push(part);
                to = rest;
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
