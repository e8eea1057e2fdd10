//! The lock-free protocol between producer and consumer of a ring: the atomics and their orderings, separate from files
//! and mappings, so that `tests/ring_model.rs` can run every interleaving of this code.

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

/// For the producer: the number of free slots, where `head` records were published. The ring counts as full where
/// another process stored an impossible `tail`.
#[inline]
pub(crate) fn free(head: u64, tail: &AtomicU64, capacity: u64) -> u64 {
    // Acquire: the consumer has read the records in the freed slots.
    let used = head.checked_sub(tail.load(Ordering::Acquire));
    used.and_then(|used| capacity.checked_sub(used)).unwrap_or(0)
}

/// For the producer, before it overwrites records that were not consumed: a reader that sees the new words also sees
/// that all records before them were published.
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

/// For the consumer of a flight recorder's ring, after it copied records: the first record that cannot have been
/// overwritten meanwhile. The producer writes at most `burst` records before it publishes them.
#[inline]
pub(crate) fn first_intact(head: &AtomicU64, capacity: u64, burst: u64) -> u64 {
    fence(Ordering::Acquire);
    head.load(Ordering::Relaxed).saturating_add(burst).saturating_sub(capacity)
}
