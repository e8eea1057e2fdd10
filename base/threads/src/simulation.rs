//! A deterministic simulation of several processes, whose threads run one at a time, with a simulated clock.
//!
//! The threads are the system's, so that they run the production code, but only one has the turn. A thread passes the
//! turn on where it waits: the seed decides which thread is next, and timers move the clock when no thread is ready.
//! Code that depends on nothing else runs in the same order with the same seed, which [`Simulation::trace`] verifies.
//!
//! The thread that calls [`Simulation::run`] is the driver: it starts processes, kills them ([`Simulation::kill`]:
//! their threads unwind from where they wait) and pauses them ([`Simulation::pause`]). A connection between processes,
//! such as a network, is a [`Simulation::extension`] that is built from [`Seat::wait_on`], [`wake`] and
//! [`Simulation::after`].

mod world;

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use world::Key;
use world::{Timer, World};

/// Whether this program ever ran a simulation; while false, [`seat`] costs one load.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// On average, one in this number of calls of [`Seat::may_switch`] passes the turn on.
const SWITCH_ONE_IN: u64 = 4;

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// A process of a simulation; a restarted process is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process(usize);

/// The place of a thread in a simulation.
#[derive(Clone)]
pub struct Seat {
    world: Arc<World>,
    thread: usize,
    process: Process,
}

/// The calling thread's place; `None` outside of simulations.
#[inline]
#[must_use]
pub fn seat() -> Option<Seat> {
    if !IS_USED.load(Ordering::Relaxed) {
        return None;
    }
    SEAT.try_with(|seat| seat.borrow().clone()).ok().flatten()
}

/// Wakes all simulated threads that wait on `key`. Outside of simulations it does nothing.
#[inline]
pub fn wake(key: Key) {
    if let Some(seat) = seat() {
        seat.world.state.lock().wake(key);
    }
}

/// The payload with which the threads of a killed process unwind.
struct KilledPanic;

impl Seat {
    /// The simulation.
    #[must_use]
    pub fn simulation(&self) -> Simulation {
        Simulation(Arc::clone(&self.world))
    }

    /// The process that the thread belongs to.
    #[must_use]
    pub fn process(&self) -> Process {
        self.process
    }

    /// Simulated time, nanoseconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.world.state.lock().now
    }

    /// Passes the turn on until `key` is woken, for at most `timeout`. Returns whether `key` was woken. A thread of a
    /// killed process unwinds from here. A thread that unwinds already does not wait, but lets others run first, among
    /// them those of its process, which unwind, too.
    pub fn wait_on(&self, key: Key, timeout: Option<Duration>) -> bool {
        if std::thread::panicking() {
            // Not for the driver, process 0: its panic is a failed test's and ends the simulation.
            if self.process.0 != 0 {
                let mut state = self.world.state.lock();
                state.ready(self.thread);
                self.world.switch(state, self.thread);
            }
            return false;
        }
        self.check_alive();
        let mut state = self.world.state.lock();
        state.wait(self.thread, key, timeout);
        self.world.switch(state, self.thread);
        self.check_alive();
        !self.world.state.lock().has_timed_out(self.thread)
    }

    /// Waits for `time`.
    pub fn sleep(&self, time: Duration) {
        let end = self.now().saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        while !std::thread::panicking() && self.now() < end {
            let left = Duration::from_nanos((end - self.now()).max(0).unsigned_abs());
            self.wait_on(Key::Thread(self.thread), Some(left));
        }
    }

    /// Lets other threads run first at random, as the system may do anywhere. Not to be called while a lock other than
    /// [`crate::Mutex`] is held.
    pub fn may_switch(&self) {
        if std::thread::panicking() {
            return;
        }
        self.check_alive();
        let mut state = self.world.state.lock();
        if state.random(SWITCH_ONE_IN) == 0 {
            state.ready(self.thread);
            self.world.switch(state, self.thread);
            self.check_alive();
        }
    }

    /// Whether the thread's process was killed, so that no other process sees what the thread does now.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.world.state.lock().is_dead(self.process.0)
    }

    fn check_alive(&self) {
        if self.is_dead() && !std::thread::panicking() {
            resume_unwind(Box::new(KilledPanic));
        }
    }

    /// Starts a thread of the same process.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<ThreadEnd> {
        self.simulation().spawn(self.process, name, body)
    }

    /// Runs a simulated thread in the calling thread of the system.
    fn run(self, body: impl FnOnce()) {
        let (world, thread) = (Arc::clone(&self.world), self.thread);
        SEAT.set(Some(self.clone()));
        world.await_turn(thread);
        let result = catch_unwind(AssertUnwindSafe(|| {
            self.check_alive();
            body();
        }));
        let panic = result.err().filter(|payload| !payload.is::<KilledPanic>());
        let panic = panic.map(|payload| {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
        });
        world.end(thread, panic);
        SEAT.set(None);
    }
}

