//! Memory of staged points, to be used for the next ones: fresh memory costs a page fault for every 4 KiB, and a load
//! stages each point once.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::series::Point;

/// What is kept at most, in points: 24 MB, what a poll of a dozen processors stages.
const MAX_KEPT: usize = 1 << 20;

static KEPT: Mutex<Vec<Vec<Point>>> = Mutex::new(Vec::new());
static N_KEPT: AtomicUsize = AtomicUsize::new(0);

/// No points, in memory for so many or, where they were fewer the last time, for less.
pub fn take(capacity: usize) -> Vec<Point> {
    match KEPT.lock().pop() {
        Some(points) => {
            N_KEPT.fetch_sub(points.capacity(), Ordering::Relaxed);
            points
        }
        None => Vec::with_capacity(capacity),
    }
}

/// Keeps the memory for the next one who needs it, or frees it.
pub fn give_back(mut points: Vec<Point>) {
    if N_KEPT.load(Ordering::Relaxed) + points.capacity() > MAX_KEPT {
        return;
    }
    points.clear();
    N_KEPT.fetch_add(points.capacity(), Ordering::Relaxed);
    KEPT.lock().push(points);
}

/// Frees everything: nothing more is to be read for now.
pub fn clear() {
    for points in KEPT.lock().drain(..) {
        N_KEPT.fetch_sub(points.capacity(), Ordering::Relaxed);
    }
}
