//! From the kernel's events to slices: a small state per thread and per CPU.
//!
//! One machine for what is recorded here and for what other tools recorded: they differ in where the events come from, in whose threads
//! are followed, and in where the slices go, which is an [`Output`].

use super::{Comm, SchedEvent, SchedKind};
use crate::thread_state::ThreadState;
use rustc_hash::FxHashMap;

/// Threads that are distinguished; those beyond have no track (they are counted). What Linux calls `PID_MAX_LIMIT`.
const MAX_THREADS: usize = 1 << 22;
/// Requests to disks that may be under way.
const MAX_REQUESTS: usize = 1 << 14;

/// Where slices go, and what is known there of threads. Times are the output's ticks.
pub trait Output {
    /// A handle of a track.
    type Track: Copy;
    /// A handle of a call site.
    type Site: Copy;

    /// The process of a thread of which nothing was known so far, 0 where that is not known; `None` for a thread that is not followed.
    fn process_of(&self, thread: u32) -> Option<u32>;

    /// The track of a thread, new or not.
    fn thread(&mut self, process: u32, thread: u32, name: Comm) -> Self::Track;

    /// A thread with a track has another name.
    fn rename(&mut self, track: Self::Track, process: u32, thread: u32, name: Comm);

    /// A process begins, or runs another program.
    fn process(&mut self, process: u32, name: Comm);

    /// The track of a CPU, new.
    fn cpu(&mut self, cpu: u32) -> Self::Track;

    /// The track of a disk by its number as the kernel packs it (12 bits of major, 20 of minor), new.
    fn disk(&mut self, device: u32) -> Self::Track;

