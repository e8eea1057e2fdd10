//! The state of a simulation: the threads that are ready or wait, the timers and the clock.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustc_hash::FxHashMap;

/// The subject of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// An object in memory, by its address.
    At(usize),
    /// A thread's end, or its sleep.
    Thread(usize),
    /// The end of a process's threads.
    Process(usize),
}

impl Key {
    /// The key of an object in memory.
    pub fn of<T: ?Sized>(object: &T) -> Key {
        Key::At(std::ptr::from_ref(object).cast::<()>() as usize)
    }
}

pub(super) struct World {
    pub state: Mutex<State>,
    pub extensions: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// An action at a time.
pub(super) enum Timer {
    /// Ends a thread's wait.
    Timeout(usize),
    Call(Box<dyn FnOnce() + Send>),
}

/// A timer's time, nanoseconds, and its number, which orders timers of the same time.
type TimerKey = (i64, u64);

pub(super) struct State {
    /// Simulated time, nanoseconds.
    pub now: i64,
    /// A hash of all turns so far.
    pub trace: u64,
    pub n_turns: u64,
    /// The shortest time of a turn, nanoseconds; the longest is twice that.
    pub turn_ns: u64,
    /// The state of the generator of random numbers.
    random_state: u64,
    /// The number that [`crate::unique`] returns, if it was set.
    pub constant: Option<u64>,
    threads: Vec<Thread>,
    processes: Vec<Process>,
    /// The threads that do not wait and do not have the turn.
    ready: Vec<usize>,
    waiting: FxHashMap<Key, Vec<usize>>,
    timers: BTreeMap<TimerKey, Timer>,
    next_timer: u64,
    panics: Vec<String>,
    /// Whether all threads wait and no timer is set.
    is_stuck: bool,
}

struct Thread {
    name: String,
    process: usize,
    turn: Arc<Turn>,
    /// The subject of the thread's wait, and the timer that ends the wait.
    wait: Option<(Key, Option<TimerKey>)>,
    /// Whether the last wait ended by its timer.
    has_timed_out: bool,
    /// Once the thread has ended: whether it did so without a panic.
    outcome: Option<bool>,
}

struct Process {
    name: Arc<str>,
    is_dead: bool,
    /// Simulated time, nanoseconds.
    paused_until: i64,
    n_threads: usize,
}

/// Blocks a thread of the system until it has the turn.
#[derive(Default)]
struct Turn {
    /// Whether the thread has the turn.
    has_turn: Mutex<bool>,
    passed: Condvar,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut state = State {
            now: 0,
            trace: seed,
            n_turns: 0,
            turn_ns: 1000,
            random_state: seed,
            constant: None,
            threads: Vec::new(),
            processes: Vec::new(),
            ready: Vec::new(),
            waiting: FxHashMap::default(),
            timers: BTreeMap::new(),
            next_timer: 0,
            panics: Vec::new(),
            is_stuck: false,
        };
        state.add_process("driver");
        state.add_thread(0, "driver");
        state.ready.clear();
        World { state: Mutex::new(state), extensions: Mutex::default() }
    }

    /// Passes the turn on, and waits until `thread` has it again.
    pub fn switch<'a>(&'a self, state: MutexGuard<'a, State>, thread: usize) {
        self.pass_turn(state);
        self.await_turn(thread);
        let waiting = if thread == 0 { self.state.lock().stuck_threads() } else { None };
        assert!(waiting.is_none(), "all wait: {}", waiting.unwrap_or_default());
    }

    /// Runs the timers that are due and passes the turn to the next thread.
    fn pass_turn<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        loop {
            match state.take_due_timer() {
                Some(Timer::Timeout(thread)) => state.time_out(thread),
                Some(Timer::Call(call)) => {
                    drop(state);
                    call();
                    state = self.state.lock();
                }
                None => match state.pick_next() {
                    Some(next) => {
                        let turn = Arc::clone(&state.threads[next].turn);
                        drop(state);
                        *turn.has_turn.lock() = true;
                        turn.passed.notify_one();
                        return;
                    }
                    None => state.advance_clock(),
                },
            }
        }
    }

    pub fn await_turn(&self, thread: usize) {
        let turn = Arc::clone(&self.state.lock().threads[thread].turn);
        let mut has_turn = turn.has_turn.lock();
        turn.passed.wait_while(&mut has_turn, |has_turn| !*has_turn);
        *has_turn = false;
    }

    /// Ends a thread, with the message of its panic if it panicked.
    pub fn end(&self, thread: usize, panic: Option<String>) {
        let mut state = self.state.lock();
        state.threads[thread].outcome = Some(panic.is_none());
        state.panics.extend(panic);
        state.remove_thread(thread);
        self.pass_turn(state);
    }
}

impl State {
    pub fn random(&mut self, n: u64) -> u64 {
        // splitmix64
        self.random_state = self.random_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random_state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }

