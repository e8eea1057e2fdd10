//! Locks that a panic does not poison.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks where the lock may never be released, as a panicking thread may hold it itself. Other threads release it soon:
/// they have 20 ms.
pub(crate) fn lock_soon<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for attempt in 0..20 {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    None
}
