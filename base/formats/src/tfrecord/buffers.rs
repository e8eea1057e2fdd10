//! Memory of blocks that were decoded, to be used for the next ones: fresh memory costs a page fault for every 4 KiB.

use std::sync::{Mutex, PoisonError};

/// Buffers that are kept: more than all processors decode at a time, in a process that reads logs all the time.
const MAX_KEPT: usize = 32;
/// Larger ones, of large records, go back to the system, and small ones are not worth a place.
const SIZES: std::ops::RangeInclusive<usize> = 128 << 10..=2 << 20;

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// An empty buffer of at least this capacity.
pub fn take(capacity: usize) -> Vec<u8> {
    let mut buffer = KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
    buffer.reserve_exact(capacity);
    buffer
}

/// Keeps a buffer for the next one who needs it, or frees it.
pub fn give_back(mut buffer: Vec<u8>) {
    if !SIZES.contains(&buffer.capacity()) {
        return;
    }
    buffer.clear();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() < MAX_KEPT {
        kept.push(buffer);
    }
}
