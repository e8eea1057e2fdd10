//! Merges the records of several rings in order of time.

use super::parse::{Event, Record, SampleFields, parse};
use events::clock;
use perf_event::Sampler;

/// Reads rings poll by poll.
#[derive(Default)]
pub(crate) struct RingPoll {
    /// Records for the next poll, since earlier ones of other CPUs may still come.
    waiting: Vec<Record>,
    /// Records that the rings lost.
    pub(crate) lost: u64,
}

impl RingPoll {
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

    /// The records up to a time, in order of time; with `last` all records. `until` must be earlier than the reads, so
    /// that every ring has been read to it.
    pub(crate) fn take(&mut self, until: u64, last: bool) -> Vec<Record> {
        // A stable sort: records of one ring with equal times stay in order.
        self.waiting.sort_by_key(|record| record.from.time);
        let until = if last { u64::MAX } else { until };
        let later = self.waiting.split_off(self.waiting.partition_point(|record| record.from.time <= until));
        std::mem::replace(&mut self.waiting, later)
    }
}

/// The time on the rings' clock, ns.
pub(crate) fn now() -> u64 {
    clock::mono_now().max(0).unsigned_abs()
}
