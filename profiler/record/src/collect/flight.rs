//! The age of a flight recorder's records.

use events::{Anchor, Kind, Record, TicksToNs, clock};

/// The clock's anchor at the collector's begin, which gives the rate of ticks together with a later anchor.
pub(super) struct FlightClock {
    begin: Anchor,
}

impl FlightClock {
    pub(super) fn new() -> FlightClock {
        FlightClock { begin: clock::anchor() }
    }

    /// The index of the first record that ended in the last `keep_ns` (0: all). Records must be in the order of their
    /// ends.
    pub(super) fn first_within(&self, keep_ns: u64, records: &[Record]) -> usize {
        if keep_ns == 0 {
            return 0;
        }
        let now = clock::anchor();
        let line = TicksToNs::from_anchors(&[self.begin, now]);
        let oldest = now.mono_ns.saturating_sub_unsigned(keep_ns);
        let is_kept = |event: &Record| line.ns(event.begin.saturating_add(u64::from(event.dur))) >= oldest;
        // Parts of a text have no time: they belong to the event that follows them.
        let first = records.iter().position(|record| !is_text(record) && is_kept(record)).unwrap_or(records.len());
        first - records[..first].iter().rev().take_while(|record| is_text(record)).count()
    }
}

fn is_text(record: &Record) -> bool {
    record.kind() == Some(Kind::Text)
}
