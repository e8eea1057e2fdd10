//! The kernel's scheduler events in other tools' traces. They are collected in any order while a file is read, then
//! passed in order of time to [`trace_model::scheduling::derive`], which the recorder uses too.
//!
//! A CPU's track has a slice per stay of a thread on it (category `running`), a thread's track one per time off
//! (category `off cpu`), a disk's one per request (category `disk`); docs/formats/trace-format.md says what they carry.
//! All threads are followed.

use super::ids::{ProcessIdx, SiteIdx, TrackIdx};
use super::problems::Problem;
use super::stage::{Stage, TrackOf};
use rustc_hash::FxHashMap;
use trace_model::scheduling::derive::{Output, Scheduling};
use trace_model::scheduling::{Comm, SchedEvent, SchedKind};
use trace_model::{Event, EventKind, ThreadState};

/// `clone_flags` of a thread in its maker's process.
const CLONE_THREAD: u64 = 0x1_0000;

/// A thread's part in a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchThread {
    pub(super) tid: u32,
    pub(super) name: Comm,
}

impl SwitchThread {
    pub(super) fn new(tid: u32, name: &[u8]) -> SwitchThread {
        SwitchThread { tid, name: Comm::new(name) }
    }
}

/// A scheduler event as files have it.
#[derive(Clone, Copy, Debug)]
enum FileEvent {
    /// An event with all its fields.
    Complete(SchedKind),
    /// A switch whose previous thread is the one that runs on the CPU.
    SwitchTo { left: ThreadState, next: SwitchThread },
    /// A wake-up by the thread that runs on the CPU.
    Waking { thread: u32, target: u32 },
}

/// Scheduler events in any order, and the process of each thread.
#[derive(Default)]
pub(super) struct Sched {
    events: Vec<(i64, u32, FileEvent)>,
    /// The process of each thread, as far as the file says.
    pub(super) process_of: FxHashMap<i64, i64>,
}

impl Sched {
    /// Adds a switch. If `prev` is `None`, it is the thread that runs on the CPU.
    pub(super) fn switch(
        &mut self,
        time: i64,
        cpu: u32,
        prev: Option<SwitchThread>,
        left: ThreadState,
        next: SwitchThread,
    ) {
        let event = match prev {
            None => FileEvent::SwitchTo { left, next },
            Some(SwitchThread { tid: prev, name: prev_name }) => {
                let (next, next_name) = (next.tid, next.name);
                FileEvent::Complete(SchedKind::Switch { prev, prev_name, left, next, next_name })
            }
        };
        self.events.push((time, cpu, event));
    }

    /// A thread was woken on `cpu`, by whoever ran there, to run on `target`.
    pub(super) fn waking_there(&mut self, time: i64, cpu: u32, thread: u32, target: u32) {
        self.events.push((time, cpu, FileEvent::Waking { thread, target }));
    }

    /// Anything else that happened on `cpu`.
    pub(super) fn take(&mut self, time: i64, cpu: u32, kind: SchedKind) {
        self.events.push((time, cpu, FileEvent::Complete(kind)));
    }

    /// Adds the creation of a thread, with the flags of the call that created it.
    pub(super) fn born(&mut self, time: i64, cpu: u32, parent: u32, thread: SwitchThread, clone_flags: u64) {
        let (in_process, name) = (clone_flags & CLONE_THREAD != 0, thread.name);
        self.take(time, cpu, SchedKind::Fork { parent, thread: thread.tid, in_process, name });
    }