    /// Adds a number to the trace's hash, as rustc's FxHasher does.
    pub fn note(&mut self, number: u64) {
        self.trace = (self.trace.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    pub fn add_process(&mut self, name: &str) -> usize {
        self.processes.push(Process { name: name.into(), is_dead: false, paused_until: 0, n_threads: 0 });
        self.processes.len() - 1
    }

    pub fn n_processes(&self) -> usize {
        self.processes.len()
    }

    pub fn name(&self, process: usize) -> Arc<str> {
        Arc::clone(&self.processes[process].name)
    }

    pub fn is_dead(&self, process: usize) -> bool {
        self.processes[process].is_dead
    }

    pub fn n_threads(&self, process: usize) -> usize {
        self.processes[process].n_threads
    }

    pub fn add_thread(&mut self, process: usize, name: &str) -> usize {
        let number = self.threads.len();
        let turn = Arc::default();
        let name = name.to_owned();
        self.threads.push(Thread { name, process, turn, wait: None, has_timed_out: false, outcome: None });
        self.processes[process].n_threads += 1;
        self.ready.push(number);
        number
    }

    pub fn remove_thread(&mut self, thread: usize) {
        let process = self.threads[thread].process;
        self.ready.retain(|ready_thread| *ready_thread != thread);
        self.threads[thread].outcome.get_or_insert(false);
        self.processes[process].n_threads -= 1;
        self.wake(Key::Thread(thread));
        self.wake(Key::Process(process));
    }

    /// Whether a thread ended without a panic; `None` while it runs.
    pub fn outcome(&self, thread: usize) -> Option<bool> {
        self.threads[thread].outcome
    }

    pub fn has_timed_out(&self, thread: usize) -> bool {
        self.threads[thread].has_timed_out
    }

    pub fn take_panics(&mut self) -> Vec<String> {
        std::mem::take(&mut self.panics)
    }

    pub fn add_timer(&mut self, delay: Duration, timer: Timer) -> TimerKey {
        let delay_ns = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
        let key = (self.now.saturating_add(delay_ns), self.next_timer);
        self.next_timer += 1;
        self.timers.insert(key, timer);
        key
    }

    /// Makes a thread wait on `key`, for at most `timeout`.
    pub fn wait(&mut self, thread: usize, key: Key, timeout: Option<Duration>) {
        let timer = timeout.map(|timeout| self.add_timer(timeout, Timer::Timeout(thread)));
        self.threads[thread].wait = Some((key, timer));
        self.threads[thread].has_timed_out = false;
        self.waiting.entry(key).or_default().push(thread);
    }

    pub fn wake(&mut self, key: Key) {
        for thread in self.waiting.remove(&key).unwrap_or_default() {
            if let Some((_, Some(timer))) = self.threads[thread].wait.take() {
                self.timers.remove(&timer);
            }
            self.ready.push(thread);
        }
    }

    pub fn ready(&mut self, thread: usize) {
        self.ready.push(thread);
    }

    fn time_out(&mut self, thread: usize) {
        self.threads[thread].has_timed_out = true;
        self.stop_waiting(thread);
    }

    fn stop_waiting(&mut self, thread: usize) {
        let Some((key, timer)) = self.threads[thread].wait.take() else { return };
        if let Some(timer) = timer {
            self.timers.remove(&timer);
        }
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.retain(|waiting_thread| *waiting_thread != thread);
            if waiting.is_empty() {
                self.waiting.remove(&key);
            }
        }
        self.ready.push(thread);
    }

    pub fn kill(&mut self, process: usize) {
        self.processes[process].is_dead = true;
        self.processes[process].paused_until = 0;
        (0..self.threads.len())
            .filter(|thread| self.threads[*thread].process == process)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|thread| self.stop_waiting(thread));
    }

    pub fn pause(&mut self, process: usize, time: Duration) {
        let time_ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        self.processes[process].paused_until = self.now.saturating_add(time_ns);
    }

    /// Removes and returns the first timer, if it is due.
    fn take_due_timer(&mut self) -> Option<Timer> {
        let first = self.timers.first_entry()?;
        (first.key().0 <= self.now).then(|| first.remove())
    }

    /// Picks the thread that gets the next turn; `None` where no thread can run now.
    fn pick_next(&mut self) -> Option<usize> {
        let can_run = |thread: &usize| self.processes[self.threads[*thread].process].paused_until <= self.now;
        let n = self.ready.iter().filter(|thread| can_run(thread)).count();
        if n == 0 {
            return None;
        }
        let ready_idx = {
            // `random` borrows the entire state, so `can_run` cannot live across the call.
            let nth = self.random(n as u64) as usize;
            let can_run = |thread: &usize| self.processes[self.threads[*thread].process].paused_until <= self.now;
            (0..self.ready.len()).filter(|idx| can_run(&self.ready[*idx])).nth(nth)?
        };
        let thread = self.ready.swap_remove(ready_idx);
        self.now += (self.turn_ns + self.random(self.turn_ns)) as i64;
        self.n_turns += 1;
        self.note(thread as u64 ^ (self.now as u64).rotate_left(20));
        Some(thread)
    }

    /// Advances the clock to the next timer or the end of a pause. Where there is neither, wakes the driver, which
    /// panics.
    fn advance_clock(&mut self) {
        let pause_ends = self.ready.iter().map(|thread| self.processes[self.threads[*thread].process].paused_until);
        let next = self.timers.first_key_value().map(|((at, _), _)| *at).into_iter().chain(pause_ends).min();
        match next {
            Some(at) => self.now = self.now.max(at),
            None => {
                self.is_stuck = true;
                self.stop_waiting(0);
            }
        }
    }

    /// The names of the waiting threads, if all threads wait and nothing can wake them.
    fn stuck_threads(&self) -> Option<String> {
        let describe = |thread: &Thread| match thread.process {
            0 => thread.name.clone(),
            process => format!("{} in {}", thread.name, self.processes[process].name),
        };
        let names = self.threads.iter().filter(|thread| thread.outcome.is_none()).map(describe);
        self.is_stuck.then(|| names.collect::<Vec<_>>().join(", "))
    }
}
