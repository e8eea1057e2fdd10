//! Bodies that the receiver takes out of the sender's memory: copied once, and not through a socket. For processes of one host of
//! which one may read the other's memory (Linux's `process_vm_readv`: the same user, unless Yama's `ptrace_scope` forbids it). Where that
//! is not so bodies go over the connection, as between hosts.
//!
//! ```text
//! one end                                                      the other
//! OFFER    u32 process, u64 address, the 16 bytes there   ->
//!                                                         <-   READS    it could read them
//! a frame with flag 1; its body tells where the real
//! one lies: u64 ticket, then of each piece u64 address,
//! u64 bytes                                               ->
//!                                                         <-   RELEASE  u64 ticket: the pieces are not needed any more
//! ```
//!
//! The sender keeps the pieces until they are released. Where it ends the connection it changes the bytes that it showed before it lets
//! go of them, and a reader looks at those bytes after each body: what it took was still the sender's.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use parking_lot::Mutex;

use crate::frame::{Body, Frame};
use crate::outbox::Outbox;
use crate::way::{Source, Way, check_under_way};
use crate::{Limits, NetError};

/// Kind of the frame that shows the own memory.
pub const OFFER: u8 = 254;
/// Kind of the frame that says that the other end's memory can be read.
pub const READS: u8 = 253;
/// Kind of the frame that gives pieces back.
pub const RELEASE: u8 = 252;
/// What says in a frame's flags that its body is lent.
pub const FLAG: u8 = 1;

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
        Frame::message(OFFER, self.window.offer())
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

impl Way for Lender {
    fn flag(&self) -> u8 {
        FLAG
    }

    fn send(&self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError> {
        self.lent.lock().lend(body, bytes, limits)
    }
}

/// Bytes in the own memory by which others recognise it.
struct Window(Box<[AtomicU64; 2]>);

impl Window {
    /// One that nobody can guess.
    fn new() -> Window {
        let random = |salt: u8| AtomicU64::new(RandomState::new().hash_one(salt) | 1);
        Window(Box::new([random(0), random(1)]))
    }

    /// The head of an [`OFFER`].
    fn offer(&self) -> Vec<u8> {
        let mut head = std::process::id().to_le_bytes().to_vec();
        head.extend((self.0.as_ptr() as u64).to_le_bytes());
        self.0.iter().for_each(|word| head.extend(word.load(Ordering::Relaxed).to_ne_bytes()));
        head
    }

    /// Tells all who look that what was lent is not there any more.
    fn close(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::SeqCst));
        fence(Ordering::SeqCst);
    }
}

/// What was lent and not released, by ticket.
#[derive(Default)]
struct Lent {
    next: u64,
    pieces: VecDeque<(u64, Vec<Body>, u64)>,
    bytes: u64,
}

