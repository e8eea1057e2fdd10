//! Derives slices from the kernel's scheduler events, with a state machine per thread and per CPU.
//!
//! Recordings and imports share this code. They differ in the source of the events, in the threads that are followed,
//! and in the destination of the slices, for which each implements [`Output`].

use super::{Comm, SchedEvent, SchedKind};
use crate::thread_state::ThreadState;
use rustc_hash::FxHashMap;

/// The most threads that are followed: Linux's `PID_MAX_LIMIT`. Further threads have no track, and are counted.
const MAX_THREADS: usize = 1 << 22;
/// The most disk requests under way that are followed.
const MAX_REQUESTS: usize = 1 << 14;

/// The destination of slices, which knows the threads to follow. Times are the output's ticks.
pub trait Output {
    /// A handle of a track.
    type Track: Copy;
    /// A handle of a call site.
    type Site: Copy;

    /// The process of a thread that occurs for the first time, 0 if unknown; `None` for a thread not to be followed.
    fn process_of(&self, thread: u32) -> Option<u32>;

    /// The track of a thread, which may be new.
    fn thread(&mut self, process: u32, thread: u32, name: Comm) -> Self::Track;

    /// Renames a thread that has a track.
    fn rename(&mut self, track: Self::Track, process: u32, thread: u32, name: Comm);

    /// Names a process that begins, or runs another program.
    fn process(&mut self, process: u32, name: Comm);

    /// A new track for a CPU.
    fn cpu(&mut self, cpu: u32) -> Self::Track;

    /// A new track for a disk, by its number as the kernel packs it (12 bits of major, 20 of minor).
    fn disk(&mut self, device: u32) -> Self::Track;

    /// The site with this category and name, which may be new.
    fn site(&mut self, category: &'static str, name: &str) -> Self::Site;

    /// Adds a slice. `correlation` is the thread that took the CPU, woke this one or ran; `arg` is the thread's state
    /// or process.
    fn slice(&mut self, track: Self::Track, begin: u64, end: u64, site: Self::Site, correlation: u32, arg: u64);

    /// Adds an instant.
    fn instant(&mut self, track: Self::Track, time: u64, site: Self::Site, correlation: u32, arg: u64);
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Unknown,
    Running,
    /// Without a CPU since `since`, in the state `left`. `taker` is the thread that got the CPU.
    Off {
        since: u64,
        left: ThreadState,
        taker: u32,
        woken: Option<WakeUp>,
    },
}

/// The wake-up of a thread, and the thread that caused it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WakeUp {
    time: u64,
    waker: u32,
}

/// A followed thread.
struct Thread<T> {
    process: u32,
    name: Comm,
    track: Option<T>,
    state: State,
}

struct Cpu<T> {
    track: Option<T>,
    /// The running thread, its name, and the time since which it runs.
    running: Option<(u32, Comm, u64)>,
    /// The thread that was woken for this CPU last, and the time of the wake-up.
    expected_wakeup: Option<(u32, u64)>,
}

/// A disk request under way.
struct Request {
    begin: u64,
    /// The thread that issued the request.
    thread: u32,
    bytes: u32,
    is_write: bool,
}

/// Counts of scheduler events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedCounts {
    /// Switches from or to a followed thread, including those that the kernel did not report.
    pub switches: u64,
    /// Wake-ups of followed threads.
    pub wakeups: u64,
    /// Threads that are not followed, because there are too many.
    pub untracked: u64,
    /// Switches that the kernel did not report: a thread acted on a CPU that, by the events, it did not have. Some
    /// kernels do not report that certain threads, such as the idle one, leave a CPU. A woken thread is assumed to run
    /// from its wake-up on.
    pub unreported: u64,
}

/// The states of threads and CPUs, and the slices that follow from their events.
pub struct Scheduling<O: Output> {
    threads: FxHashMap<u32, Thread<O::Track>>,
    cpus: FxHashMap<u32, Cpu<O::Track>>,
    disks: FxHashMap<u32, O::Track>,
    requests: FxHashMap<(u32, u64), Request>,
    process_tracks: FxHashMap<u32, O::Track>,
    names: FxHashMap<Comm, O::Site>,
    states: [Option<O::Site>; ThreadState::N_CODES],
    /// Counts of the events so far.
    pub counts: SchedCounts,
}

impl<O: Output> Default for Scheduling<O> {
    fn default() -> Self {
        Scheduling {
            threads: FxHashMap::default(),
            cpus: FxHashMap::default(),
            disks: FxHashMap::default(),
            requests: FxHashMap::default(),
            process_tracks: FxHashMap::default(),
            names: FxHashMap::default(),
            states: [None; ThreadState::N_CODES],
            counts: SchedCounts::default(),
        }
    }
}

impl<O: Output> Scheduling<O> {
    /// Follows a thread from now on.
    pub fn follow_thread(&mut self, thread: u32, process: u32, name: Comm) {
        self.insert(thread, Thread { process, name, track: None, state: State::Unknown });
    }

