//! Who runs, who waits, and what time it is.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustc_hash::FxHashMap;

/// The subject of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// Something in memory, by its address.
    At(usize),
    /// A thread's end, or its sleep.
    Thread(usize),
    /// The end of a process's threads.
    Process(usize),
}

impl Key {
    /// The key of what lies there.
    pub fn of<T: ?Sized>(what: &T) -> Key {
        Key::At(std::ptr::from_ref(what).cast::<()>() as usize)
    }
}

pub(super) struct World {
    pub state: Mutex<State>,
    pub extensions: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// An action at a time.
pub(super) enum Timer {
    /// A thread has waited long enough.
    Late(usize),
    Call(Box<dyn FnOnce() + Send>),
}

/// When, and which of those at that time.
type At = (i64, u64);

pub(super) struct State {
    pub now: i64,
    pub trace: u64,
    pub n_turns: u64,
    /// The time of a turn, nanoseconds: this and up to as much again.
    pub turn_ns: u64,
    random: u64,
    /// In place of numbers that nobody else has.
    pub constant: Option<u64>,
    threads: Vec<Thread>,
    processes: Vec<Process>,
    /// Threads that could run.
    ready: Vec<usize>,
    waiting: FxHashMap<Key, Vec<usize>>,
    timers: BTreeMap<At, Timer>,
    next_timer: u64,
    panics: Vec<String>,
    is_stuck: bool,
}

struct Thread {
    name: String,
    process: usize,
    turn: Arc<Turn>,
    waits: Option<(Key, Option<At>)>,
    /// Whether its last wait ended by its timer.
    was_late: bool,
    ended: Option<bool>,
}

struct Process {
    name: Arc<str>,
    is_dead: bool,
    paused_until: i64,
    n_threads: usize,
}

/// Where a thread of the system waits for its turn.
#[derive(Default)]
struct Turn {
    has: Mutex<bool>,
    given: Condvar,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut state = State {
            now: 0,
            trace: seed,
            n_turns: 0,
            turn_ns: 1000,
            random: seed,
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

    /// Gives the turn to who is next, and waits until it comes back to `own`.
    pub fn switch<'a>(&'a self, state: MutexGuard<'a, State>, own: usize) {
        self.give(state);
        self.await_turn(own);
        let stuck = if own == 0 { self.state.lock().told_stuck() } else { None };
        assert!(stuck.is_none(), "all wait: {}", stuck.unwrap_or_default());
    }

    /// Gives the turn to who is next.
    fn give<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        loop {
            match state.due() {
                Some(Timer::Late(thread)) => state.late(thread),
                Some(Timer::Call(call)) => {
                    drop(state);
                    call();
                    state = self.state.lock();
                }
                None => match state.next() {
                    Some(next) => {
                        let turn = Arc::clone(&state.threads[next].turn);
                        drop(state);
                        *turn.has.lock() = true;
                        turn.given.notify_one();
                        return;
                    }
                    None => state.let_time_pass(),
                },
            }
        }
    }

    pub fn await_turn(&self, thread: usize) {
        let turn = Arc::clone(&self.state.lock().threads[thread].turn);
        let mut has = turn.has.lock();
        turn.given.wait_while(&mut has, |has| !*has);
        *has = false;
    }

    /// A thread ended, `failed` with what it says.
    pub fn end(&self, thread: usize, failed: Option<String>) {
        let mut state = self.state.lock();
        state.threads[thread].ended = Some(failed.is_none());
        state.panics.extend(failed);
        state.remove_thread(thread);
        self.give(state);
    }
}

impl State {
    pub fn random(&mut self, n: u64) -> u64 {
        // splitmix64
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }

    pub fn note(&mut self, what: u64) {
        self.trace = (self.trace.rotate_left(5) ^ what).wrapping_mul(0x517c_c1b7_2722_0a95);
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
        self.threads.push(Thread { name, process, turn, waits: None, was_late: false, ended: None });
        self.processes[process].n_threads += 1;
        self.ready.push(number);
        number
    }