impl Lent {
    /// Lends a body of `bytes`; gives the list that is sent in its place.
    ///
    /// # Errors
    /// More would be lent than may wait to be sent.
    fn lend(&mut self, body: Vec<Body>, bytes: u64, limits: &Limits) -> Result<Vec<u8>, NetError> {
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
    fn release(&mut self, ticket: u64) -> Option<Vec<Body>> {
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

/// A body that lies in the other end's memory.
pub struct Borrowed {
    pieces: Pieces,
    sight: Arc<Sight>,
    outbox: Outbox,
}

impl Borrowed {
    /// From the list that came; with it the bytes that it has. `None` where that is no list.
    pub fn parse(list: &[u8], sight: &Arc<Sight>, outbox: &Outbox) -> Option<(Borrowed, u64)> {
        let (pieces, bytes) = Pieces::parse(list)?;
        Some((Borrowed { pieces, sight: Arc::clone(sight), outbox: outbox.clone() }, bytes))
    }
}

impl Source for Borrowed {
    fn read(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        self.sight.read(&mut self.pieces, to)
    }

    fn done(self: Box<Self>) -> Result<(), NetError> {
        // Where the connection ended nobody waits for it.
        let _ = self.outbox.post(Frame::message(RELEASE, self.pieces.ticket.to_le_bytes().to_vec()));
        Ok(())
    }
}

/// Pieces in another process's memory, of which some were read.
#[derive(Default)]
struct Pieces {
    ticket: u64,
    places: VecDeque<(u64, u64)>,
}

impl Pieces {
    /// From the list that came; with them the bytes that they have.
    fn parse(list: &[u8]) -> Option<(Pieces, u64)> {
        let (ticket, rest) = list.split_first_chunk::<8>()?;
        let (places, []) = rest.as_chunks::<16>() else { return None };
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        let place = |place: &[u8; 16]| Some((number(&place[..8])?, number(&place[8..])?));
        let places: VecDeque<(u64, u64)> = places.iter().map(place).collect::<Option<_>>()?;
        let bytes = places.iter().try_fold(0u64, |sum, (_, bytes)| sum.checked_add(*bytes))?;
        Some((Pieces { ticket: u64::from_le_bytes(*ticket), places }, bytes))
    }

    /// Takes the next places, of `bytes` in all and at most `n`.
    fn take(&mut self, mut bytes: u64, n: usize) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        while bytes > 0 && taken.len() < n {
            let Some((at, len)) = self.places.front_mut() else { break };
            let part = bytes.min(*len);
            taken.push((*at, part));
            (*at, *len, bytes) = (at.saturating_add(part), *len - part, bytes - part);
            if *len == 0 {
                self.places.pop_front();
            }
        }
        taken
    }
}

/// Another process's memory, which can be read.
pub struct Sight {
    process: libc::pid_t,
    at: u64,
    shown: [u8; 16],
}

/// Pieces and bytes that one call of the system reads.
const PIECES_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 256 << 20;

impl Sight {
    /// What an offer shows, if it is there.
    pub fn of(offer: &[u8]) -> Option<Sight> {
        let (process, rest) = offer.split_first_chunk::<4>()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let shown: [u8; 16] = rest.try_into().ok()?;
        let process = libc::pid_t::try_from(u32::from_le_bytes(*process)).ok()?;
        let sight = Sight { process, at: u64::from_le_bytes(*at), shown };
        sight.read(&mut Pieces::default(), &mut []).ok().map(|()| sight)
    }

    /// Fills `to` with the pieces' next bytes.
    ///
    /// # Errors
    /// They are not there (any more).
    fn read(&self, pieces: &mut Pieces, to: &mut [u8]) -> Result<(), NetError> {
        let mut done = 0;
        loop {
            let places = pieces.take((to.len() - done).min(BYTES_AT_ONCE) as u64, PIECES_AT_ONCE);
            let len = places.iter().map(|(_, len)| *len as usize).sum::<usize>();
            if len == 0 && done < to.len() {
                return Err(NetError::Protocol("a body's pieces are shorter than it".into()));
            }
            let mut shown = [0; 16];
            if !copy(self.process, &places, &mut to[done..done + len], self.at, &mut shown) || shown != self.shown {
                return Err(NetError::Closed);
            }
            done += len;
            if done == to.len() {
                return Ok(());
            }
        }
    }
}

/// Copies `places` of a process's memory to `to`, which has their length, and what lies at `window` to `shown`, in this order. Whether
/// all of it was there.
#[cfg(target_os = "linux")]
fn copy(process: libc::pid_t, places: &[(u64, u64)], to: &mut [u8], window: u64, shown: &mut [u8; 16]) -> bool {
    let iovec = |at: u64, len: u64| libc::iovec { iov_base: at as *mut libc::c_void, iov_len: len as usize };
    let remote: Vec<libc::iovec> = places.iter().map(|(at, len)| iovec(*at, *len)).chain([iovec(window, 16)]).collect();
    let local = |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let own = [local(to), local(shown)];
    // SAFETY: the own places are exclusive borrows of initialised memory; the system checks those of the other process.
    let n =
        unsafe { libc::process_vm_readv(process, own.as_ptr(), 2, remote.as_ptr(), remote.len() as libc::c_ulong, 0) };
    usize::try_from(n).is_ok_and(|n| n == to.len() + shown.len())
}

#[cfg(not(target_os = "linux"))]
fn copy(_: libc::pid_t, _: &[(u64, u64)], _: &mut [u8], _: u64, _: &mut [u8; 16]) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(pieces: &[Vec<u8>]) -> Vec<Body> {
        pieces.iter().map(|piece| Box::new(piece.clone()) as Body).collect()
    }

    proptest! {
        #[test]
        fn pieces_are_read_in_parts_of_any_length(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..600),
            parts in proptest::collection::vec(0usize..700, 0..20),
        ) {
            let (all, window, mut lent) = (pieces.concat(), Window::new(), Lent::default());
            let list = lent.lend(body(&pieces), all.len() as u64, &Limits::default()).unwrap();
            let (mut places, bytes) = Pieces::parse(&list).unwrap();
            prop_assert_eq!(bytes, all.len() as u64);
            let sight = Sight::of(&window.offer()).unwrap();
            let mut got = Vec::new();
            for part in parts {
                let mut to = vec![0; part.min(all.len() - got.len())];
                sight.read(&mut places, &mut to).unwrap();
                got.extend(to);
            }
            prop_assert_eq!(&got[..], &all[..got.len()]);
            let mut more = vec![0; all.len() - got.len() + 1];
            prop_assert!(sight.read(&mut places, &mut more).is_err());
            prop_assert_eq!(lent.release(0).unwrap().len(), pieces.len());
            prop_assert!(lent.release(0).is_none());
        }

        #[test]
        fn any_offer_and_list_is_one_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(Sight::of(&bytes).is_none());
            if let Some((mut places, n)) = Pieces::parse(&bytes) {
                let window = Window::new();
                let sight = Sight::of(&window.offer()).unwrap();
                // Wherever that is: it is not there, or it is read.
                let _ = sight.read(&mut places, &mut vec![0; n.min(100) as usize]);
            }
        }
    }

    #[test]
    fn what_was_lent_is_not_taken_once_the_window_is_closed() {
        let (window, mut lent) = (Window::new(), Lent::default());
        let sight = Sight::of(&window.offer()).unwrap();
        let read = |list: &[u8]| sight.read(&mut Pieces::parse(list).unwrap().0, &mut [0; 3]);
        let list = lent.lend(body(&[vec![1, 2, 3]]), 3, &Limits::default()).unwrap();
        assert!(read(&list).is_ok());
        window.close();
        assert!(matches!(read(&list), Err(NetError::Closed)));
    }

    #[test]
    fn no_more_is_lent_than_may_wait() {
        let limits = Limits { outbox: 100, ..Limits::default() };
        let mut lent = Lent::default();
        assert!(lent.lend(body(&[vec![0; 60]]), 60, &limits).is_ok());
        assert!(matches!(lent.lend(body(&[vec![0; 60]]), 60, &limits), Err(NetError::TooLarge { .. })));
        drop(lent.release(0));
        assert!(lent.lend(body(&[vec![0; 60]]), 60, &limits).is_ok());
        assert_eq!(lent.next, 2);
    }
}
