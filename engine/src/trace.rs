//! What the engine emits as events: allocations (and, from the executor, slices of ops, shards and steps).

/// Notes that `bytes` were taken from the allocator of `device`, which now has `in_use` bytes handed out.
#[inline]
pub fn alloc(_device: &str, _bytes: usize, _in_use: usize) {}

/// Notes that `bytes` went back to the allocator of `device`, which now has `in_use` bytes handed out.
#[inline]
pub fn free(_device: &str, _bytes: usize, _in_use: usize) {}
