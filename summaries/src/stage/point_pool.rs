//! Reuses the memory of staged points: fresh memory costs a page fault for every 4 KiB, and loading stages each point
//! once.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::series::Point;

/// The most points for which memory is pooled: 24 MiB, which a poll of a dozen processors stages.
const MAX_POOLED_POINTS: usize = 1 << 20;

static POOL: Mutex<Vec<Vec<Point>>> = Mutex::new(Vec::new());
static N_POOLED_POINTS: AtomicUsize = AtomicUsize::new(0);

/// An empty vector from the pool, of any capacity, or a new one of this capacity.
pub fn take(capacity: usize) -> Vec<Point> {
    match POOL.lock().pop() {
        Some(points) => {
            N_POOLED_POINTS.fetch_sub(points.capacity(), Ordering::Relaxed);
            points
        }
        None => Vec::with_capacity(capacity),
    }
}

/// Returns memory to the pool, or frees it where the pool is full.
pub fn recycle(mut points: Vec<Point>) {
    if N_POOLED_POINTS.load(Ordering::Relaxed) + points.capacity() > MAX_POOLED_POINTS {
        return;
    }
    points.clear();
    N_POOLED_POINTS.fetch_add(points.capacity(), Ordering::Relaxed);
    POOL.lock().push(points);
}

/// Frees the pool, when there is nothing more to read for now.
pub fn clear() {
    for points in POOL.lock().drain(..) {
        N_POOLED_POINTS.fetch_sub(points.capacity(), Ordering::Relaxed);
    }
}
