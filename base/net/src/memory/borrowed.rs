//! The receiver's side: bodies that are read from the sender's memory.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::NetError;
use crate::frame::{Frame, MEMORY_RELEASE};
use crate::memory::CANARY_BYTES;
use crate::outbox::Outbox;
use crate::transport::BodySource;

/// A body that lies in the sender's memory.
pub struct BorrowedBody {
    pieces: Pieces,
    memory: Arc<RemoteMemory>,
    outbox: Outbox,
}

impl BorrowedBody {
    /// Parses a list of pieces; returns the body with its length in bytes. `None` where `list` is malformed.
    pub fn parse(list: &[u8], memory: &Arc<RemoteMemory>, outbox: &Outbox) -> Option<(BorrowedBody, u64)> {
        let (pieces, bytes) = Pieces::parse(list)?;
        Some((BorrowedBody { pieces, memory: Arc::clone(memory), outbox: outbox.clone() }, bytes))
    }
}

impl BodySource for BorrowedBody {
    fn read(&mut self, to: &mut [u8]) -> Result<(), NetError> {
        self.memory.read(&mut self.pieces, to)
    }

    fn release(self: Box<Self>) -> Result<(), NetError> {
        // Where the connection ended, the sender dropped the body already and needs no release.
        let _ = self.outbox.post(Frame::message(MEMORY_RELEASE, self.pieces.ticket.to_le_bytes().to_vec()));
        Ok(())
    }
}

/// A range of another process's memory.
struct MemoryRange {
    address: u64,
    bytes: u64,
}

/// The pieces of a body that are yet to be read.
#[derive(Default)]
pub(super) struct Pieces {
    ticket: u64,
    ranges: VecDeque<MemoryRange>,
}

impl Pieces {
    /// Parses a list of pieces; returns them with their length in bytes. `None` where `list` is malformed.
    pub(super) fn parse(list: &[u8]) -> Option<(Pieces, u64)> {
        let (ticket, rest) = list.split_first_chunk::<8>()?;
        let (words, []) = rest.as_chunks::<8>() else { return None };
        let (pairs, []) = words.as_chunks::<2>() else { return None };
        let range = |[address, bytes]: &[[u8; 8]; 2]| MemoryRange {
            address: u64::from_le_bytes(*address),
            bytes: u64::from_le_bytes(*bytes),
        };
        let ranges: VecDeque<MemoryRange> = pairs.iter().map(range).collect();
        let bytes = ranges.iter().try_fold(0u64, |sum, range| sum.checked_add(range.bytes))?;
        Some((Pieces { ticket: u64::from_le_bytes(*ticket), ranges }, bytes))
    }

    /// Removes the next `bytes` and returns their ranges; fewer bytes where these have more than `max_ranges` ranges.
    fn take_front(&mut self, mut bytes: u64, max_ranges: usize) -> Vec<MemoryRange> {
        let mut ranges = Vec::new();
        while bytes > 0 && ranges.len() < max_ranges {
            let Some(front) = self.ranges.front_mut() else { break };
            let n = bytes.min(front.bytes);
            ranges.push(MemoryRange { address: front.address, bytes: n });
            (front.address, front.bytes, bytes) = (front.address.saturating_add(n), front.bytes - n, bytes - n);
            if front.bytes == 0 {
                self.ranges.pop_front();
            }
        }
        ranges
    }
}

/// The memory of another process, which this one can read while the canary there is unchanged.
pub struct RemoteMemory {
    process: libc::pid_t,
    canary_address: u64,
    canary: [u8; CANARY_BYTES],
}

/// Ranges that one system call reads, at most: with the canary's they stay below Linux's limit of 1,024.
const MAX_RANGES_PER_CALL: usize = 256;
/// Bytes that one system call reads, at most: the kernel reads no more than 2 GiB at once.
const MAX_BYTES_PER_CALL: usize = 256 << 20;

impl RemoteMemory {
    /// Parses an offer. `None` where it is malformed, or the canary cannot be read at the address that it names.
    pub fn from_offer(offer: &[u8]) -> Option<RemoteMemory> {
        let (process, rest) = offer.split_first_chunk::<4>()?;
        let (canary_address, rest) = rest.split_first_chunk::<8>()?;
        let canary = rest.try_into().ok()?;
        let process = libc::pid_t::try_from(u32::from_le_bytes(*process)).ok()?;
        let memory = RemoteMemory { process, canary_address: u64::from_le_bytes(*canary_address), canary };
        // A read of nothing but the canary.
        memory.read(&mut Pieces::default(), &mut []).ok().map(|()| memory)
    }

    /// Fills `to` with the pieces' next bytes.
    ///
    /// # Errors
    /// [`NetError::Protocol`] where the pieces have fewer bytes than `to`; [`NetError::Closed`] where the memory cannot
    /// be read, or is not lent any more.
    pub(super) fn read(&self, pieces: &mut Pieces, to: &mut [u8]) -> Result<(), NetError> {
        let mut filled = 0;
        loop {
            let mut ranges = pieces.take_front((to.len() - filled).min(MAX_BYTES_PER_CALL) as u64, MAX_RANGES_PER_CALL);
            let n = ranges.iter().map(|range| range.bytes as usize).sum::<usize>();
            if n == 0 && filled < to.len() {
                return Err(NetError::Protocol("a body's pieces are shorter than it".into()));
            }
            // The canary comes last: unchanged, it proves that the pieces were still lent when they were copied.
            ranges.push(MemoryRange { address: self.canary_address, bytes: CANARY_BYTES as u64 });
            let mut canary = [0; CANARY_BYTES];
            if !copy(self.process, &ranges, &mut to[filled..filled + n], &mut canary) || canary != self.canary {
                return Err(NetError::Closed);
            }
            filled += n;
            if filled == to.len() {
                return Ok(());
            }
        }
    }
}

/// Copies `ranges` of a process's memory, in order, to `body` and then `canary`, which together have their length.
/// Returns whether every byte was copied.
#[cfg(target_os = "linux")]
fn copy(process: libc::pid_t, ranges: &[MemoryRange], body: &mut [u8], canary: &mut [u8; CANARY_BYTES]) -> bool {
    let remote_iovec = |range: &MemoryRange| libc::iovec {
        iov_base: range.address as *mut libc::c_void,
        iov_len: range.bytes as usize,
    };
    let remote: Vec<libc::iovec> = ranges.iter().map(remote_iovec).collect();
    let local_iovec = |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let local = [local_iovec(body), local_iovec(canary)];
    let (n_local, n_remote) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
    // SAFETY: the local ranges are exclusive borrows of initialised memory; the kernel checks the remote ones.
    let n = unsafe { libc::process_vm_readv(process, local.as_ptr(), n_local, remote.as_ptr(), n_remote, 0) };
    usize::try_from(n).is_ok_and(|n| n == body.len() + canary.len())
}

#[cfg(not(target_os = "linux"))]
fn copy(_: libc::pid_t, _: &[MemoryRange], _: &mut [u8], _: &mut [u8; CANARY_BYTES]) -> bool {
    false
}
