//! The buffers that CUPTI fills: a fixed number, allocated once.
//!
//! CUPTI requests and returns buffers on threads of its own and, when a buffer is full, within a call of the traced
//! program: neither side may wait for the other. So a buffer's state is one atomic byte. Where no buffer is free CUPTI
//! gets none, drops the record and counts it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Bytes of a buffer: some 2,500 kernels, few enough that the rings have room for the events of one buffer.
pub(crate) const BUFFER_BYTES: usize = 512 << 10;
/// The number of buffers, 16 MiB together.
pub(crate) const N_BUFFERS: usize = 32;
/// Alignment of a buffer: records need 8 bytes; a page keeps buffers off each other's pages.
const ALIGN: usize = 4096;

/// The states of a buffer: free, lent to CUPTI, full of records, being read.
const FREE: u8 = 0;
const LENT: u8 = 1;
const FULL: u8 = 2;
const READING: u8 = 3;

/// A buffer and its state.
struct Slot {
    memory: NonNull<u8>,
    state: AtomicU8,
    /// Bytes of records, while the slot is full.
    n_valid_bytes: AtomicUsize,
    context: AtomicUsize,
    stream: AtomicU64,
}

// SAFETY: the slot owns its memory; `state`, which changes by atomic exchange, says who may use it.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

/// A fixed number of buffers for CUPTI to fill.
pub(crate) struct BufferPool {
    slots: Vec<Slot>,
    /// The number of requests for which no buffer was free.
    n_refused: AtomicU64,
    /// The number of returned buffers that had not been lent.
    n_not_lent: AtomicU64,
}

/// A buffer with records, which returns to the pool when this is dropped.
pub(crate) struct FullBuffer<'a> {
    slot: &'a Slot,
    /// The records' context, by which CUPTI counts dropped records.
    pub(crate) context: usize,
    pub(crate) stream: u32,
    n_valid_bytes: usize,
}

impl BufferPool {
    /// Allocates `n` buffers, fewer where the system has less memory.
    pub(crate) fn new(n: usize) -> BufferPool {
        let slots = (0..n).filter_map(|_| {
            // SAFETY: the layout has a size.
            let memory = NonNull::new(unsafe { alloc_zeroed(layout()) })?;
            let (state, n_valid_bytes) = (AtomicU8::new(FREE), AtomicUsize::new(0));
            Some(Slot { memory, state, n_valid_bytes, context: AtomicUsize::new(0), stream: AtomicU64::new(0) })
        });
        BufferPool { slots: slots.collect(), n_refused: AtomicU64::new(0), n_not_lent: AtomicU64::new(0) }
    }

    /// Lends CUPTI a free buffer until [`BufferPool::take_back`]; counts the request where none is free.
    pub(crate) fn lend(&self) -> Option<NonNull<u8>> {
        let slot = self.slots.iter().find(|slot| slot.exchange(FREE, LENT));
        if slot.is_none() {
            self.n_refused.fetch_add(1, Ordering::Relaxed);
        }
        slot.map(|slot| slot.memory)
    }

    /// Takes a buffer back from CUPTI; its first `n_valid_bytes` bytes are records.
    pub(crate) fn take_back(&self, buffer: *const u8, n_valid_bytes: usize, context: usize, stream: u32) {
        let slot_of_buffer = self.slots.iter().find(|slot| std::ptr::eq(slot.memory.as_ptr(), buffer));
        let Some(slot) = slot_of_buffer.filter(|slot| slot.state.load(Ordering::Relaxed) == LENT) else {
            self.n_not_lent.fetch_add(1, Ordering::Relaxed);
            return;
        };
        slot.n_valid_bytes.store(n_valid_bytes.min(BUFFER_BYTES), Ordering::Relaxed);
        slot.context.store(context, Ordering::Relaxed);
        slot.stream.store(stream.into(), Ordering::Relaxed);
        slot.exchange(LENT, FULL);
    }