    fn insert(&mut self, id: u32, thread: Thread<O::Track>) {
        if self.threads.len() < MAX_THREADS || self.threads.contains_key(&id) {
            self.threads.insert(id, thread);
        } else {
            self.counts.untracked += 1;
        }
    }

    /// A followed thread; a new thread is followed if the output names its process. Never 0, the idle thread of each
    /// CPU.
    fn followed(&mut self, id: u32, out: &O) -> Option<&mut Thread<O::Track>> {
        if id != 0
            && !self.threads.contains_key(&id)
            && let Some(process) = out.process_of(id)
        {
            self.follow_thread(id, process, Comm::default());
        }
        self.threads.get_mut(&id)
    }

    /// The thread that runs on a CPU with its name, if known.
    pub fn running_thread(&self, cpu: u32) -> Option<(u32, Comm)> {
        self.cpus.get(&cpu)?.running.map(|(id, name, _)| (id, name))
    }

    /// Processes the next event, in order of time.
    pub fn handle_event(&mut self, event: &SchedEvent, out: &mut O) {
        let (time, cpu) = (event.time, event.cpu);
        if let Some((thread, name)) = event.kind.waker() {
            self.recover_switch(cpu, thread, name, out);
        }
        match event.kind {
            SchedKind::Switch { prev, prev_name, left, next, next_name } => {
                self.switch_cpu(cpu, time, (prev, prev_name), (next, next_name), out);
                let is_off = self.switch_off(prev, time, left, next, out);
                let is_on = self.switch_on(next, time, Some(next_name), out);
                self.counts.switches += u64::from(is_off | is_on);
            }
            SchedKind::Off { thread, left } => {
                let name = self.threads.get(&thread).map_or(Comm::default(), |t| t.name);
                self.switch_cpu(cpu, time, (thread, name), (0, Comm::default()), out);
                self.counts.switches += u64::from(self.switch_off(thread, time, left, 0, out));
            }
            SchedKind::On { thread } => {
                let name = self.threads.get(&thread).map_or(Comm::default(), |t| t.name);
                self.switch_cpu(cpu, time, (0, Comm::default()), (thread, name), out);
                self.counts.switches += u64::from(self.switch_on(thread, time, None, out));
            }
            SchedKind::Waking { by, thread, cpu } => self.wake(time, by, thread, cpu, out),
            SchedKind::Fork { parent, thread, in_process, name } => {
                self.fork(time, parent, (thread, name), in_process, out);
            }
            SchedKind::Exec { process, name } => {
                if self.followed(process, out).is_some() {
                    out.process(process, name);
                    self.rename(process, name, out);
                }
            }
            SchedKind::Renamed { thread, name } => self.rename(thread, name, out),
            SchedKind::Exit { thread } => {
                // The thread still runs: its last switch, whose state is dead, follows.
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.state = State::Running;
                }
            }
            SchedKind::Disk { device, sector, bytes, by, is_write, ends } => {
                let request = Request { begin: time, thread: by, bytes, is_write };
                self.track_request((device, sector), request, ends, out);
            }
            SchedKind::MajorFault { thread, address } => {
                if let Some(track) = self.thread_track(thread, out) {
                    let site = out.site("fault", "major page fault");
                    out.instant(track, time, site, event.cpu, address);
                }
            }
        }
    }

    fn wake(&mut self, time: u64, by: u32, id: u32, cpu: u32, out: &O) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.expected_wakeup = Some((id, time));
        }
        let Some(thread) = self.followed(id, out) else { return };
        let woken = Some(WakeUp { time, waker: by });
        match &mut thread.state {
            State::Off { woken: wake_up @ None, .. } => *wake_up = woken,
            // The thread slept, since an unknown time: only a sleeping thread is woken.
            State::Unknown => thread.state = State::Off { since: time, left: ThreadState::Waiting, taker: 0, woken },
            _ => return,
        }
        self.counts.wakeups += 1;
    }

    fn fork(&mut self, time: u64, parent: u32, (id, name): (u32, Comm), in_process: bool, out: &mut O) {
        let Some(parent_thread) = self.followed(parent, out) else { return };
        let process = if in_process { parent_thread.process } else { id };
        let name = if name == Comm::default() { parent_thread.name } else { name };
        // A new thread is runnable, and waits for a CPU.
        let woken = Some(WakeUp { time, waker: parent });
        let state = State::Off { since: time, left: ThreadState::Waiting, taker: 0, woken };
        self.insert(id, Thread { process, name, track: None, state });
        if !in_process {
            out.process(id, name);
        }
    }

    fn rename(&mut self, id: u32, name: Comm, out: &mut O) {
        if let Some(thread) = self.threads.get_mut(&id).filter(|t| t.name != name) {
            thread.name = name;
            if let Some(track) = thread.track {
                out.rename(track, thread.process, id, name);
            }
        }
    }

    /// The track for the counters of a process: the track of its first thread, even if that thread has ended.
    pub fn process_track(&mut self, process: u32, out: &mut O) -> Option<O::Track> {
        if let Some(track) = self.process_tracks.get(&process) {
            return Some(*track);
        }
        let track = self.thread_track(process, out)?;
        self.process_tracks.insert(process, track);
        Some(track)
    }

    /// The track of a followed thread.
    fn thread_track(&mut self, id: u32, out: &mut O) -> Option<O::Track> {
        let thread = self.threads.get_mut(&id)?;
        Some(*thread.track.get_or_insert_with(|| out.thread(thread.process, id, thread.name)))
    }

    /// Handles that a thread acts on a CPU. If no switch to the thread was reported, the thread is assumed to have got
    /// the CPU when it was woken.
    fn recover_switch(&mut self, cpu: u32, id: u32, name: Option<Comm>, out: &mut O) {
        let expected = self.cpus.get_mut(&cpu).filter(|cpu| cpu.running.is_none()).and_then(|cpu| {
            let (_, woken) = cpu.expected_wakeup.filter(|(thread, _)| *thread == id)?;
            cpu.running = Some((id, name.unwrap_or_default(), woken));
            Some(woken)
        });
        let Some(State::Off { woken, .. }) = self.threads.get(&id).map(|t| t.state) else { return };
        self.counts.unreported += 1;
        self.counts.switches += 1;
        // Without a wake-up the end of its wait is unknown, so there is no slice for the wait.
        if let Some(woken) = woken.map(|w| w.time).or(expected) {
            self.switch_on(id, woken, name, out);
        } else if let Some(thread) = self.threads.get_mut(&id) {
            thread.state = State::Running;
        }
    }

    /// Handles that a thread loses its CPU to `taker`. Returns whether the thread is followed.
    fn switch_off(&mut self, id: u32, time: u64, left: ThreadState, taker: u32, out: &O) -> bool {
        let Some(thread) = self.followed(id, out) else { return false };
        if left == ThreadState::Dead {
            self.threads.remove(&id);
        } else {
            thread.state = State::Off { since: time, left, taker, woken: None };
        }
        true
    }

    /// Handles that a thread gets a CPU. Returns whether the thread is followed.
    fn switch_on(&mut self, id: u32, time: u64, name: Option<Comm>, out: &mut O) -> bool {
        let Some(thread) = self.followed(id, out) else { return false };
        let state = std::mem::replace(&mut thread.state, State::Running);
        if let Some(name) = name {
            self.rename(id, name, out);
        }
        self.end_off(id, state, time, out);
        true
    }

    /// Writes the slices of the time until `end` in which a thread did not run.
    fn end_off(&mut self, id: u32, state: State, end: u64, out: &mut O) {
        let State::Off { since, left, taker, woken } = state else { return };
        let Some(track) = self.thread_track(id, out) else { return };
        let waited_until = woken.map_or(end, |w| w.time.clamp(since, end));
        let by = if left == ThreadState::Preempted { taker } else { woken.map_or(0, |w| w.waker) };
        for (state, from, to) in [(left, since, waited_until), (ThreadState::Runnable, waited_until, end)] {
            if from < to {
                let site = &mut self.states[state.code() as usize];
                let site = *site.get_or_insert_with(|| out.site("off cpu", state.name()));
                out.slice(track, from, to, site, by, state.code());
            }
        }
    }

    fn switch_cpu(&mut self, number: u32, time: u64, prev: (u32, Comm), next: (u32, Comm), out: &mut O) {
        let cpu = self.cpus.entry(number).or_insert(Cpu { track: None, running: None, expected_wakeup: None });
        if let Some((id, name, since)) = cpu.running.take().filter(|(id, ..)| *id == prev.0) {
            let track = *cpu.track.get_or_insert_with(|| out.cpu(number));
            let name = if name == Comm::default() { prev.1 } else { name };
            let site = *self.names.entry(name).or_insert_with(|| out.site("running", &name.text()));
            let process = self.threads.get(&id).map_or(0, |t| t.process);
            out.slice(track, since, time, site, id, u64::from(process));
        }
        cpu.running = (next.0 != 0).then_some((next.0, next.1, time));
    }

    fn track_request(&mut self, key: (u32, u64), request: Request, is_end: bool, out: &mut O) {
        if !is_end {
            if self.requests.len() < MAX_REQUESTS {
                self.requests.insert(key, request);
            }
            return;
        }
        let end = request.begin;
        let Some(request) = self.requests.remove(&key) else { return };
        let track = *self.disks.entry(key.0).or_insert_with(|| out.disk(key.0));
        let site = out.site("disk", if request.is_write { "write" } else { "read" });
        out.slice(track, request.begin, end, site, request.thread, u64::from(request.bytes));
    }

    /// Ends every open slice.
    pub fn finish(&mut self, time: u64, out: &mut O) {
        let mut running: Vec<(u32, u32, Comm)> =
            self.cpus.iter().filter_map(|(cpu, state)| state.running.map(|(id, name, _)| (*cpu, id, name))).collect();
        running.sort_unstable_by_key(|(cpu, ..)| *cpu);
        for (cpu, id, name) in running {
            self.switch_cpu(cpu, time, (id, name), (0, Comm::default()), out);
        }
        let mut ids: Vec<u32> = self.threads.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let state = self.threads.get(&id).map_or(State::Unknown, |t| t.state);
            self.end_off(id, state, time, out);
        }
    }
}
