//! From the kernel's events to slices: a small state per thread and per CPU.

use super::{Comm, Event, Left, What};
use crate::collect::{TrackNo, Tracks};
use events::meta::TrackKind;
use events::{Kind, SiteId};
use rustc_hash::FxHashMap;

/// Threads of the command that are told apart; those beyond have no track (they are counted).
const MAX_THREADS: usize = 1 << 16;
/// Requests to disks that may be under way.
const MAX_REQUESTS: usize = 1 << 14;
/// Tracks of a thread come after those it writes itself.
const ORDER: i32 = 1_000_000;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Unknown,
    Running,
    Off { since: u64, left: Left, taker: u32, woken: Option<Woken> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Woken {
    at: u64,
    by: u32,
}

struct Thread {
    process: u32,
    name: Comm,
    track: Option<TrackNo>,
    state: State,
}

struct Cpu {
    track: Option<TrackNo>,
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
pub(crate) struct Seen {
    /// Switches in which a thread of the command took part, those that were not told included.
    pub(crate) switches: u64,
    /// Wake-ups of threads of the command.
    pub(crate) wakeups: u64,
    /// Threads without a track, because there are too many.
    pub(crate) untracked: u64,
    /// Threads that ran on a CPU which, as far as was told, they had not got: some kernels do not tell when certain threads, such as
    /// the idle one, leave a CPU. Threads that were woken ran from then on, so much is sure.
    pub(crate) untold: u64,
}

/// See the module's notes.
#[derive(Default)]
pub(crate) struct Scheduling {
    threads: FxHashMap<u32, Thread>,
    cpus: Vec<Cpu>,
    disks: FxHashMap<u32, TrackNo>,
    requests: FxHashMap<(u32, u64), Request>,
    process_tracks: FxHashMap<u32, TrackNo>,
    names: FxHashMap<Comm, SiteId>,
    pub(crate) seen: Seen,
}

impl Scheduling {
    /// A thread of the command from now on.
    pub(crate) fn adopt(&mut self, thread: u32, process: u32, name: Comm) {
        self.insert(thread, Thread { process, name, track: None, state: State::Unknown });
    }

    fn insert(&mut self, id: u32, thread: Thread) {
        if self.threads.len() < MAX_THREADS || self.threads.contains_key(&id) {
            self.threads.insert(id, thread);
        } else {
            self.seen.untracked += 1;
        }
    }

    /// Takes the next event; they come in order of time.
    pub(crate) fn take(&mut self, event: &Event, tracks: &mut Tracks) {
        let (time, cpu) = (event.time, event.cpu as usize);
        if let Some((thread, name)) = event.what.by() {
            self.came_untold(cpu, thread, name, tracks);
        }
        match event.what {
            What::Switch { prev, prev_name, left, next, next_name } => {
                self.cpu_switches(cpu, time, (prev, prev_name), (next, next_name), tracks);
                let ours = self.goes_off(prev, time, left, next) | self.goes_on(next, time, Some(next_name), tracks);
                self.seen.switches += u64::from(ours);
            }
            What::Off { thread, left } => {
                let name = self.threads.get(&thread).map_or(Comm::default(), |t| t.name);
                self.cpu_switches(cpu, time, (thread, name), (0, Comm::default()), tracks);
                self.seen.switches += u64::from(self.goes_off(thread, time, left, 0));
            }
            What::On { thread } => {
                let name = self.threads.get(&thread).map_or(Comm::default(), |t| t.name);
                self.cpu_switches(cpu, time, (0, Comm::default()), (thread, name), tracks);
                self.seen.switches += u64::from(self.goes_on(thread, time, None, tracks));
            }
            What::Waking { by, thread, cpu } => {
                if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
                    cpu.expects = Some((thread, time));
                }
                if let Some(Thread { state: State::Off { woken: woken @ None, .. }, .. }) =
                    self.threads.get_mut(&thread)
                {
                    *woken = Some(Woken { at: time, by });
                    self.seen.wakeups += 1;
                }
            }
            What::Born { parent, thread, in_process, name } => {
                if let Some(maker) = self.threads.get(&parent) {
                    let process = if in_process { maker.process } else { thread };
                    // It can run from here on, and waits for its first turn.
                    let woken = Some(Woken { at: time, by: parent });
                    let name = if name == Comm::default() { maker.name } else { name };
                    let state = State::Off { since: time, left: Left::Waiting, taker: 0, woken };
                    self.insert(thread, Thread { process, name, track: None, state });
                    if !in_process {
                        tracks.process(thread, &command(thread, name));
                    }
                }
            }
            What::Exec { process, name } => {
                if self.threads.contains_key(&process) {
                    tracks.process(process, &command(process, name));
                    self.renamed(process, name, tracks);
                }
            }
            What::Renamed { thread, name } => self.renamed(thread, name, tracks),
            What::Exit { thread } => {
                // Its last switch is still to come; it only says that the thread is no more.
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.state = State::Running;
                }
            }
            What::Disk { device, sector, bytes, by, is_write, ends } => {
                let request = Request { begin: time, by, bytes, is_write };
                self.disk((device, sector), request, ends, tracks);
            }
            What::MajorFault { thread, address } => {
                if let Some(track) = self.thread_track(thread, tracks) {
                    let site = tracks.site("fault", "major page fault");
                    tracks.point(Kind::Instant, track, time, site, event.cpu, address);
                }
            }
        }
    }

    fn renamed(&mut self, id: u32, name: Comm, tracks: &mut Tracks) {
        if let Some(thread) = self.threads.get_mut(&id).filter(|t| t.name != name) {
            thread.name = name;
            if let Some(track) = thread.track {
                tracks.rename(track, TrackKind::Thread, thread.process, id, ORDER, &title(name, id));
            }
        }
    }

    /// A track of a process, for its counters: that of its first thread, also when that has ended.
    pub(crate) fn process_track(&mut self, process: u32, tracks: &mut Tracks) -> Option<TrackNo> {
        if let Some(track) = self.process_tracks.get(&process) {
            return Some(*track);
        }
        let track = self.thread_track(process, tracks)?;
        self.process_tracks.insert(process, track);
        Some(track)
    }

    /// The track of a thread of the command.
    pub(crate) fn thread_track(&mut self, id: u32, tracks: &mut Tracks) -> Option<TrackNo> {
        let thread = self.threads.get_mut(&id)?;
        let new = || tracks.track(TrackKind::Thread, thread.process, id, ORDER, &title(thread.name, id));
        Some(*thread.track.get_or_insert_with(new))
    }

    /// A thread does something on a CPU: had it got that without a word, it did so when it was woken.
    fn came_untold(&mut self, at: usize, id: u32, name: Option<Comm>, tracks: &mut Tracks) {
        let expected = self.cpus.get_mut(at).filter(|cpu| cpu.runs.is_none()).and_then(|cpu| {
            let (_, woken) = cpu.expects.filter(|(thread, _)| *thread == id)?;
            cpu.runs = Some((id, name.unwrap_or_default(), woken));
            Some(woken)
        });
        let Some(State::Off { woken, .. }) = self.threads.get(&id).map(|t| t.state) else { return };
        self.seen.untold += 1;
        self.seen.switches += 1;
        // Without a wake-up nobody knows when its wait ended: there is no slice for it.
        if let Some(woken) = woken.map(|w| w.at).or(expected) {
            self.goes_on(id, woken, name, tracks);
        } else if let Some(thread) = self.threads.get_mut(&id) {
            thread.state = State::Running;
        }
    }

    /// `taker`: who got its CPU. Whether the thread is the command's.
    fn goes_off(&mut self, id: u32, time: u64, left: Left, taker: u32) -> bool {
        let Some(thread) = self.threads.get_mut(&id) else { return false };
        if left == Left::Dead {
            self.threads.remove(&id);
        } else {
            thread.state = State::Off { since: time, left, taker, woken: None };
        }
        true
    }

    fn goes_on(&mut self, id: u32, time: u64, name: Option<Comm>, tracks: &mut Tracks) -> bool {
        let Some(thread) = self.threads.get_mut(&id) else { return false };
        let state = std::mem::replace(&mut thread.state, State::Running);
        if let Some(name) = name {
            self.renamed(id, name, tracks);
        }
        self.told(id, state, time, tracks);
        true
    }

    /// Writes what a thread did not run for until `end`.
    fn told(&mut self, id: u32, state: State, end: u64, tracks: &mut Tracks) {
        let State::Off { since, left, taker, woken } = state else { return };
        let Some(track) = self.thread_track(id, tracks) else { return };
        let waited_until = woken.map_or(end, |w| w.at.clamp(since, end));
        let by = if left == Left::Preempted { taker } else { woken.map_or(0, |w| w.by) };
        if waited_until > since {
            let site = tracks.site("off cpu", left.name());
            tracks.slice(track, since, waited_until, site, by, 0);
        }
        if waited_until < end {
            let site = tracks.site("off cpu", "runnable");
            tracks.slice(track, waited_until, end, site, by, 0);
        }
    }

    fn cpu_switches(&mut self, at: usize, time: u64, prev: (u32, Comm), next: (u32, Comm), tracks: &mut Tracks) {
        while self.cpus.len() <= at.min(4096) {
            self.cpus.push(Cpu { track: None, runs: None, expects: None });
        }
        let Some(cpu) = self.cpus.get_mut(at) else { return };
        if let Some((id, name, since)) = cpu.runs.take().filter(|(id, ..)| *id == prev.0) {
            let track = *cpu
                .track
                .get_or_insert_with(|| tracks.track(TrackKind::Cpu, tracks.pid(), 0, at as i32, &format!("CPU {at}")));
            let name = if name == Comm::default() { prev.1 } else { name };
            let site = *self.names.entry(name).or_insert_with(|| tracks.site("running", &name.text()));
            let process = self.threads.get(&id).map_or(0, |t| t.process);
            tracks.slice(track, since, time, site, id, u64::from(process));
        }
        cpu.runs = (next.0 != 0).then_some((next.0, next.1, time));
    }

    fn disk(&mut self, key: (u32, u64), new: Request, ends: bool, tracks: &mut Tracks) {
        if !ends {
            if self.requests.len() < MAX_REQUESTS {
                self.requests.insert(key, new);
            }
            return;
        }
        let Some(request) = self.requests.remove(&key) else { return };
        let device = key.0;
        let track = *self.disks.entry(device).or_insert_with(|| {
            // As the kernel packs them: 12 bits of major, 20 of minor.
            let name = format!("disk {}:{}", device >> 20, device & 0xf_ffff);
            tracks.track(TrackKind::Async, tracks.pid(), 0, ORDER, &name)
        });
        let site = tracks.site("disk", if request.is_write { "write" } else { "read" });
        tracks.slice(track, request.begin, new.begin, site, request.by, u64::from(request.bytes));
    }

    /// Ends every slice that is under way.
    pub(crate) fn finish(&mut self, time: u64, tracks: &mut Tracks) {
        for at in 0..self.cpus.len() {
            if let Some((id, name, _)) = self.cpus[at].runs {
                self.cpu_switches(at, time, (id, name), (0, Comm::default()), tracks);
            }
        }
        let ids: Vec<u32> = self.threads.keys().copied().collect();
        for id in ids {
            let state = self.threads.get(&id).map_or(State::Unknown, |t| t.state);
            self.told(id, state, time, tracks);
        }
    }
}

