//! Locks and conditions that threads of a simulation can wait for, too.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::simulation::{self, Key};

/// A lock that may be held while its holder waits for something else: for data of a connection, for a step. For all
/// others `parking_lot`'s does.
#[derive(Debug, Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

/// Has the lock until it is dropped.
pub struct MutexGuard<'a, T> {
    guard: Option<parking_lot::MutexGuard<'a, T>>,
    of: Key,
}

impl<T> Mutex<T> {
    /// A lock of a value.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(parking_lot::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let of = Key::of(self);
        if let Some(seat) = simulation::seat() {
            loop {
                if let Some(found) = self.try_lock() {
                    return found;
                }
                seat.wait_on(of, None);
            }
        }
        MutexGuard { guard: Some(self.0.lock()), of }
    }

    /// The lock, where nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Some(MutexGuard { guard: Some(self.0.try_lock()?), of: Key::of(self) })
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
        simulation::wake(self.of);
    }
}

/// A condition variable for a `parking_lot` lock. They may wake early: look again.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// One where nobody waits.
    pub const fn new() -> Condvar {
        Condvar(parking_lot::Condvar::new())
    }

    /// Waits, without the lock, until somebody notifies.
    pub fn wait<T>(&self, guard: &mut parking_lot::MutexGuard<'_, T>) {
        match simulation::seat() {
            Some(seat) => parking_lot::MutexGuard::unlocked(guard, || seat.wait_on(Key::of(self), None)),
            None => {
                self.0.wait(guard);
                true
            }
        };
    }

    /// As [`Condvar::wait`], for `at_most` so long; whether somebody notified.
    pub fn wait_for<T>(&self, guard: &mut parking_lot::MutexGuard<'_, T>, at_most: Duration) -> bool {
        match simulation::seat() {
            Some(seat) => parking_lot::MutexGuard::unlocked(guard, || seat.wait_on(Key::of(self), Some(at_most))),
            None => !self.0.wait_for(guard, at_most).timed_out(),
        }
    }

    /// Waits until `goes_on` is false, for `at_most` so long; whether it became so.
    pub fn wait_while_for<T>(
        &self,
        guard: &mut parking_lot::MutexGuard<'_, T>,
        mut goes_on: impl FnMut(&mut T) -> bool,
        at_most: Duration,
    ) -> bool {
        let begin = crate::now();
        while goes_on(&mut **guard) {
            let left = at_most.saturating_sub(crate::since(begin));
            if left.is_zero() {
                return false;
            }
            self.wait_for(guard, left);
        }
        true
    }

    /// Wakes one thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
        simulation::wake(Key::of(self));
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.0.notify_all();
        simulation::wake(Key::of(self));
    }
}
