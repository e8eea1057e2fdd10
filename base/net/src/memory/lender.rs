//! The sender's side: bodies that are lent to the other end until it releases them.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use parking_lot::Mutex;

use crate::frame::{Body, Frame, IN_MEMORY, MEMORY_OFFER};
use crate::transport::{Transport, check_under_way};
use crate::{Limits, NetError};

/// This process's memory, from which the other end takes bodies, if it can.
pub struct Lender {
    window: Window,
    lent: Mutex<Lent>,
    /// Whether the other end reads this process's memory.
    is_read: AtomicBool,
}

impl Lender {
    /// One that nobody reads yet.
    pub fn new() -> Lender {
        Lender { window: Window::new(), lent: Mutex::default(), is_read: false.into() }
    }

    /// Shows the own memory.
    pub fn offer(&self) -> Frame {
        Frame::message(MEMORY_OFFER, self.window.offer())
    }

    /// The other end could read what was shown.
    pub fn set_read(&self) {
        self.is_read.store(true, Ordering::Release);
    }

    /// Whether the other end takes bodies.
    pub fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Acquire)
    }

    /// The other end has what was lent.
    pub fn release(&self, ticket: u64) {
        let released = self.lent.lock().release(ticket);
        drop(released);
    }

    /// How many bodies were lent so far.
    pub fn n_lent(&self) -> u64 {
        self.lent.lock().next
    }

    /// Takes all back. Who still reads sees that it is not to be trusted.
    pub fn close(&self) {
        self.window.close();
        let lent = self.lent.lock().take_all();
        drop(lent);
    }
}

impl Transport for Lender {
    fn flag(&self) -> u8 {
        IN_MEMORY
    }

    fn send(&self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError> {
        self.lent.lock().lend(body, bytes, limits)
    }
}

/// Bytes in the own memory by which others recognise it.
pub(super) struct Window(Box<[AtomicU64; 2]>);

impl Window {
    /// One that nobody can guess.
    pub(super) fn new() -> Window {
        let random = |salt: u8| AtomicU64::new(RandomState::new().hash_one(salt) | 1);
        Window(Box::new([random(0), random(1)]))
    }

    /// The head of an [`MEMORY_OFFER`].
    pub(super) fn offer(&self) -> Vec<u8> {
        let mut head = std::process::id().to_le_bytes().to_vec();
        head.extend((self.0.as_ptr() as u64).to_le_bytes());
        self.0.iter().for_each(|word| head.extend(word.load(Ordering::Relaxed).to_ne_bytes()));
        head
    }

    /// Shows all readers that what was lent is not there any more.
    pub(super) fn close(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::SeqCst));
        fence(Ordering::SeqCst);
    }
}

/// What was lent and not released, by ticket.
#[derive(Default)]
pub(super) struct Lent {
    pub(super) next: u64,
    pieces: VecDeque<(u64, Vec<Body>, u64)>,
    bytes: u64,
}

impl Lent {
    /// Lends a body of `bytes`; gives the list that is sent in its place.
    ///
    /// # Errors
    /// More would be lent than may wait to be sent.
    pub(super) fn lend(&mut self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError> {
        let lent = self.bytes.saturating_add(bytes);
        check_under_way(lent, limits)?;
        let mut list = self.next.to_le_bytes().to_vec();
        for piece in body.iter().map(|piece| (**piece).as_ref()) {
            list.extend((piece.as_ptr() as u64).to_le_bytes());
            list.extend((piece.len() as u64).to_le_bytes());
        }
        self.pieces.push_back((self.next, body, bytes));
        self.next += 1;
        self.bytes = lent;
        Ok(list)
    }

    /// Takes back what was released: dropped by the caller, outside of locks.
    pub(super) fn release(&mut self, ticket: u64) -> Option<Vec<Body>> {
        let at = self.pieces.iter().position(|(known, ..)| *known == ticket)?;
        let (_, body, bytes) = self.pieces.remove(at)?;
        self.bytes -= bytes;
        Some(body)
    }

    fn take_all(&mut self) -> Vec<Vec<Body>> {
        self.bytes = 0;
        self.pieces.drain(..).map(|(_, body, _)| body).collect()
    }
}
