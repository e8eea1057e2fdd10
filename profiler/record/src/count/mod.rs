//! Counters of processor and kernel by thread: cycles, cache misses, page faults.
//!
//! In reading order: [`kinds`] names what can be counted, [`groups`] opens the kernel's counters, [`threads`] turns
//! their records into points of each thread's counters.
//!
//! No counter is read while an op runs: the kernel writes the values of all counters of a thread into a ring a thousand
//! times per second of the thread's CPU time, whenever the thread leaves a CPU, and when it ends.

pub(crate) mod groups;
mod kinds;
mod threads;

pub use groups::available;
pub use kinds::{CounterSet, DEFAULT_COUNTERS, UnknownCounter};

use crate::collect::Tracks;
use crate::sample::parse::{Record, SampleFields};
use crate::sample::poll::{RingMerger, now};
use groups::Groups;
use threads::Threads;

/// The counters of the threads of a watched command.
pub(crate) struct ThreadCounters {
    groups: Groups,
    pub(crate) threads: Threads,
    merger: RingMerger,
}

impl ThreadCounters {
    pub(crate) fn new(groups: Groups) -> ThreadCounters {
        let threads = Threads::new(groups.kinds.clone(), groups.row_by_counter.clone(), groups.has_hardware);
        ThreadCounters { groups, threads, merger: RingMerger::default() }
    }

    /// Reads the rings' records, adds them to the tracks, and returns them.
    pub(crate) fn poll(&mut self, is_last: bool, tracks: &mut Tracks) -> Vec<Record> {
        let until = now();
        self.merger.read(&mut self.groups.rings, SampleFields::Counters);
        let records = self.merger.take(until, is_last);
        records.iter().for_each(|record| self.threads.handle_record(record, tracks));
        records
    }

    /// The number of records that the rings lost, and of records of threads beyond the maximum of [`threads`].
    pub(crate) fn lost(&self) -> u64 {
        self.merger.lost + self.threads.n_unreported
    }
}