    /// Derives the slices, and adds them to the stage's tracks.
    pub(super) fn finish(&mut self, stage: &mut Stage) {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|(time, ..)| *time);
        self.learn_processes(&events);
        let mut out = StageOutput { stage, process_of: std::mem::take(&mut self.process_of), cpus: None };
        for tid in out.stage.unsettled() {
            let process = out.process_row(out.process_of.get(&tid).copied());
            out.stage.settle(tid, process);
        }
        let mut machine = Scheduling::default();
        let last = events.last().map_or(0, |(time, ..)| *time);
        for (time, cpu, event) in events {
            let here = machine.running_thread(cpu).unwrap_or_default();
            let what = match event {
                FileEvent::Complete(kind) => kind,
                FileEvent::SwitchTo { left, next } => {
                    SchedKind::Switch { prev: here.0, prev_name: here.1, left, next: next.tid, next_name: next.name }
                }
                FileEvent::Waking { thread, target } => SchedKind::Waking { by: here.0, thread, cpu: target },
            };
            machine.handle_event(&SchedEvent { time: ticks(time), cpu, kind: what }, &mut out);
        }
        machine.finish(ticks(last), &mut out);
        out.stage.problems.add(Problem::MissingSwitch, machine.counts.unreported, None);
        out.stage.problems.add(Problem::TooManyThreads, machine.counts.untracked, None);
    }

    /// Sets the processes of new threads from the events that created them, unless the file says them otherwise. Events
    /// are in order of time, so the parent's process is known.
    fn learn_processes(&mut self, events: &[(i64, u32, FileEvent)]) {
        for (.., event) in events {
            if let FileEvent::Complete(SchedKind::Fork { parent, thread, in_process, .. }) = event {
                let own = if *in_process {
                    self.process_of.get(&i64::from(*parent)).copied()
                } else {
                    Some((*thread).into())
                };
                if let Some(process) = own {
                    self.process_of.entry((*thread).into()).or_insert(process);
                }
            }
        }
    }
}

/// Ticks count from the smallest `i64`, so that none is negative.
fn ticks(ns: i64) -> u64 {
    ns.cast_unsigned() ^ (1 << 63)
}

fn ns(ticks: u64) -> i64 {
    (ticks ^ (1 << 63)).cast_signed()
}

/// A stage as the output of [`Scheduling`].
struct StageOutput<'a> {
    stage: &'a mut Stage,
    process_of: FxHashMap<i64, i64>,
    /// The process of CPUs and disks.
    cpus: Option<ProcessIdx>,
}

impl StageOutput<'_> {
    fn process_row(&mut self, pid: Option<i64>) -> ProcessIdx {
        let Some(pid) = pid else {
            let process = self.named_process("threads of no known process", "threads");
            self.stage.without_process = Some(process);
            return process;
        };
        self.stage.process(pid)
    }

    fn machine(&mut self) -> ProcessIdx {
        if let Some(process) = self.cpus {
            return process;
        }
        let process = self.named_process("CPUs", "CPUs");
        self.cpus = Some(process);
        process
    }

    fn named_process(&mut self, key: &str, name: &str) -> ProcessIdx {
        let id = self.stage.text_id(key);
        let process = self.stage.process(id);
        name.clone_into(&mut self.stage.processes[process as usize].name);
        process
    }
}

impl Output for StageOutput<'_> {
    type Track = TrackIdx;
    type Site = SiteIdx;

    fn process_of(&self, thread: u32) -> Option<u32> {
        let pid = self.process_of.get(&i64::from(thread));
        Some(pid.and_then(|pid| u32::try_from(*pid).ok()).unwrap_or(0))
    }

    fn thread(&mut self, process: u32, thread: u32, name: Comm) -> TrackIdx {
        let process = self.process_row((process != 0).then_some(process.into()));
        let track = self.stage.track(process, TrackOf::Thread(thread.into()));
        self.stage.name_track(track, &name.text());
        track
    }

    fn rename(&mut self, track: TrackIdx, _: u32, _: u32, name: Comm) {
        self.stage.tracks[track as usize].name = name.text();
    }

    fn process(&mut self, process: u32, name: Comm) {
        let process = self.stage.process(process.into());
        self.stage.name_process(process, &name.text());
    }

    fn cpu(&mut self, cpu: u32) -> TrackIdx {
        let machine = self.machine();
        self.stage.track(machine, TrackOf::Cpu(cpu.into()))
    }

    fn disk(&mut self, device: u32) -> TrackIdx {
        let machine = self.machine();
        let name = format!("disk {}:{}", device >> 20, device & 0xf_ffff);
        let id = self.stage.text_id(&name);
        let track = self.stage.track(machine, TrackOf::Async(id));
        self.stage.tracks[track as usize].name = name;
        track
    }

    fn site(&mut self, category: &'static str, name: &str) -> SiteIdx {
        self.stage.site(category, name)
    }

    fn slice(&mut self, track: TrackIdx, begin: u64, end: u64, site: SiteIdx, correlation: u32, arg: u64) {
        self.stage.slice(track, Event { correlation, arg, ..site.slice(ns(begin), ns(end)) });
    }

    fn instant(&mut self, track: TrackIdx, time: u64, site: SiteIdx, correlation: u32, arg: u64) {
        self.stage.point(track, Event { correlation, arg, ..site.at(EventKind::Instant, ns(time)) });
    }
}