/// A thread of a simulation, whose end can be waited for.
pub struct ThreadEnd {
    world: Arc<World>,
    thread: usize,
}

impl std::fmt::Debug for ThreadEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ThreadHandle").field(&self.thread).finish()
    }
}

impl ThreadEnd {
    /// Waits for the thread's end. Returns `false` where the thread panicked, or the caller's own process was killed.
    pub fn join(self) -> bool {
        let Some(seat) = seat() else { return false };
        loop {
            if let Some(has_succeeded) = self.world.state.lock().outcome(self.thread) {
                return has_succeeded;
            }
            if std::thread::panicking() {
                return false;
            }
            seat.wait_on(Key::Thread(self.thread), None);
        }
    }
}

/// A simulation; clones share it.
#[derive(Clone)]
pub struct Simulation(Arc<World>);

impl Simulation {
    /// Runs a simulation that `driver` drives, in this thread. Kills the processes that still run at its end.
    ///
    /// # Panics
    /// A thread of the simulation panicked, or all threads wait and no timer is set.
    pub fn run<R>(seed: u64, driver: impl FnOnce(&Simulation) -> R) -> R {
        IS_USED.store(true, Ordering::Relaxed);
        let simulation = Simulation(Arc::new(World::new(seed)));
        let seat = Seat { world: Arc::clone(&simulation.0), thread: 0, process: Process(0) };
        SEAT.set(Some(seat));
        /// Clears the seat, also where `driver` panics.
        struct SeatGuard;
        impl Drop for SeatGuard {
            fn drop(&mut self) {
                SEAT.set(None);
            }
        }
        let _guard = SeatGuard;
        let result = driver(&simulation);
        let n_processes = simulation.0.state.lock().n_processes();
        (1..n_processes).for_each(|process| simulation.kill(Process(process)));
        simulation.0.extensions.lock().clear();
        let panics = simulation.0.state.lock().take_panics();
        assert!(panics.is_empty(), "threads panicked: {}", panics.join("; "));
        result
    }

    /// Adds a process on host `name`.
    #[must_use]
    pub fn process(&self, name: &str) -> Process {
        Process(self.0.state.lock().add_process(name))
    }

    /// The name of a process.
    #[must_use]
    pub fn name(&self, process: Process) -> Arc<str> {
        self.0.state.lock().name(process.0)
    }

    /// Starts a thread of a process.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(
        &self,
        process: Process,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<ThreadEnd> {
        let thread = self.0.state.lock().add_thread(process.0, name);
        let seat = Seat { world: Arc::clone(&self.0), thread, process };
        let started =
            std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(move || seat.run(body));
        if let Err(error) = started {
            self.0.state.lock().remove_thread(thread);
            return Err(error);
        }
        Ok(ThreadEnd { world: Arc::clone(&self.0), thread })
    }

    /// Ends a process: its threads unwind from where they are. Returns when all of them have ended.
    pub fn kill(&self, process: Process) {
        self.0.state.lock().kill(process.0);
        while self.0.state.lock().n_threads(process.0) > 0 {
            let Some(seat) = seat() else { return };
            seat.wait_on(Key::Process(process.0), None);
        }
    }

    /// Stops a process for a while.
    pub fn pause(&self, process: Process, time: Duration) {
        self.0.state.lock().pause(process.0, time);
    }

    /// Sets the shortest time of a turn; the longest is twice that. The default is a microsecond. With zero the clock
    /// advances by waits alone, as if each thread had a CPU.
    pub fn set_turn(&self, time: Duration) {
        self.0.state.lock().turn_ns = time.as_nanos() as u64;
    }

    /// A random number below `n`; the seed decides it.
    #[must_use]
    pub fn random(&self, n: u64) -> u64 {
        self.0.state.lock().random(n)
    }

    /// The number that [`crate::unique`] returns.
    pub(crate) fn unique(&self) -> u64 {
        let mut state = self.0.state.lock();
        state.constant.unwrap_or_else(|| state.random(u64::MAX))
    }

