//! Records of several rings, in order of time.

use super::parse::{Event, Record, SampleFields, parse};
use events::clock;
use perf_event::Sampler;

/// Reads rings again and again.
#[derive(Default)]
pub(crate) struct RingPoll {
    /// Records later than what may still come from another CPU.
    waiting: Vec<Record>,
    /// Records that the rings could not keep.
    pub(crate) lost: u64,
}

impl RingPoll {
    /// Adds what rings hold; their samples have these fields.
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

    /// The records up to a time before the rings were read, in order; `last`: all of them.
    pub(crate) fn take(&mut self, until: u64, last: bool) -> Vec<Record> {
        // Stable: what one ring holds of one time stays in its order.
        self.waiting.sort_by_key(|record| record.from.time);
        let until = if last { u64::MAX } else { until };
        let later = self.waiting.split_off(self.waiting.partition_point(|record| record.from.time <= until));
        std::mem::replace(&mut self.waiting, later)
    }
}

/// The rings' clock.
pub(crate) fn now() -> u64 {
    clock::mono_now().max(0).unsigned_abs()
}