    /// The site with this category and name, new or not.
    fn site(&mut self, category: &'static str, name: &str) -> Self::Site;

    /// Adds a slice.
    /// Its `correlation` is the other thread, the one that took the CPU, woke this one or ran; its `arg` the thread's state or process.
    fn slice(&mut self, track: Self::Track, begin: u64, end: u64, site: Self::Site, correlation: u32, arg: u64);

    /// Adds an instant.
    fn instant(&mut self, track: Self::Track, time: u64, site: Self::Site, correlation: u32, arg: u64);
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Unknown,
    Running,
    Off { since: u64, left: ThreadState, taker: u32, woken: Option<WakeUp> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct WakeUp {
    at: u64,
    by: u32,
}

struct Thread<T> {
    process: u32,
    name: Comm,
    track: Option<T>,
    state: State,
}

struct Cpu<T> {
    track: Option<T>,
    /// Who runs, since when.
    runs: Option<(u32, Comm, u64)>,
    /// Who was woken for this CPU last, and when.
    expects: Option<(u32, u64)>,
}

/// A disk's request under way.
struct Request {
    begin: u64,
    by: u32,
    bytes: u32,
    is_write: bool,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedCounts {
    /// Switches in which a thread that is followed took part, those that were not reported included.
    pub switches: u64,
    /// Wake-ups of such threads.
    pub wakeups: u64,
    /// Threads without a track, because there are too many.
    pub untracked: u64,
    /// Threads that ran on a CPU which, as far as was reported, they had not got: some kernels do not say when certain threads, such as
    /// the idle one, leave a CPU. Threads that were woken ran from then on, so much is sure.
    pub untold: u64,
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
    /// Counts of what was seen.
    pub seen: SchedCounts,
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
            seen: SchedCounts::default(),
        }
    }
}

impl<O: Output> Scheduling<O> {
    /// A thread that is followed from now on.
    pub fn adopt(&mut self, thread: u32, process: u32, name: Comm) {
        self.insert(thread, Thread { process, name, track: None, state: State::Unknown });
    }

    fn insert(&mut self, id: u32, thread: Thread<O::Track>) {
        if self.threads.len() < MAX_THREADS || self.threads.contains_key(&id) {
            self.threads.insert(id, thread);
        } else {
            self.seen.untracked += 1;
        }
    }

    /// A thread that is followed, also when it is seen for the first time. 0 is the idle thread of each CPU.
    fn known(&mut self, id: u32, out: &O) -> Option<&mut Thread<O::Track>> {
        if id != 0
            && !self.threads.contains_key(&id)
            && let Some(process) = out.process_of(id)
        {
            self.adopt(id, process, Comm::default());
        }
        self.threads.get_mut(&id)
    }

    /// Who runs on a CPU, as far as was reported.
    pub fn on_cpu(&self, cpu: u32) -> Option<(u32, Comm)> {
        self.cpus.get(&cpu)?.runs.map(|(id, name, _)| (id, name))
    }

    /// Takes the next event; they come in order of time.
    pub fn take(&mut self, event: &SchedEvent, out: &mut O) {
        let (time, cpu) = (event.time, event.cpu);
        if let Some((thread, name)) = event.kind.by() {
            self.came_untold(cpu, thread, name, out);
        }
        match event.kind {
            SchedKind::Switch { prev, prev_name, left, next, next_name } => {
                self.cpu_switches(cpu, time, (prev, prev_name), (next, next_name), out);
                let ours = self.goes_off(prev, time, left, next, out) | self.goes_on(next, time, Some(next_name), out);
                self.seen.switches += u64::from(ours);
            }
            SchedKind::Off { thread, left } => {
                let name = self.threads.get(&thread).map_or(Comm::default(), |t| t.name);
                self.cpu_switches(cpu, time, (thread, name), (0, Comm::default()), out);
                self.seen.switches += u64::from(self.goes_off(thread, time, left, 0, out));
            }
            SchedKind::On { thread } => {
                let name = self.threads.get(&thread).map_or(Comm::default(), |t| t.name);
                self.cpu_switches(cpu, time, (0, Comm::default()), (thread, name), out);
                self.seen.switches += u64::from(self.goes_on(thread, time, None, out));
            }
            SchedKind::Waking { by, thread, cpu } => self.wakes(time, by, thread, cpu, out),
            SchedKind::Born { parent, thread, in_process, name } => {
                self.born(time, parent, (thread, name), in_process, out);
            }
            SchedKind::Exec { process, name } => {
                if self.known(process, out).is_some() {
                    out.process(process, name);
                    self.renamed(process, name, out);
                }
            }
            SchedKind::Renamed { thread, name } => self.renamed(thread, name, out),
            SchedKind::Exit { thread } => {
                // Its last switch is still to come; it only says that the thread is no more.
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.state = State::Running;
                }
            }
            SchedKind::Disk { device, sector, bytes, by, is_write, ends } => {
                let request = Request { begin: time, by, bytes, is_write };
                self.disk((device, sector), request, ends, out);
            }
            SchedKind::MajorFault { thread, address } => {
                if let Some(track) = self.thread_track(thread, out) {
                    let site = out.site("fault", "major page fault");
                    out.instant(track, time, site, event.cpu, address);
                }
            }
        }
    }

    fn wakes(&mut self, time: u64, by: u32, id: u32, cpu: u32, out: &O) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.expects = Some((id, time));
        }
        let Some(thread) = self.known(id, out) else { return };
        let woken = Some(WakeUp { at: time, by });
        match &mut thread.state {
            State::Off { woken: before @ None, .. } => *before = woken,
            // It slept, who knows since when; only one that sleeps is woken.
            State::Unknown => thread.state = State::Off { since: time, left: ThreadState::Waiting, taker: 0, woken },
            _ => return,
        }
        self.seen.wakeups += 1;
    }

    fn born(&mut self, time: u64, parent: u32, (id, name): (u32, Comm), in_process: bool, out: &mut O) {
        let Some(maker) = self.known(parent, out) else { return };
        let process = if in_process { maker.process } else { id };
        let name = if name == Comm::default() { maker.name } else { name };
        // It can run from here on, and waits for its first turn.
        let woken = Some(WakeUp { at: time, by: parent });
        let state = State::Off { since: time, left: ThreadState::Waiting, taker: 0, woken };
        self.insert(id, Thread { process, name, track: None, state });
        if !in_process {
            out.process(id, name);
        }
    }

    fn renamed(&mut self, id: u32, name: Comm, out: &mut O) {
        if let Some(thread) = self.threads.get_mut(&id).filter(|t| t.name != name) {
            thread.name = name;
            if let Some(track) = thread.track {
                out.rename(track, thread.process, id, name);
            }
        }
    }

    /// A track of a process, for its counters: that of its first thread, also when that has ended.
    pub fn process_track(&mut self, process: u32, out: &mut O) -> Option<O::Track> {
        if let Some(track) = self.process_tracks.get(&process) {
            return Some(*track);
        }
        let track = self.thread_track(process, out)?;
        self.process_tracks.insert(process, track);
        Some(track)
    }

    /// The track of a thread that is followed.
    fn thread_track(&mut self, id: u32, out: &mut O) -> Option<O::Track> {
        let thread = self.threads.get_mut(&id)?;
        Some(*thread.track.get_or_insert_with(|| out.thread(thread.process, id, thread.name)))
    }

    /// A thread does something on a CPU: had it got that without a word, it did so when it was woken.
    fn came_untold(&mut self, cpu: u32, id: u32, name: Option<Comm>, out: &mut O) {
        let expected = self.cpus.get_mut(&cpu).filter(|cpu| cpu.runs.is_none()).and_then(|cpu| {
            let (_, woken) = cpu.expects.filter(|(thread, _)| *thread == id)?;
            cpu.runs = Some((id, name.unwrap_or_default(), woken));
            Some(woken)
        });
        let Some(State::Off { woken, .. }) = self.threads.get(&id).map(|t| t.state) else { return };
        self.seen.untold += 1;
        self.seen.switches += 1;
        // Without a wake-up nobody knows when its wait ended: there is no slice for it.
        if let Some(woken) = woken.map(|w| w.at).or(expected) {
            self.goes_on(id, woken, name, out);
        } else if let Some(thread) = self.threads.get_mut(&id) {
            thread.state = State::Running;
        }
    }

    /// `taker`: who got its CPU. Whether the thread is followed.
    fn goes_off(&mut self, id: u32, time: u64, left: ThreadState, taker: u32, out: &O) -> bool {
        let Some(thread) = self.known(id, out) else { return false };
        if left == ThreadState::Dead {
            self.threads.remove(&id);
        } else {
            thread.state = State::Off { since: time, left, taker, woken: None };
        }
        true
    }

    fn goes_on(&mut self, id: u32, time: u64, name: Option<Comm>, out: &mut O) -> bool {
        let Some(thread) = self.known(id, out) else { return false };
        let state = std::mem::replace(&mut thread.state, State::Running);
        if let Some(name) = name {
            self.renamed(id, name, out);
        }
        self.was_off(id, state, time, out);
        true
    }

    /// Writes what a thread did not run for until `end`.
    fn was_off(&mut self, id: u32, state: State, end: u64, out: &mut O) {
        let State::Off { since, left, taker, woken } = state else { return };
        let Some(track) = self.thread_track(id, out) else { return };
        let waited_until = woken.map_or(end, |w| w.at.clamp(since, end));
        let by = if left == ThreadState::Preempted { taker } else { woken.map_or(0, |w| w.by) };
        for (state, from, to) in [(left, since, waited_until), (ThreadState::Runnable, waited_until, end)] {
            if from < to {
                let site = &mut self.states[state.code() as usize];
                let site = *site.get_or_insert_with(|| out.site("off cpu", state.name()));
                out.slice(track, from, to, site, by, state.code());
            }
        }
    }

    fn cpu_switches(&mut self, at: u32, time: u64, prev: (u32, Comm), next: (u32, Comm), out: &mut O) {
        let cpu = self.cpus.entry(at).or_insert(Cpu { track: None, runs: None, expects: None });
        if let Some((id, name, since)) = cpu.runs.take().filter(|(id, ..)| *id == prev.0) {
            let track = *cpu.track.get_or_insert_with(|| out.cpu(at));
            let name = if name == Comm::default() { prev.1 } else { name };
            let site = *self.names.entry(name).or_insert_with(|| out.site("running", &name.text()));
            let process = self.threads.get(&id).map_or(0, |t| t.process);
            out.slice(track, since, time, site, id, u64::from(process));
        }
        cpu.runs = (next.0 != 0).then_some((next.0, next.1, time));
    }

    fn disk(&mut self, key: (u32, u64), new: Request, ends: bool, out: &mut O) {
        if !ends {
            if self.requests.len() < MAX_REQUESTS {
                self.requests.insert(key, new);
            }
            return;
        }
        let Some(request) = self.requests.remove(&key) else { return };
        let track = *self.disks.entry(key.0).or_insert_with(|| out.disk(key.0));
        let site = out.site("disk", if request.is_write { "write" } else { "read" });
        out.slice(track, request.begin, new.begin, site, request.by, u64::from(request.bytes));
    }

    /// Ends every slice that is under way.
    pub fn finish(&mut self, time: u64, out: &mut O) {
        let mut running: Vec<(u32, u32, Comm)> =
            self.cpus.iter().filter_map(|(at, cpu)| cpu.runs.map(|(id, name, _)| (*at, id, name))).collect();
        running.sort_unstable_by_key(|(at, ..)| *at);
        for (at, id, name) in running {
            self.cpu_switches(at, time, (id, name), (0, Comm::default()), out);
        }
        let mut ids: Vec<u32> = self.threads.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let state = self.threads.get(&id).map_or(State::Unknown, |t| t.state);
            self.was_off(id, state, time, out);
        }
    }
}