fn title(name: Comm, thread: u32) -> String {
    format!("{} {thread}, scheduling", name.text())
}

/// The command line of a process; where it is gone already, its name.
fn command(process: u32, name: Comm) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<String> = line.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
    let text = words.join(" ").trim_end().chars().take(1000).collect::<String>();
    if text.is_empty() { name.text() } else { text }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Collector, CollectorOptions, Store, StoreOptions, TraceReader};
    use events::clock::Source;
    use parking_lot::Mutex;
    use std::sync::Arc;

    const MS: u64 = 1_000_000;

    /// Track, name, start and end (ms), and who took the CPU, woke the thread or ran.
    type Told = (String, String, i64, i64, u32);

    /// The trace that a list of events (ms, CPU, what) makes, and where 0 ms lies in it.
    pub(crate) fn trace(events: &[(u64, u32, What)]) -> (Store, i64, Seen) {
        let dir = tempfile::tempdir().unwrap();
        let tracks = Tracks::create(dir.path(), 1, "kernel", Source::MonotonicRaw).unwrap();
        let base = tracks.now();
        let tracks = Arc::new(Mutex::new(tracks));
        let collector =
            Collector::start_with(dir.path(), CollectorOptions::default(), Some(Arc::clone(&tracks))).unwrap();
        let mut scheduling = Scheduling::default();
        scheduling.adopt(7, 7, Comm::new(b"seven"));
        for (time, cpu, what) in events {
            scheduling.take(&Event { time: base + time * MS, cpu: *cpu, what: *what }, &mut tracks.lock());
        }
        tracks.lock().keep_time(true);
        assert_eq!(collector.stop().dropped, 0);
        let mut store = Store::with_options(StoreOptions::UNBOUNDED);
        TraceReader::open(dir.path()).unwrap().read_all(&mut store).unwrap();
        let zero = base as i64 - store.origin_ns();
        (store, zero, scheduling.seen)
    }

    /// The slices that a list of events makes.
    fn slices(events: &[(u64, u32, What)]) -> (Vec<Told>, Seen) {
        let (store, zero, seen) = trace(events);
        let mut found = Vec::new();
        for track in store.tracks() {
            for slice in track.lanes.iter().flat_map(|lane| (0..lane.len() as u32).filter_map(|i| lane.slice(i))) {
                let at = |time: i64| (time - zero + 1000).div_euclid(MS as i64);
                let name = store.sites()[slice.site as usize].name.clone();
                found.push((track.name.clone(), name, at(slice.start), at(slice.end), slice.correlation));
            }
        }
        (found, seen)
    }

    pub(crate) fn switch(prev: u32, left: Left, next: u32) -> What {
        let name = |id: u32| Comm::new(if id == 7 { b"seven" } else { b"other" });
        What::Switch { prev, prev_name: name(prev), left, next, next_name: name(next) }
    }

    fn row(track: &str, name: &str, start: i64, end: i64, by: u32) -> Told {
        (track.to_owned(), name.to_owned(), start, end, by)
    }

    const SEVEN: &str = "seven 7, scheduling";

    #[test]
    fn a_sleep_ends_with_its_wake_up_and_the_wait_for_a_cpu_begins() {
        let (found, seen) = slices(&[
            (0, 1, switch(0, Left::Preempted, 7)),
            (10, 1, switch(7, Left::Sleeping, 0)),
            (40, 0, What::Waking { by: 9, thread: 7, cpu: 1 }),
            (45, 1, switch(0, Left::Preempted, 7)),
            (60, 1, switch(7, Left::Preempted, 8)),
            (70, 1, switch(8, Left::Sleeping, 7)),
        ]);
        let wanted = [
            row("CPU 1", "other", 60, 70, 8),
            row("CPU 1", "seven", 0, 10, 7),
            row("CPU 1", "seven", 45, 60, 7),
            row(SEVEN, "preempted", 60, 70, 8),
            row(SEVEN, "runnable", 40, 45, 9),
            row(SEVEN, "sleeping", 10, 40, 9),
        ];
        let mut found = found;
        found.sort();
        assert_eq!(found, wanted);
        assert_eq!((seen.wakeups, seen.untold), (1, 0));
    }

    /// As a kernel tells it that leaves out every switch of its idle thread.
    #[test]
    fn where_the_idle_thread_is_silent_a_wake_up_stands_for_its_switch() {
        let (mut found, seen) = slices(&[
            (0, 1, switch(8, Left::Preempted, 7)),
            (10, 1, switch(7, Left::Sleeping, 0)),
            (40, 0, What::Waking { by: 9, thread: 7, cpu: 1 }),
            (60, 1, switch(7, Left::Sleeping, 0)),
            (70, 0, What::Waking { by: 9, thread: 8, cpu: 1 }),
            (80, 1, switch(8, Left::Sleeping, 0)),
            (90, 1, switch(7, Left::Sleeping, 0)),
        ]);
        found.sort();
        let wanted = [
            row("CPU 1", "other", 70, 80, 8),
            row("CPU 1", "seven", 0, 10, 7),
            row("CPU 1", "seven", 40, 60, 7),
            row(SEVEN, "sleeping", 10, 40, 9),
        ];
        assert_eq!(found, wanted);
        assert_eq!(seen.untold, 2, "the last one has not even a wake-up: no slice");
    }

    /// Whoever wakes another, starts one or ends has got a CPU, told or not.
    #[test]
    fn what_a_thread_does_shows_that_it_runs() {
        let name = Comm::new(b"nine");
        let born = What::Born { parent: 7, thread: 9, in_process: true, name };
        for act in [What::Exit { thread: 7 }, What::Waking { by: 7, thread: 8, cpu: 0 }, born] {
            let (mut found, seen) = slices(&[
                (0, 1, switch(8, Left::Preempted, 7)),
                (10, 1, switch(7, Left::Sleeping, 0)),
                (40, 0, What::Waking { by: 9, thread: 7, cpu: 1 }),
                (50, 1, act),
                (60, 1, switch(7, Left::Dead, 0)),
            ]);
            found.sort();
            let wanted =
                [row("CPU 1", "seven", 0, 10, 7), row("CPU 1", "seven", 40, 60, 7), row(SEVEN, "sleeping", 10, 40, 9)];
            assert_eq!(found, wanted, "{act:?}");
            assert_eq!(seen.untold, 1);
        }
    }
}
