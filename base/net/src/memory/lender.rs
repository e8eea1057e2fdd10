//! The sender's side: bodies that are lent to the receiver until it releases them.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use parking_lot::Mutex;

use crate::frame::Body;
use crate::transport::{Transport, check_under_way};
use crate::{Limits, NetError};

/// Lends bodies in this process's memory to the receiver of one connection.
pub struct Lender {
    canary: Canary,
    lent: Mutex<LentBodies>,
    /// Whether the receiver reported that it can read this process's memory.
    is_readable: AtomicBool,
}

impl Lender {
    /// A lender whose memory the receiver does not read yet.
    pub fn new() -> Lender {
        Lender { canary: Canary::new(), lent: Mutex::default(), is_readable: false.into() }
    }

    /// The head of the `MEMORY_OFFER` to the receiver.
    pub fn offer(&self) -> Vec<u8> {
        self.canary.offer()
    }

    /// Records that the receiver could read the canary, so that bodies are lent from now on.
    pub fn set_readable(&self) {
        self.is_readable.store(true, Ordering::Release);
    }

    /// Whether the receiver can read this process's memory.
    pub fn is_readable(&self) -> bool {
        self.is_readable.load(Ordering::Acquire)
    }

    /// Drops the body with this ticket, which the receiver needs no longer.
    pub fn release(&self, ticket: u64) {
        let released = self.lent.lock().release(ticket);
        drop(released);
    }

    /// Drops all bodies. The canary changes first: a receiver that still reads sees that the bytes are not valid.
    pub fn close(&self) {
        self.canary.clear();
        let lent = self.lent.lock().take_all();
        drop(lent);
    }
}

impl Transport for Lender {
    fn send(&self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError> {
        self.lent.lock().lend(body, bytes, limits)
    }

    fn n_sent(&self) -> u64 {
        self.lent.lock().next_ticket
    }
}

/// Random bytes in this process's memory, by which a receiver sees that it reads the right process and that bodies are
/// still lent.
pub(super) struct Canary(Box<[AtomicU64; 2]>);

impl Canary {
    /// A canary that cannot be guessed and is not zero.
    pub(super) fn new() -> Canary {
        let random = |salt: u8| AtomicU64::new(RandomState::new().hash_one(salt) | 1);
        Canary(Box::new([random(0), random(1)]))
    }

    /// The head of a `MEMORY_OFFER`.
    pub(super) fn offer(&self) -> Vec<u8> {
        let mut head = std::process::id().to_le_bytes().to_vec();
        head.extend((self.0.as_ptr() as u64).to_le_bytes());
        self.0.iter().for_each(|word| head.extend(word.load(Ordering::Relaxed).to_ne_bytes()));
        head
    }

    /// Clears the canary, by which receivers see that no body is lent any more.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::SeqCst));
        fence(Ordering::SeqCst);
    }
}

/// The bodies that are lent and not released.
#[derive(Default)]
pub(super) struct LentBodies {
    pub(super) next_ticket: u64,
    /// In the order of their tickets.
    bodies: VecDeque<LentBody>,
    /// The length of all bodies.
    bytes: u64,
}

struct LentBody {
    ticket: u64,
    pieces: Vec<Body>,
    bytes: u64,
}

impl LentBodies {
    /// Lends a body of `bytes`; returns the list of its pieces, which is sent in its place.
    ///
    /// # Errors
    /// More than [`Limits::outbox`] bytes would be lent.
    pub(super) fn lend(&mut self, pieces: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError> {
        let lent = self.bytes.saturating_add(bytes);
        check_under_way(lent, limits)?;
        let mut list = self.next_ticket.to_le_bytes().to_vec();
        for piece in pieces.iter().map(|piece| (**piece).as_ref()) {
            list.extend((piece.as_ptr() as u64).to_le_bytes());
            list.extend((piece.len() as u64).to_le_bytes());
        }
        self.bodies.push_back(LentBody { ticket: self.next_ticket, pieces, bytes });
        self.next_ticket += 1;
        self.bytes = lent;
        Ok(list)
    }

    /// Removes a released body, which the caller drops outside of locks. `None` where no body has this ticket.
    pub(super) fn release(&mut self, ticket: u64) -> Option<Vec<Body>> {
        let idx = self.bodies.iter().position(|body| body.ticket == ticket)?;
        let body = self.bodies.remove(idx)?;
        self.bytes -= body.bytes;
        Some(body.pieces)
    }

    fn take_all(&mut self) -> Vec<Vec<Body>> {
        self.bytes = 0;
        self.bodies.drain(..).map(|body| body.pieces).collect()
    }
}
