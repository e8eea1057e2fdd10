//! The receiver's side: bodies that are read from the other end's memory.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::NetError;
use crate::frame::{Frame, MEMORY_RELEASE};
use crate::outbox::Outbox;
use crate::transport::Source;

/// A body that lies in the other end's memory.
pub struct Borrowed {
    pieces: Pieces,
    memory: Arc<RemoteMemory>,
    outbox: Outbox,
}

impl Borrowed {
    /// From the list that came; with it the bytes that it has. `None` where that is no list.
    pub fn parse(list: &[u8], memory: &Arc<RemoteMemory>, outbox: &Outbox) -> Option<(Borrowed, u64)> {
        let (pieces, bytes) = Pieces::parse(list)?;
        Some((Borrowed { pieces, memory: Arc::clone(memory), outbox: outbox.clone() }, bytes))
    }
}

impl Source for Borrowed {
    fn read(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        self.memory.read(&mut self.pieces, to)
    }

    fn done(self: Box<Self>) -> Result<(), NetError> {
        // Where the connection ended nobody waits for it.
        let _ = self.outbox.post(Frame::message(MEMORY_RELEASE, self.pieces.ticket.to_le_bytes().to_vec()));
        Ok(())
    }
}

/// Pieces in another process's memory, of which some were read.
#[derive(Default)]
pub(super) struct Pieces {
    ticket: u64,
    places: VecDeque<(u64, u64)>,
}

impl Pieces {
    /// From the list that came; with them the bytes that they have.
    pub(super) fn parse(list: &[u8]) -> Option<(Pieces, u64)> {
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
pub struct RemoteMemory {
    process: libc::pid_t,
    at: u64,
    shown: [u8; 16],
}

/// Pieces and bytes that one call of the system reads.
const PIECES_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 256 << 20;

impl RemoteMemory {
    /// What an offer shows, if it is there.
    pub fn of(offer: &[u8]) -> Option<RemoteMemory> {
        let (process, rest) = offer.split_first_chunk::<4>()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let shown: [u8; 16] = rest.try_into().ok()?;
        let process = libc::pid_t::try_from(u32::from_le_bytes(*process)).ok()?;
        let memory = RemoteMemory { process, at: u64::from_le_bytes(*at), shown };
        memory.read(&mut Pieces::default(), &mut []).ok().map(|()| memory)
    }

    /// Fills `to` with the pieces' next bytes.
    ///
    /// # Errors
    /// They are not there (any more).
    pub(super) fn read(&self, pieces: &mut Pieces, to: &mut [u8]) -> Result<(), NetError> {
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
/// everything was there.
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
