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
    /// Switches in which a thread of the command took part.
    pub(crate) switches: u64,
    /// Wake-ups of threads of the command.
    pub(crate) wakeups: u64,
    /// Threads without a track, because there are too many.
    pub(crate) untracked: u64,
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
            What::Waking { by, thread } => {
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
            self.cpus.push(Cpu { track: None, runs: None });
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
