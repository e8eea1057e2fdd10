//! How producer and consumer of a ring agree without a lock: the atomics and their orders, apart from files and
//! mappings, so that `tests/ring_model.rs` can run every interleaving of this very code.

use super::sync::{AtomicU64, Ordering, PUBLISH, fence};

/// A slot for one record: four atomic words, so that a copy taken while the producer writes is torn but not undefined.
#[repr(C)]
pub(crate) struct Slot([AtomicU64; 4]);

impl Slot {
    #[inline]
    pub(crate) fn store(&self, words: [u64; 4]) {
        for (slot_word, word) in self.0.iter().zip(words) {
            slot_word.store(word, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn load(&self) -> [u64; 4] {
        [0, 1, 2, 3].map(|i| self.0[i].load(Ordering::Relaxed))
    }
}

/// For the producer: publishes the records before `end`.
#[inline]
pub(crate) fn publish(head: &AtomicU64, end: u64) {
    head.store(end, PUBLISH);
}

/// The producer: slots that the consumer has freed, where `head` records were published. A `tail` that cannot be is
/// another process's mistake; the ring counts as full then.
#[inline]
pub(crate) fn free(head: u64, tail: &AtomicU64, capacity: u64) -> u64 {
    // Acquire: the consumer has read the records in the freed slots.
    let used = head.checked_sub(tail.load(Ordering::Acquire));
    used.and_then(|used| capacity.checked_sub(used)).unwrap_or(0)
}

/// The producer, before it writes over records that nobody has taken: whoever sees the new words sees also that all
/// before them were published.
#[inline]
pub(crate) fn before_overwriting() {
    fence(PUBLISH);
}

/// For the consumer: the number of published records.
#[inline]
pub(crate) fn published(head: &AtomicU64) -> u64 {
    head.load(Ordering::Acquire)
}

/// For the consumer: frees the slots of the records before `end`.
#[inline]
pub(crate) fn free_to(tail: &AtomicU64, end: u64) {
    // Release: the records were read before their slots are freed.
    tail.store(end, Ordering::Release);
}

/// The consumer of a ring that is written over, after it copied records: the first that was whole. At most `burst`
/// records are written before they are published.
#[inline]
pub(crate) fn first_intact(head: &AtomicU64, capacity: u64, burst: u64) -> u64 {
    fence(Ordering::Acquire);
    head.load(Ordering::Relaxed).saturating_add(burst).saturating_sub(capacity)
}
