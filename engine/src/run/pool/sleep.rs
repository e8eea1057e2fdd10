//! Where threads wait for work: an event count with a short spin before parking.
//!
//! A thread that wants to wait takes a [`Sleep::ticket`], looks for work once more, and only then
//! [`Sleep::wait`]s with the ticket. A thread that made work calls [`Sleep::notify`] after the work is
//! visible. Before it parks, the waiter announces itself and then modifies the signal (by adding 0); the notifier
//! modifies the signal (by adding 1) and then reads who announced itself. Whichever modification comes second
//! sees what the other side did before its own, so a notification can never fall between the look and the sleep.
//! When nobody waits, a notification is one atomic add and two loads. `tests/sleep_model.rs` tries all interleavings.

use std::time::Duration;

use threads::simulation::{self, Key};

use super::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, PoisonError, SPINS, spin_loop};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Sleep {
    /// Counts notifications; a ticket is a value of it.
    signal: AtomicU32,
    /// Threads that poll `signal` and need no waking, and how many of them notifications already count on:
    /// [`SPINNING`] and [`CLAIMED`] times that.
    spinning: AtomicU32,
    /// Threads that parked or are about to; the same number as `Parked::n`, readable without the lock.
    n_parked: AtomicU32,
    parked: Mutex<Parked>,
    wake: Condvar,
}

const SPINNING: u32 = 1 << 16;
const CLAIMED: u32 = 1;

#[derive(Debug)]
struct Parked {
    n: u32,
    /// Wakes granted and not yet taken, at most `n`. Any parked thread may take one: a thread that
    /// arrives in between looks for work again, and the other one stays counted in `n`.
    granted: u32,
}

/// The value of the signal that a thread saw before it looked for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl Sleep {
    pub(crate) fn new() -> Sleep {
        Sleep {
            signal: AtomicU32::new(0),
            spinning: AtomicU32::new(0),
            n_parked: AtomicU32::new(0),
            parked: Mutex::new(Parked { n: 0, granted: 0 }),
            wake: Condvar::new(),
        }
    }

    /// Take it before the last look for work.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.signal.load(Ordering::Acquire))
    }

    /// Whether something was announced since the ticket was taken.
    fn is_stale(&self, ticket: Ticket) -> bool {
        self.signal.load(Ordering::Acquire) != ticket.0
    }

    /// Waits until a notification later than the ticket: polls for about 10 microseconds, then parks.
    /// May return early; callers look again in a loop.
    pub(crate) fn wait(&self, ticket: Ticket) {
        self.wait_for(ticket, None);
    }

    /// As [`Sleep::wait`], parked for `at_most` so long.
    pub(crate) fn wait_for(&self, ticket: Ticket, at_most: Option<Duration>) {
        if let Some(seat) = simulation::seat() {
            // Nobody else runs between this look and the wait.
            if !self.is_stale(ticket) {
                seat.wait_on(Key::of(self), at_most);
            }
            return;
        }
        self.spinning.fetch_add(SPINNING, Ordering::Relaxed);
        let mut stale = false;
        for _ in 0..SPINS {
            stale = self.is_stale(ticket);
            if stale {
                break;
            }
            spin_loop();
        }
        self.stop_spinning();
        if !stale {
            self.park(ticket, at_most);
        }
    }

    fn park(&self, ticket: Ticket, at_most: Option<Duration>) {
        let mut parked = self.lock();
        parked.n += 1;
        self.n_parked.store(parked.n, Ordering::Relaxed);
        // Not a load: see the module's text.
        if self.signal.fetch_add(0, Ordering::AcqRel) != ticket.0 {
            parked.n -= 1;
            self.n_parked.store(parked.n, Ordering::Relaxed);
            return;
        }
        parked = match at_most {
            None => {
                while parked.granted == 0 {
                    parked = self.wake.wait(parked).unwrap_or_else(PoisonError::into_inner);
                }
                parked
            }
            // Waking early is allowed, and who waits has an own clock.
            Some(_) if parked.granted > 0 => parked,
            Some(at_most) => self.wake.wait_timeout(parked, at_most).unwrap_or_else(PoisonError::into_inner).0,
        };
        // Whoever leaves takes a wake where there is one: at most `n` are granted.
        parked.granted = parked.granted.saturating_sub(1);
        parked.n -= 1;
        self.n_parked.store(parked.n, Ordering::Relaxed);
    }

    /// Announces work for one thread: wakes one if none is polling.
    pub(crate) fn notify(&self) {
        self.signal.fetch_add(1, Ordering::AcqRel);
        simulation::wake(Key::of(self));
        // Each polling thread stands for one notification; further ones wake further threads.
        let claim = |counts: u32| (counts / SPINNING > counts % SPINNING).then_some(counts + CLAIMED);
        if self.spinning.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).is_err() {
            self.grant(1);
        }
    }

    fn stop_spinning(&self) {
        let leave = |counts: u32| Some(counts - SPINNING - (counts % SPINNING).min(CLAIMED));
        // Acquire: what was posted by the notification that counts on this thread. It cannot fail.
        let _ = self.spinning.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave);
    }

    /// Announces something that every waiting thread must look at.
    pub(crate) fn notify_all(&self) {
        self.signal.fetch_add(1, Ordering::AcqRel);
        simulation::wake(Key::of(self));
        self.grant(u32::MAX);
    }

    fn grant(&self, at_most: u32) {
        if self.n_parked.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut parked = self.lock();
        let n = (parked.n - parked.granted).min(at_most);
        parked.granted += n;
        drop(parked);
        match n {
            0 => {}
            1 => self.wake.notify_one(),
            _ => self.wake.notify_all(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