    /// Takes a buffer with records to read.
    pub(crate) fn take_full(&self) -> Option<FullBuffer<'_>> {
        let slot = self.slots.iter().find(|slot| slot.exchange(FULL, READING))?;
        let (n_valid_bytes, context) =
            (slot.n_valid_bytes.load(Ordering::Relaxed), slot.context.load(Ordering::Relaxed));
        Some(FullBuffer { slot, context, stream: slot.stream.load(Ordering::Relaxed) as u32, n_valid_bytes })
    }

    /// The number of requests for which no buffer was free, and of returned buffers that had not been lent.
    pub(crate) fn error_counts(&self) -> (u64, u64) {
        (self.n_refused.load(Ordering::Relaxed), self.n_not_lent.load(Ordering::Relaxed))
    }
}

impl Slot {
    fn exchange(&self, from: u8, to: u8) -> bool {
        // Acquire and release: the thread that takes a slot sees what the previous one wrote into its memory.
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl FullBuffer<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is BUFFER_BYTES long and initialised, `n_valid_bytes` is at most that, and while the slot
        // is READING no other thread uses it.
        unsafe { std::slice::from_raw_parts(self.slot.memory.as_ptr(), self.n_valid_bytes) }
    }
}

impl Drop for FullBuffer<'_> {
    fn drop(&mut self) {
        self.slot.exchange(READING, FREE);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A lent buffer is leaked: CUPTI may still write into it.
        if self.state.load(Ordering::Acquire) != LENT {
            // SAFETY: allocated in `new` with this layout, and nobody has it.
            unsafe { dealloc(self.memory.as_ptr(), layout()) };
        }
    }
}

fn layout() -> Layout {
    const { assert!(BUFFER_BYTES.is_multiple_of(ALIGN) && ALIGN.is_power_of_two()) };
    // SAFETY: the alignment is a power of two, and the size is a multiple of it far below `isize::MAX`.
    unsafe { Layout::from_size_align_unchecked(BUFFER_BYTES, ALIGN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_go_round_and_nobody_waits() {
        let pool = BufferPool::new(2);
        let (a, b) = (pool.lend().unwrap(), pool.lend().unwrap());
        assert_eq!((pool.lend(), pool.error_counts()), (None, (1, 0)));
        assert_eq!(a.as_ptr() as usize % 8, 0);
        // SAFETY: lent to this test, and long enough.
        unsafe { b.as_ptr().write(7) };
        pool.take_back(b.as_ptr(), 1, 11, 3);
        pool.take_back(b.as_ptr(), 1, 11, 3);
        pool.take_back([0u8].as_ptr(), 1, 0, 0);
        assert_eq!(pool.error_counts(), (1, 2), "returned twice, and another's");
        {
            let full = pool.take_full().unwrap();
            assert_eq!((full.bytes(), full.context, full.stream), (&[7u8][..], 11, 3));
            assert!(pool.take_full().is_none() && pool.lend().is_none());
        }
        assert_eq!(pool.lend(), Some(b));
        pool.take_back(a.as_ptr(), usize::MAX, 0, 0);
        assert_eq!(pool.take_full().unwrap().bytes().len(), BUFFER_BYTES);
    }

    #[test]
    fn threads_never_share_a_buffer() {
        let pool = BufferPool::new(4);
        std::thread::scope(|scope| {
            for mark in 1..=3u8 {
                let pool = &pool;
                scope.spawn(move || {
                    for _ in 0..500 {
                        let Some(buffer) = pool.lend() else { continue };
                        // SAFETY: lent to this thread alone; that is what is tested.
                        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), 64) };
                        bytes.fill(mark);
                        std::thread::yield_now();
                        assert!(bytes.iter().all(|b| *b == mark));
                        pool.take_back(buffer.as_ptr(), 64, 0, 0);
                    }
                });
            }
            for _ in 0..2_000 {
                if let Some(full) = pool.take_full() {
                    assert!(full.bytes().iter().all(|b| *b == full.bytes()[0]));
                }
            }
        });
        assert_eq!(pool.error_counts().1, 0);
    }
}
