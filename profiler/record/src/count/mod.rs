//! What processor and kernel count of each thread: cycles, cache misses, page faults.
//!
//! In reading order: [`kinds`] names what can be counted, [`groups`] opens the kernel's counters, [`parse`] takes its records apart,
//! [`threads`] turns that into points of each thread's counters.
//!
//! Nobody reads a counter while an op runs: the kernel puts the values of all counters of a thread into its ring a thousand times a second
//! of the thread's own time, whenever it leaves a CPU, and when it ends.

pub(crate) mod groups;
mod kinds;
mod parse;
mod threads;

pub use groups::available;
pub use kinds::{CounterSet, USUAL, UnknownCounter};

use crate::collect::Tracks;
use crate::sample::parse::Record;
use events::clock;
use groups::Groups;
use parse::CountRecord;
use threads::Threads;

/// The counters of a command's threads while it is watched.
pub(crate) struct Counting {
    groups: Groups,
    threads: Threads,
    /// Records later than what may still come from another CPU.
    waiting: Vec<CountRecord>,
    pub(crate) lost: u64,
}

impl Counting {
    pub(crate) fn new(groups: Groups) -> Counting {
        let threads = Threads::new(groups.kinds.clone(), groups.kind_of.clone(), groups.has_hardware);
        Counting { groups, threads, waiting: Vec::new(), lost: 0 }
    }

    /// Adds what the rings hold to the tracks. What they say besides counters (which threads and programs there are) comes back.
    pub(crate) fn poll(&mut self, last: bool, tracks: &mut Tracks) -> Vec<Record> {
        let until = clock::mono_now().max(0).unsigned_abs();
        let mut told = std::mem::take(&mut self.waiting);
        for ring in &mut self.groups.rings {
            while let Some(record) = ring.next_record() {
                match parse::parse(record.ty(), record.misc(), &record.to_contiguous()) {
                    Some(CountRecord::Other(Record::Lost(n))) => self.lost += n,
                    Some(CountRecord::Other(Record::Other)) | None => {}
                    Some(record) => told.push(record),
                }
            }
        }
        // Stable: what one ring says at one time stays in its order.
        told.sort_by_key(CountRecord::time);
        if !last {
            self.waiting = told.split_off(told.partition_point(|r| r.time() <= until));
        }
        let mut others = Vec::new();
        for record in told {
            self.threads.take(&record, tracks);
            if let CountRecord::Other(record) = record {
                others.push(record);
            }
        }
        others
    }

    /// Readings so far.
    pub(crate) fn readings(&self) -> u64 {
        self.threads.readings
    }

    /// Of how much of their time, 0 to 1, threads were counted where the processor had not room for all counters at once.
    pub(crate) fn counted_share(&self) -> Option<f64> {
        self.threads.counted_share()
    }

    /// Readings of threads that are too many to be distinguished.
    pub(crate) fn untold(&self) -> u64 {
        self.threads.untold
    }
}
