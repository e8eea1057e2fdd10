//! A deterministic simulation: the threads of several processes, one at a time, with a clock of their own.
//!
//! The threads are the system's, so the code below is what runs in production, but only one of them has its turn. It
//! gives the turn away where it waits: a seed says who is next, timers move the clock when nobody is ready. All that
//! depends on nothing else happens again with the same seed, and [`Simulation::trace`] shows whether it did.
//!
//! The thread that calls [`Simulation::run`] drives: it starts processes, kills them ([`Simulation::kill`]: their
//! threads unwind from where they wait) and stops them for a while ([`Simulation::pause`]). What joins processes, as a
//! network, is an [`Simulation::extension`] that is made of [`Seat::wait_on`], [`wake`] and [`Simulation::after`].

mod world;

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use world::Key;
use world::{Timer, World};

/// Whether this program ever simulated: those that do not pay for one load.
static IS_USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// A process of a simulation: one life of it.
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

/// Wakes all simulated threads that wait on something. Outside of simulations it does nothing.
#[inline]
pub fn wake(key: Key) {
    if let Some(seat) = seat() {
        seat.world.state.lock().wake(key);
    }
}

/// What a thread of a killed process unwinds with.
struct Killed;

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

    /// Gives the turn away until somebody wakes what waits on `key`, or for `at_most` so long; whether it was woken. A
    /// process that is killed unwinds from here. What unwinds already does not wait: others go on, among them those of
    /// its process, which unwind, too.
    pub fn wait_on(&self, key: Key, at_most: Option<Duration>) -> bool {
        if std::thread::panicking() {
            // The driver's panic is a test's, which ends the simulation.
            if self.process.0 != 0 {
                let mut state = self.world.state.lock();
                state.ready(self.thread);
                self.world.switch(state, self.thread);
            }
            return false;
        }
        self.check_alive();
        let mut state = self.world.state.lock();
        state.wait(self.thread, key, at_most);
        self.world.switch(state, self.thread);
        self.check_alive();
        !self.world.state.lock().was_late(self.thread)
    }

    /// Lets time pass.
    pub fn sleep(&self, time: Duration) {
        let end = self.now().saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        while !std::thread::panicking() && self.now() < end {
            let left = Duration::from_nanos((end - self.now()).max(0).unsigned_abs());
            self.wait_on(Key::Thread(self.thread), Some(left));
        }
    }

    /// A place where others may come first, as it is everywhere where threads are the system's. Not to be called with a
    /// lock held that is not [`crate::Mutex`].
    pub fn may_switch(&self) {
        if std::thread::panicking() {
            return;
        }
        self.check_alive();
        let mut state = self.world.state.lock();
        if state.random(4) == 0 {
            state.ready(self.thread);
            self.world.switch(state, self.thread);
            self.check_alive();
        }
    }

    /// Whether the thread's process was killed: what it does now nobody sees.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.world.state.lock().is_dead(self.process.0)
    }

    fn check_alive(&self) {
        if self.is_dead() && !std::thread::panicking() {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Starts a thread of the same process.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<Ended> {
        self.simulation().spawn(self.process, name, body)
    }

    /// What a thread of the system does for one of the simulation.
    fn be(self, body: impl FnOnce()) {
        let (world, thread) = (Arc::clone(&self.world), self.thread);
        SEAT.set(Some(self.clone()));
        world.await_turn(thread);
        let result = catch_unwind(AssertUnwindSafe(|| {
            self.check_alive();
            body();
        }));
        let failed = result.err().filter(|payload| !payload.is::<Killed>());
        let failed = failed.map(|payload| {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
        });
        world.end(thread, failed);
        SEAT.set(None);
    }
}

/// A thread of a simulation, to be waited for.
pub struct Ended {
    world: Arc<World>,
    thread: usize,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ended").field(&self.thread).finish()
    }
}

impl Ended {
    /// Waits for the end; `false` where the thread panicked, or is not waited for as the caller's process was killed.
    pub fn wait(self) -> bool {
        let Some(seat) = seat() else { return false };
        loop {
            if let Some(is_well) = self.world.state.lock().ended(self.thread) {
                return is_well;
            }
            if std::thread::panicking() {
                return false;
            }
            seat.wait_on(Key::Thread(self.thread), None);
        }
    }
}