    pub fn remove_thread(&mut self, thread: usize) {
        let process = self.threads[thread].process;
        self.ready.retain(|ready| *ready != thread);
        self.threads[thread].ended.get_or_insert(false);
        self.processes[process].n_threads -= 1;
        self.wake(Key::Thread(thread));
        self.wake(Key::Process(process));
    }

    pub fn ended(&self, thread: usize) -> Option<bool> {
        self.threads[thread].ended
    }

    pub fn was_late(&self, thread: usize) -> bool {
        self.threads[thread].was_late
    }

    pub fn take_panics(&mut self) -> Vec<String> {
        std::mem::take(&mut self.panics)
    }

    pub fn add_timer(&mut self, after: Duration, timer: Timer) -> At {
        let after = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
        let at = (self.now.saturating_add(after), self.next_timer);
        self.next_timer += 1;
        self.timers.insert(at, timer);
        at
    }

    /// A thread begins to wait.
    pub fn wait(&mut self, thread: usize, key: Key, at_most: Option<Duration>) {
        let timer = at_most.map(|at_most| self.add_timer(at_most, Timer::Late(thread)));
        self.threads[thread].waits = Some((key, timer));
        self.threads[thread].was_late = false;
        self.waiting.entry(key).or_default().push(thread);
    }

    pub fn wake(&mut self, key: Key) {
        for thread in self.waiting.remove(&key).unwrap_or_default() {
            if let Some((_, Some(timer))) = self.threads[thread].waits.take() {
                self.timers.remove(&timer);
            }
            self.ready.push(thread);
        }
    }

    pub fn ready(&mut self, thread: usize) {
        self.ready.push(thread);
    }

    fn late(&mut self, thread: usize) {
        self.threads[thread].was_late = true;
        self.stop_waiting(thread);
    }

    fn stop_waiting(&mut self, thread: usize) {
        let Some((key, timer)) = self.threads[thread].waits.take() else { return };
        if let Some(timer) = timer {
            self.timers.remove(&timer);
        }
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.retain(|waits| *waits != thread);
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
        let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        self.processes[process].paused_until = self.now.saturating_add(time);
    }

    /// The timers that are due by now.
    fn due(&mut self) -> Option<Timer> {
        let first = self.timers.first_entry()?;
        (first.key().0 <= self.now).then(|| first.remove())
    }

    /// Whose turn it is; `None` where nobody can run now.
    fn next(&mut self) -> Option<usize> {
        let can_run = |thread: &usize| self.processes[self.threads[*thread].process].paused_until <= self.now;
        let n = self.ready.iter().filter(|thread| can_run(thread)).count();
        if n == 0 {
            return None;
        }
        let picked = {
            // Borrowed apart: `random` borrows the whole state.
            let nth = self.random(n as u64) as usize;
            let can_run = |thread: &usize| self.processes[self.threads[*thread].process].paused_until <= self.now;
            (0..self.ready.len()).filter(|at| can_run(&self.ready[*at])).nth(nth)?
        };
        let thread = self.ready.swap_remove(picked);
        self.now += (self.turn_ns + self.random(self.turn_ns)) as i64;
        self.n_turns += 1;
        self.note(thread as u64 ^ (self.now as u64).rotate_left(20));
        Some(thread)
    }

    /// Until something happens. Where nothing can, the driver is notified.
    fn let_time_pass(&mut self) {
        let resumed = self.ready.iter().map(|thread| self.processes[self.threads[*thread].process].paused_until);
        let next = self.timers.first_key_value().map(|((at, _), _)| *at).into_iter().chain(resumed).min();
        match next {
            Some(at) => self.now = self.now.max(at),
            None => {
                self.is_stuck = true;
                self.stop_waiting(0);
            }
        }
    }

    /// The threads that wait, where all do and nothing can wake them.
    fn told_stuck(&self) -> Option<String> {
        let described = |thread: &Thread| match thread.process {
            0 => thread.name.clone(),
            process => format!("{} in {}", thread.name, self.processes[process].name),
        };
        let waits = self.threads.iter().filter(|thread| thread.ended.is_none()).map(described);
        self.is_stuck.then(|| waits.collect::<Vec<_>>().join(", "))
    }
}
