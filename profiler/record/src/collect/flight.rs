//! The age of a flight recorder's records.

use events::{Anchor, Kind, Record, TicksToNs, clock};

/// The clock's anchor at the start of the collector; with a later anchor it determines the rate of ticks.
pub(super) struct FlightClock {
    begin: Anchor,
}

impl FlightClock {
    pub(super) fn new() -> FlightClock {
        FlightClock { begin: clock::anchor() }
    }

    /// Returns the index of the first record that ended in the last `retention_ns` (0 for all). Records must be in
    /// order of their ends.
    pub(super) fn first_within(&self, retention_ns: u64, records: &[Record]) -> usize {
        if retention_ns == 0 {
            return 0;
        }
        let now = clock::anchor();
        let ticks_to_ns = TicksToNs::from_anchors(&[self.begin, now]);
        let oldest = now.mono_ns.saturating_sub_unsigned(retention_ns);
        let is_recent = |event: &Record| ticks_to_ns.ns(event.begin.saturating_add(u64::from(event.dur))) >= oldest;
        // Parts of a text have no time, and belong to the event that follows them.
        let first = records.iter().position(|record| !is_text(record) && is_recent(record)).unwrap_or(records.len());
        first - records[..first].iter().rev().take_while(|record| is_text(record)).count()
    }
}

fn is_text(record: &Record) -> bool {
    record.kind() == Some(Kind::Text)
}