/// A simulation; clones are the same one.
#[derive(Clone)]
pub struct Simulation(Arc<World>);

impl Simulation {
    /// Has `drive` run a simulation in this thread. All processes that are left at its end are killed.
    ///
    /// # Panics
    /// A thread of the simulation panicked, or all wait for something that cannot come.
    pub fn run<R>(seed: u64, drive: impl FnOnce(&Simulation) -> R) -> R {
        IS_USED.store(true, Ordering::Relaxed);
        let simulation = Simulation(Arc::new(World::new(seed)));
        let driver = Seat { world: Arc::clone(&simulation.0), thread: 0, process: Process(0) };
        SEAT.set(Some(driver));
        /// Also where `drive` panics.
        struct Leaving;
        impl Drop for Leaving {
            fn drop(&mut self) {
                SEAT.set(None);
            }
        }
        let _leaving = Leaving;
        let result = drive(&simulation);
        let n = simulation.0.state.lock().n_processes();
        (1..n).for_each(|process| simulation.kill(Process(process)));
        simulation.0.extensions.lock().clear();
        let panics = simulation.0.state.lock().take_panics();
        assert!(panics.is_empty(), "threads panicked: {}", panics.join("; "));
        result
    }

    /// A new process, called `name`: a host, or a life of one.
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
    pub fn spawn(&self, process: Process, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<Ended> {
        let thread = self.0.state.lock().add_thread(process.0, name);
        let seat = Seat { world: Arc::clone(&self.0), thread, process };
        let started = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(move || seat.be(body));
        if let Err(error) = started {
            self.0.state.lock().remove_thread(thread);
            return Err(error);
        }
        Ok(Ended { world: Arc::clone(&self.0), thread })
    }

    /// Ends a process: its threads unwind from where they are. Returns when all have.
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

    /// The time that each turn takes, and up to as much again; at first a microsecond. With zero the clock measures
    /// waits alone, as if each thread had a processor.
    pub fn set_turn(&self, time: Duration) {
        self.0.state.lock().turn_ns = time.as_nanos() as u64;
    }

    /// A number below `n`.
    #[must_use]
    pub fn random(&self, n: u64) -> u64 {
        self.0.state.lock().random(n)
    }

    /// The number that [`crate::unique`] gives.
    pub(crate) fn unique(&self) -> u64 {
        let mut state = self.0.state.lock();
        state.constant.unwrap_or_else(|| state.random(u64::MAX))
    }

    /// Has [`crate::unique`] give one number only: what it is for must then go wrong.
    pub fn forget_identities(&self, constant: u64) {
        self.0.state.lock().constant = Some(constant);
    }

    /// Has `call` called when so much time has passed, in any thread; it may wake others, but not wait.
    pub fn after(&self, time: Duration, call: impl FnOnce() + Send + 'static) {
        self.0.state.lock().add_timer(time, Timer::Call(Box::new(call)));
    }

    /// Makes something part of the trace.
    pub fn note(&self, what: u64) {
        self.0.state.lock().note(what);
    }

    /// A hash of all that happened so far, in its order and with its times.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.0.state.lock().trace
    }

    /// How often the turn went from thread to thread.
    #[must_use]
    pub fn n_turns(&self) -> u64 {
        self.0.state.lock().n_turns
    }

    /// Returns a type's extension of the simulation, made at its first use.
    #[must_use]
    pub fn extension<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut all = self.0.extensions.lock();
        if let Some(found) = all.iter().find_map(|one| Arc::clone(one).downcast::<T>().ok()) {
            return found;
        }
        let made = Arc::new(T::default());
        all.push(Arc::<T>::clone(&made));
        made
    }
}

/// Of a simulated thread: there may be thousands.
const STACK: usize = 1 << 20;

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
            simulation.spawn(simulation.process("a"), "waits", never).unwrap().wait();
        });
    }

    #[test]
    #[should_panic(expected = "threads panicked: one fell")]
    fn a_thread_that_panics_is_told() {
        Simulation::run(1, |simulation| {
            assert!(!simulation.spawn(simulation.process("a"), "falls", || panic!("one fell")).unwrap().wait());
        });
    }
}
