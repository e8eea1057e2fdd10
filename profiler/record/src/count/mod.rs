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
pub use kinds::{CounterSet, USUAL, UnknownCounter};

use crate::collect::Tracks;
use crate::sample::parse::{Record, SampleFields};
use crate::sample::poll::{RingPoll, now};
use groups::Groups;
use threads::Threads;

/// The counters of a command's threads while it is watched.
pub(crate) struct Counting {
    groups: Groups,
    pub(crate) threads: Threads,
    poll: RingPoll,
}

impl Counting {
    pub(crate) fn new(groups: Groups) -> Counting {
        let threads = Threads::new(groups.kinds.clone(), groups.kind_of.clone(), groups.has_hardware);
        Counting { groups, threads, poll: RingPoll::default() }
    }

    /// Reads the rings' records, adds them to the tracks, and returns them.
    pub(crate) fn poll(&mut self, last: bool, tracks: &mut Tracks) -> Vec<Record> {
        let until = now();
        self.poll.read(&mut self.groups.rings, SampleFields::Counters);
        let records = self.poll.take(until, last);
        records.iter().for_each(|record| self.threads.take(record, tracks));
        records
    }

    /// Records that the rings lost, and records of threads beyond [`threads`]' maximum.
    pub(crate) fn lost(&self) -> u64 {
        self.poll.lost + self.threads.unreported
    }
}
