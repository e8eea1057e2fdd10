//! Merges the records of several rings in order of time.

use super::parse::{Event, Record, SampleFields, parse};
use events::clock;
use perf_event::Sampler;

/// Reads rings, and merges their records in order of time.
#[derive(Default)]
pub(crate) struct RingMerger {
    /// Records that wait for the next poll, since earlier records of other CPUs may still come.
    waiting: Vec<Record>,
    /// The number of records that the rings lost.
    pub(crate) lost: u64,
}

impl RingMerger {
    /// Reads all records of rings whose samples have these fields.
    pub(crate) fn read(&mut self, rings: &mut [Sampler], fields: SampleFields) {
        for ring in rings {
            while let Some(record) = ring.next_record() {
                match parse(record.ty(), record.misc(), &record.to_contiguous(), fields) {
                    Some(Record { event: Event::Lost(n), .. }) => self.lost += n,
                    Some(Record { event: Event::Other, .. }) | None => {}
                    Some(record) => self.waiting.push(record),
                }
            }
        }
    }

    /// Takes the records up to a time, in order of time; with `is_last` all records. `until` must be earlier than the
    /// reads, so that every ring has been read up to it.
    pub(crate) fn take(&mut self, until: u64, is_last: bool) -> Vec<Record> {
        // A stable sort: records of one ring with equal times stay in order.
        self.waiting.sort_by_key(|record| record.origin.time);
        let until = if is_last { u64::MAX } else { until };
        let later = self.waiting.split_off(self.waiting.partition_point(|record| record.origin.time <= until));
        std::mem::replace(&mut self.waiting, later)
    }
}

/// Reads the clock of the rings, ns.
pub(crate) fn now() -> u64 {
    clock::mono_now().max(0).unsigned_abs()
}
