//! What ran on which CPU and why threads did not run, from the kernel's switches and wake-ups.
//!
//! A CPU's track has a slice per stay of a thread on it (category `running`, `correlation` its id); a thread's track has
//! one per time off (category `off cpu`): `preempted`, `sleeping`, `uninterruptible` and so on until it is woken, then
//! `waking` until it runs, with the waker as `correlation`.

use super::stage::{Stage, TrackOf, What};
use rustc_hash::FxHashMap;

/// A thread's part in a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) tid: i64,
    /// Its name, among [`Sched::names`].
    pub(super) name: u32,
}

#[derive(Clone, Copy, Debug)]
enum Happened {
    /// `prev`: `None` is whoever ran there.
    Switch {
        cpu: i64,
        prev: Option<Side>,
        left: Left,
        next: Side,
    },
    Waking {
        by: Waker,
        tid: i64,
    },
}

/// Who wakes a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waker {
    Thread(i64),
    /// Whoever runs on this CPU then.
    OnCpu(i64),
}

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Preempted,
    Sleeping,
    Uninterruptible,
    Stopped,
    Waiting,
    Dead,
}

impl Left {
    /// From the letters that `sched_switch` prints.
    pub(super) fn from_letters(text: &str) -> Left {
        match text.as_bytes().first() {
            Some(b'R') => Left::Preempted,
            Some(b'D') => Left::Uninterruptible,
            Some(b'T' | b't') => Left::Stopped,
            Some(b'X' | b'Z' | b'x') => Left::Dead,
            Some(b'I' | b'P') => Left::Waiting,
            _ => Left::Sleeping,
        }
    }

    /// From the bits of `prev_state`, as kernels since 4.14 report them.
    pub(super) fn from_bits(bits: i64) -> Left {
        match bits & 0xff {
            0 => Left::Preempted,
            b if b & 1 != 0 => Left::Sleeping,
            b if b & 2 != 0 => Left::Uninterruptible,
            b if b & 0x0c != 0 => Left::Stopped,
            b if b & 0x30 != 0 => Left::Dead,
            _ => Left::Waiting,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Left::Preempted => "preempted",
            Left::Sleeping => "sleeping",
            Left::Uninterruptible => "uninterruptible",
            Left::Stopped => "stopped",
            Left::Waiting => "waiting",
            Left::Dead => "ended",
        }
    }
}

/// Switches and wake-ups in any order, and which thread is whose.
#[derive(Default)]
pub(super) struct Sched {
    happened: Vec<(i64, Happened)>,
    names: Vec<String>,
    name_of: FxHashMap<String, u32>,
    /// Thread to process, where the file tells.
    pub(super) process_of: FxHashMap<i64, i64>,
}

/// A thread that does not run.
#[derive(Clone, Copy)]
struct Off {
    since: i64,
    left: Left,
    woken: Option<(i64, i64)>,
    taker: i64,
}

impl Sched {
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(idx) = self.name_of.get(name) {
            return *idx;
        }
        self.names.push(name.to_owned());
        self.name_of.insert(name.to_owned(), self.names.len() as u32 - 1);
        self.names.len() as u32 - 1
    }

    pub(super) fn switch(&mut self, time: i64, cpu: i64, prev: Option<Side>, left: Left, next: Side) {
        self.happened.push((time, Happened::Switch { cpu, prev, left, next }));
    }

    pub(super) fn waking(&mut self, time: i64, by: Waker, tid: i64) {
        self.happened.push((time, Happened::Waking { by, tid }));
    }

    /// The track of a thread: in its process where that is known.
    pub(super) fn thread(&self, tid: i64, stage: &mut Stage) -> u32 {
        if let Some(process) = self.process_of.get(&tid) {
            return stage.thread(*process, tid);
        }
        let unknown = stage.text_id("threads of no known process");
        let process = stage.process(unknown);
        stage.processes[process as usize].name = "threads".to_owned();
        stage.track(process, TrackOf::Thread(tid))
    }

    /// Puts it all on tracks.
    pub(super) fn finish(mut self, stage: &mut Stage) {
        let mut happened = std::mem::take(&mut self.happened);
        if happened.is_empty() {
            return;
        }
        happened.sort_by_key(|(time, _)| *time);
        let machine = stage.text_id("CPUs");
        let machine = stage.process(machine);
        stage.processes[machine as usize].name = "CPUs".to_owned();
        let mut on: FxHashMap<i64, (Side, i64)> = FxHashMap::default();
        let mut off: FxHashMap<i64, Off> = FxHashMap::default();
        let last = happened.last().map_or(0, |(time, _)| *time);
        for (time, what) in happened {
            match what {
                Happened::Waking { by, tid } => {
                    let by = match by {
                        Waker::Thread(by) => by,
                        Waker::OnCpu(cpu) => on.get(&cpu).map_or(0, |(side, _)| side.tid),
                    };
                    if let Some(off) = off.get_mut(&tid) {
                        off.woken.get_or_insert((time, by));
                    }
                }
                Happened::Switch { cpu, prev, left, next } => {
                    let ran = on.remove(&cpu);
                    if let Some((side, since)) = ran {
                        self.ran(stage, machine, cpu, side, since, time);
                    }
                    if let Some(prev) = prev.or(ran.map(|(side, _)| side)).filter(|prev| prev.tid != 0) {
                        off.insert(prev.tid, Off { since: time, left, woken: None, taker: next.tid });
                    }
                    if next.tid != 0 {
                        self.came_back(stage, next, off.remove(&next.tid), time);
                        on.insert(cpu, (next, time));
                    }
                }
            }
        }
        let mut still: Vec<(i64, (Side, i64))> = on.into_iter().collect();
        still.sort_unstable_by_key(|(cpu, _)| *cpu);
        for (cpu, (side, since)) in still {
            self.ran(stage, machine, cpu, side, since, last);
        }
    }

    fn ran(&self, stage: &mut Stage, machine: u32, cpu: i64, side: Side, since: i64, until: i64) {
        let track = stage.track(machine, TrackOf::Cpu(cpu));
        let site = stage.site("running", &self.names[side.name as usize]);
        stage.slice(track, since, until, What { correlation: side.tid as u32, ..What::of(site) });
    }

    fn came_back(&self, stage: &mut Stage, side: Side, off: Option<Off>, time: i64) {
        let track = self.thread(side.tid, stage);
        if stage.tracks[track as usize].name.is_empty() {
            stage.tracks[track as usize].name.clone_from(&self.names[side.name as usize]);
        }
        let Some(off) = off.filter(|off| off.left != Left::Dead) else { return };
        let until = off.woken.map_or(time, |(at, _)| at);
        let by = if off.left == Left::Preempted { off.taker } else { off.woken.map_or(0, |(_, by)| by) };
        for (name, from, to) in [(off.left.name(), off.since, until), ("waking", until, time)] {
            if to > from {
                let site = stage.site("off cpu", name);
                stage.slice(track, from, to, What { correlation: by as u32, ..What::of(site) });
            }
        }
    }
}
