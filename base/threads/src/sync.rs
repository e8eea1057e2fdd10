//! Locks and condition variables that also work in a simulation.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::simulation::{self, Key};

/// A lock that may be held while its holder waits for something else, such as a connection's data or a step. Any other
/// lock may be `parking_lot`'s.
#[derive(Debug, Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

/// Holds the lock of a [`Mutex`] until it is dropped.
pub struct MutexGuard<'a, T> {
    /// `None` only while the guard is dropped.
    guard: Option<parking_lot::MutexGuard<'a, T>>,
    /// The key of the `Mutex`.
    key: Key,
}

impl<T> Mutex<T> {
    /// A lock of a value.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(parking_lot::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let key = Key::of(self);
        if let Some(seat) = simulation::seat() {
            loop {
                if let Some(guard) = self.try_lock() {
                    return guard;
                }
                seat.wait_on(key, None);
            }
        }
        MutexGuard { guard: Some(self.0.lock()), key }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Some(MutexGuard { guard: Some(self.0.try_lock()?), key: Key::of(self) })
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("there until it is dropped")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("there until it is dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.guard = None;
        simulation::wake(self.key);
    }
}

/// A condition variable for a `parking_lot` lock. Waits may end early: the caller checks its condition again.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// A condition variable.
    pub const fn new() -> Condvar {
        Condvar(parking_lot::Condvar::new())
    }

    /// Releases the lock, waits for a notification and takes the lock again.
    pub fn wait<T>(&self, guard: &mut parking_lot::MutexGuard<'_, T>) {
        match simulation::seat() {
            Some(seat) => parking_lot::MutexGuard::unlocked(guard, || seat.wait_on(Key::of(self), None)),
            None => {
                self.0.wait(guard);
                true
            }
        };
    }

    /// As [`Condvar::wait`], for at most `timeout`. Returns whether the wait ended before that.
    pub fn wait_for<T>(&self, guard: &mut parking_lot::MutexGuard<'_, T>, timeout: Duration) -> bool {
        match simulation::seat() {
            Some(seat) => parking_lot::MutexGuard::unlocked(guard, || seat.wait_on(Key::of(self), Some(timeout))),
            None => !self.0.wait_for(guard, timeout).timed_out(),
        }
    }

    /// Waits while `condition` is true, for at most `timeout`. Returns whether it became false.
    pub fn wait_while_for<T>(
        &self,
        guard: &mut parking_lot::MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> bool {
        let begin = crate::now();
        while condition(&mut **guard) {
            let left = timeout.saturating_sub(crate::since(begin));
            if left.is_zero() {
                return false;
            }
            self.wait_for(guard, left);
        }
        true
    }

    /// Wakes one thread; in a simulation all of them, which check their condition again.
    pub fn notify_one(&self) {
        self.0.notify_one();
        simulation::wake(Key::of(self));
    }

    /// Wakes all threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
        simulation::wake(Key::of(self));
    }
}