    /// Makes [`crate::unique`] always return `constant`, for tests that code which relies on unique numbers then fails.
    pub fn forget_identities(&self, constant: u64) {
        self.0.state.lock().constant = Some(constant);
    }

    /// Calls `call` after `time`, in any thread; it may wake threads, but not wait.
    pub fn after(&self, time: Duration, call: impl FnOnce() + Send + 'static) {
        self.0.state.lock().add_timer(time, Timer::Call(Box::new(call)));
    }

    /// Adds a number to the trace's hash.
    pub fn note(&self, number: u64) {
        self.0.state.lock().note(number);
    }

    /// A hash of all turns so far, with their order and times.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.0.state.lock().trace
    }

    /// The number of turns so far.
    #[must_use]
    pub fn n_turns(&self) -> u64 {
        self.0.state.lock().n_turns
    }

    /// Returns the simulation's extension of type `T`, which is created at its first use.
    #[must_use]
    pub fn extension<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut extensions = self.0.extensions.lock();
        if let Some(existing) = extensions.iter().find_map(|any| Arc::clone(any).downcast::<T>().ok()) {
            return existing;
        }
        let created = Arc::new(T::default());
        extensions.push(Arc::<T>::clone(&created));
        created
    }
}

/// The stack size of a simulated thread, bytes: there may be thousands of threads.
const STACK_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Condvar, Mutex};

    /// Threads of two processes that add to a list, with locks, conditions and sleeps.
    fn meet(seed: u64) -> (Vec<usize>, u64, i64) {
        Simulation::run(seed, |simulation| {
            let list = Arc::new((parking_lot::Mutex::new(Vec::new()), Condvar::new(), Mutex::new(())));
            for i in 0..6 {
                let process = simulation.process(["a", "b"][i % 2]);
                let list = Arc::clone(&list);
                let body = move || {
                    crate::sleep(Duration::from_millis(10 * (i as u64 / 4)));
                    let _one_at_a_time = list.2.lock();
                    crate::sleep(Duration::from_millis(1));
                    list.0.lock().push(i);
                    list.1.notify_all();
                };
                simulation.spawn(process, "adds", body).unwrap();
            }
            let mut got = list.0.lock();
            assert!(list.1.wait_while_for(&mut got, |got| got.len() < 6, Duration::from_secs(1)));
            (got.clone(), simulation.trace(), crate::now())
        })
    }

    #[test]
    fn a_seed_says_all_and_seeds_differ() {
        let first = meet(7);
        assert_eq!(meet(7), first);
        assert!(first.2 >= 11_000_000 && first.2 < 1_000_000_000, "{first:?}");
        let mut orders: Vec<_> = (0..20).map(|seed| meet(seed).0).collect();
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 5, "{orders:?}");
    }

    #[test]
    fn a_killed_process_ends_where_it_waits_and_a_paused_one_later() {
        Simulation::run(1, |simulation| {
            let done = Arc::new(AtomicBool::new(false));
            let start = |name: &str| {
                let (process, done) = (simulation.process(name), Arc::clone(&done));
                let body = move || {
                    crate::sleep(Duration::from_secs(1));
                    done.store(true, Ordering::Relaxed);
                };
                simulation.spawn(process, "sleeps", body).unwrap();
                process
            };
            let killed = start("killed");
            crate::sleep(Duration::from_millis(500));
            simulation.kill(killed);
            crate::sleep(Duration::from_secs(2));
            assert!(!done.load(Ordering::Relaxed));
            let paused = start("paused");
            crate::sleep(Duration::from_millis(500));
            simulation.pause(paused, Duration::from_secs(3));
            crate::sleep(Duration::from_secs(2));
            assert!(!done.load(Ordering::Relaxed));
            crate::sleep(Duration::from_secs(2));
            assert!(done.load(Ordering::Relaxed));
        });
    }

    #[test]
    #[should_panic(expected = "all wait: driver, waits in a")]
    fn a_wait_that_cannot_end_is_told() {
        Simulation::run(1, |simulation| {
            let never = || {
                let (lock, changed) = (parking_lot::Mutex::new(()), Condvar::new());
                changed.wait(&mut lock.lock());
            };
            simulation.spawn(simulation.process("a"), "waits", never).unwrap().join();
        });
    }

    #[test]
    #[should_panic(expected = "threads panicked: one fell")]
    fn a_thread_that_panics_is_told() {
        Simulation::run(1, |simulation| {
            assert!(!simulation.spawn(simulation.process("a"), "falls", || panic!("one fell")).unwrap().join());
        });
    }
}
