//! The times of threads by state, in traces that recorded the kernel's scheduler (`stepscope record --sched`).

use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{Category, SliceRef, ThreadState, TrackId, TrackKind};
use trace_store::Store;

/// The times of a thread by state, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// The thread's track.
    pub track: TrackId,
    /// Time on a CPU.
    pub running_ns: i64,
    /// Time in which the thread could have run and waited for a CPU, after it was preempted or woken.
    pub ready_ns: i64,
    /// Time asleep: for a lock, a timer, a pipe or a socket.
    pub sleeping_ns: i64,
    /// Time in waits that no signal interrupts, mostly for a disk.
    pub uninterruptible_ns: i64,
    /// Time in other states: stopped, or a wait of an unknown kind.
    pub other_ns: i64,
    /// The thread whose wake-ups ended most of the time asleep, with that time; thread 0 stands for a timer or a device
    /// that interrupted an idle CPU.
    pub woken_by: Option<(u32, i64)>,
}

/// The times of all threads whose scheduling was recorded, those that ran longest first.
#[must_use]
pub fn thread_times(store: &Store, range: &Range<i64>) -> Vec<ThreadTimes> {
    let mut threads: FxHashMap<(u32, u32), ThreadSums> = FxHashMap::default();
    let pid = |process: u32| store.processes().get(process as usize).map_or(0, |p| p.pid);
    for part in store.parts(range.clone()) {
        for track in store.tracks() {
            for slice in track.lanes.iter().flat_map(|lane| lane.slices(&part)) {
                let ns = slice.end.min(part.end) - slice.start.max(part.start);
                match (store.category(&slice), track.kind) {
                    (Category::OffCpu, _) => {
                        threads.entry((pid(track.process), track.tid)).or_default().add_off_cpu(store, &slice, ns);
                    }
                    (Category::Running, TrackKind::Cpu) => {
                        let process = u32::try_from(slice.arg).unwrap_or(0);
                        threads.entry((process, slice.correlation)).or_default().times.running_ns += ns;
                    }
                    _ => {}
                }
            }
        }
    }
    let mut all: Vec<ThreadTimes> = threads.into_values().filter_map(ThreadSums::times).collect();
    all.sort_by_key(|t| (std::cmp::Reverse(t.running_ns), t.track.0));
    all
}

#[derive(Default)]
struct ThreadSums {
    /// `track` is 0 until the thread's first slice off the CPU.
    times: ThreadTimes,
    /// Whether a slice off the CPU was found.
    was_off_cpu: bool,
    /// Time asleep by the thread that ended it.
    wakers: FxHashMap<u32, i64>,
}

impl ThreadSums {
    fn add_off_cpu(&mut self, store: &Store, slice: &SliceRef, ns: i64) {
        (self.times.track, self.was_off_cpu) = (TrackId(slice.id.track), true);
        let state = store.thread_state(slice);
        let sum = match state {
            Some(state) if state.is_ready() => &mut self.times.ready_ns,
            Some(ThreadState::Sleeping) => &mut self.times.sleeping_ns,
            Some(ThreadState::Uninterruptible) => &mut self.times.uninterruptible_ns,
            _ => &mut self.times.other_ns,
        };
        *sum += ns;
        if state == Some(ThreadState::Sleeping) {
            *self.wakers.entry(slice.correlation).or_default() += ns;
        }
    }

    /// Returns the thread's times; `None` for a thread without a slice off the CPU, which belongs to another program.
    fn times(self) -> Option<ThreadTimes> {
        let woken_by = self.wakers.into_iter().max_by_key(|(thread, ns)| (*ns, std::cmp::Reverse(*thread)));
        self.was_off_cpu.then_some(ThreadTimes { woken_by, ..self.times })
    }
}
