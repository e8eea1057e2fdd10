//! How old the records of a flight recorder are.

use events::{Anchor, Kind, Record, TicksToNs, clock};

/// The clock's reading at the collector's begin.
pub(super) struct Past {
    begin: Anchor,
}

impl Past {
    pub(super) fn new() -> Past {
        Past { begin: clock::anchor() }
    }

    /// The first of the records, which lie in the order in which they ended, that ended in the last `keep_ns` (0: all).
    pub(super) fn first_within(&self, keep_ns: u64, records: &[Record]) -> usize {
        if keep_ns == 0 {
            return 0;
        }
        let now = clock::anchor();
        let line = TicksToNs::from_anchors(&[self.begin, now]);
        let oldest = now.mono_ns.saturating_sub_unsigned(keep_ns);
        let is_old = |i: usize| {
            let event = event_of(records, i);
            line.ns(event.begin.saturating_add(u64::from(event.dur))) < oldest
        };
        let (mut from, mut to) = (0, records.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            if is_old(middle) { from = middle + 1 } else { to = middle }
        }
        from
    }
}

/// The event that a record belongs to: parts of a text have no time, they are as old as the event that follows them.
fn event_of(records: &[Record], i: usize) -> &Record {
    let is_text = |record: &&Record| record.site >> 28 == Kind::Text as u32;
    records[i..].iter().find(|record| !is_text(record)).unwrap_or(&records[i])
}
