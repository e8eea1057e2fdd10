//! A body that comes as messages, straight to where it belongs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::calls::{MESSAGE, Request};
use super::world::{Here, Using, here};
use crate::NetError;
use crate::outbox::Outbox;
use crate::transport::Source;

/// Messages that are waited for at once.
const AHEAD: usize = 4;
/// While a message is expected MPI is asked all the time; after so long less often.
const BUSY: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(50);

/// A body of which some may have been read.
pub struct Messages {
    here: Arc<Here>,
    from: u32,
    tag: u32,
    /// Bytes of the pieces that are yet to come.
    pieces: VecDeque<u64>,
    /// A message that was longer than what was asked for, and how much of it was read.
    whole: Vec<u8>,
    read: usize,
    outbox: Outbox,
}

impl Messages {
    /// From the list that came; with it the bytes that it has. `None` where that is no list, or this process of no
    /// world.
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
        Some((Messages { here, from, tag, pieces, whole: Vec::new(), read: 0, outbox }, bytes))
    }

    /// Bytes of the next message.
    fn next_len(&self) -> Option<usize> {
        self.pieces.front().map(|len| (*len).min(MESSAGE as u64) as usize)
    }

    /// The next message has been asked for.
    fn advance(&mut self) {
        if let Some(front) = self.pieces.front_mut() {
            *front -= (*front).min(MESSAGE as u64);
            if *front == 0 {
                self.pieces.pop_front();
            }
        }
    }

    /// Takes the next message where what was asked for is shorter than it.
    fn receive_whole(&mut self) -> Result<(), NetError> {
        let Some(len) = self.next_len() else {
            return Err(NetError::Protocol("a body's pieces are shorter than it".into()));
        };
        let mut whole = std::mem::take(&mut self.whole);
        whole.resize(len, 0);
        self.advance();
        let received = self.receive(&mut [&mut whole]);
        (self.whole, self.read) = (whole, 0);
        received
    }

    /// Takes the next messages.
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

    /// Waits until all are over; no longer than the other end may be silent.
    fn wait(&self, requests: &mut Vec<Request>) -> Result<(), NetError> {
        let silence = self.outbox.silence();
        let mut last = threads::now();
        loop {
            if over(requests)? {
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
            // What MPI cannot say of may still be written.
            let _ = over(requests);
            if threads::since(begin) > self.outbox.silence() {
                self.here.all.abort();
            }
            if !requests.is_empty() {
                threads::sleep(PAUSE);
            }
        }
    }
}

/// Drops those that are over; whether any was.
fn over(requests: &mut Vec<Request>) -> Result<bool, NetError> {
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
            if self.read < self.whole.len() {
                let n = to.len().min(self.whole.len() - self.read);
                let (now, later) = to.split_at_mut(n);
                now.copy_from_slice(&self.whole[self.read..self.read + n]);
                (self.read, to) = (self.read + n, later);
                continue;
            }
            let mut parts = Vec::new();
            while let Some(len) = self.next_len().filter(|len| *len <= to.len() && parts.len() < AHEAD) {
                let (part, later) = to.split_at_mut(len);
                self.advance();
                parts.push(part);
                to = later;
            }
            match parts.is_empty() {
                true => self.receive_whole()?,
                false => self.receive(&mut parts)?,
            }
        }
        Ok(())
    }

    fn release(mut self: Box<Self>) -> Result<(), NetError> {
        // The sender holds them until they are taken.
        while !self.pieces.is_empty() {
            self.receive_whole()?;
        }
        Ok(())
    }
}
