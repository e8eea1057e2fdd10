//! A pool of the buffers of decoded blocks: newly allocated memory would cost a page fault for every 4 KiB.

use std::sync::{Mutex, PoisonError};

/// The most buffers in the pool: more than all CPUs decode at a time.
const MAX_POOLED: usize = 32;
/// The capacities of pooled buffers, bytes. Larger buffers, of large records, are freed at once to bound memory;
/// smaller ones are cheap to allocate.
const SIZES: std::ops::RangeInclusive<usize> = 128 << 10..=2 << 20;

static POOL: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// An empty buffer of at least this capacity.
pub fn take(capacity: usize) -> Vec<u8> {
    let mut buffer = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
    buffer.reserve_exact(capacity);
    buffer
}

/// Returns a buffer to the pool, or frees it.
pub fn recycle(mut buffer: Vec<u8>) {
    if !SIZES.contains(&buffer.capacity()) {
        return;
    }
    buffer.clear();
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if pool.len() < MAX_POOLED {
        pool.push(buffer);
    }
}
