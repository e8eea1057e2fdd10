//! What threads did as the kernel's scheduler saw it, in traces that tell it (`stepscope record --sched`).

use crate::store::{Category, SliceRef, Store, ThreadState, TrackId, TrackKind};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// How a thread spent its time, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Its track.
    pub track: TrackId,
    /// It had a CPU.
    pub running_ns: i64,
    /// It could have run, and waited for a CPU: taken from it, or not yet given after a wake-up.
    pub ready_ns: i64,
    /// It waited for a lock, a timer, a pipe or a socket.
    pub sleeping_ns: i64,
    /// It waited for something that no signal interrupts: mostly a disk.
    pub uninterruptible_ns: i64,
    /// It waited, or was stopped; for what is not known.
    pub other_ns: i64,
    /// The thread whose wake-ups ended most of the time asleep, with that time; 0 stands for a timer or a device that found its CPU
    /// idle.
    pub woken_by: Option<(u32, i64)>,
}

/// The times of all threads whose scheduling was recorded, those that ran longest first.
#[must_use]
pub fn thread_times(store: &Store, range: &Range<i64>) -> Vec<ThreadTimes> {
    let mut threads: FxHashMap<(u32, u32), Thread> = FxHashMap::default();
    let pid = |process: u32| store.processes().get(process as usize).map_or(0, |p| p.pid);
    for part in store.parts(range.clone()) {
        for (id, track) in store.tracks().iter().enumerate() {
            for slice in track.lanes.iter().flat_map(|lane| lane.slices(&part)) {
                let ns = slice.end.min(part.end) - slice.start.max(part.start);
                match (store.category(&slice), track.kind) {
                    (Category::OffCpu, _) => {
                        let thread = threads.entry((pid(track.process), track.tid)).or_default();
                        thread.track = Some(TrackId(id as u32));
                        thread.off(store, &slice, ns);
                    }
                    (Category::Running, TrackKind::Cpu) => {
                        let process = u32::try_from(slice.arg).unwrap_or(0);
                        threads.entry((process, slice.correlation)).or_default().running_ns += ns;
                    }
                    _ => {}
                }
            }
        }
    }
    let mut all: Vec<ThreadTimes> = threads.into_values().filter_map(Thread::times).collect();
    all.sort_by_key(|t| (std::cmp::Reverse(t.running_ns), t.track.0));
    all
}

#[derive(Default)]
struct Thread {
    track: Option<TrackId>,
    running_ns: i64,
    ready_ns: i64,
    sleeping_ns: i64,
    uninterruptible_ns: i64,
    other_ns: i64,
    wakers: FxHashMap<u32, i64>,
}

impl Thread {
    fn off(&mut self, store: &Store, slice: &SliceRef, ns: i64) {
        let state = store.thread_state(slice);
        let sum = match state {
            Some(state) if state.is_ready() => &mut self.ready_ns,
            Some(ThreadState::Sleeping) => &mut self.sleeping_ns,
            Some(ThreadState::Uninterruptible) => &mut self.uninterruptible_ns,
            _ => &mut self.other_ns,
        };
        *sum += ns;
        if state == Some(ThreadState::Sleeping) {
            *self.wakers.entry(slice.correlation).or_default() += ns;
        }
    }

    /// `None` for a thread that is only seen on a CPU: one of another program.
    fn times(self) -> Option<ThreadTimes> {
        let most = self.wakers.into_iter().max_by_key(|(thread, ns)| (*ns, std::cmp::Reverse(*thread)));
        let Thread { running_ns, ready_ns, sleeping_ns, uninterruptible_ns, other_ns, .. } = self;
        Some(ThreadTimes {
            track: self.track?,
            running_ns,
            ready_ns,
            sleeping_ns,
            uninterruptible_ns,
            other_ns,
            woken_by: most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::What;
    use crate::sched::derive::tests::{switch, trace};

    #[test]
    fn a_threads_time_is_split_as_it_was_scheduled() {
        let (store, zero, _) = trace(&[
            (0, 1, switch(0, ThreadState::Preempted, 7)),
            (10, 1, switch(7, ThreadState::Sleeping, 0)),
            (40, 0, What::Waking { by: 9, thread: 7, cpu: 1 }),
            (45, 1, switch(0, ThreadState::Preempted, 7)),
            (60, 1, switch(7, ThreadState::Preempted, 8)),
            (70, 1, switch(8, ThreadState::Sleeping, 7)),
            (75, 1, switch(7, ThreadState::Uninterruptible, 0)),
            (95, 1, What::Waking { by: 0, thread: 7, cpu: 1 }),
            (95, 1, switch(0, ThreadState::Preempted, 7)),
            (96, 1, switch(7, ThreadState::Dead, 0)),
        ]);
        let ms = |ns: i64| (ns + 500_000).div_euclid(1_000_000);
        let of = |from: i64, to: i64| {
            let range = zero + from * 1_000_000..zero + to * 1_000_000;
            let all = thread_times(&store, &range);
            assert_eq!(all.len(), 1, "thread 8 is another program's");
            let t = all[0];
            let times = [t.running_ns, t.ready_ns, t.sleeping_ns, t.uninterruptible_ns, t.other_ns].map(ms);
            (times, t.woken_by.map(|(by, ns)| (by, ms(ns))))
        };
        assert_eq!(of(0, 100), ([31, 15, 30, 20, 0], Some((9, 30))));
        assert_eq!(of(20, 50), ([5, 5, 20, 0, 0], Some((9, 20))), "what lies in the range");
    }
}
