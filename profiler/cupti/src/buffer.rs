//! Decodes the records of an activity buffer.

use crate::record::{Record, record};
use std::collections::BTreeMap;

/// Counts of the records of a buffer that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadCounts {
    /// The number of records of each unknown kind.
    pub n_by_unknown_kind: BTreeMap<u32, u64>,
    /// The number of records that end before their fields do.
    pub n_truncated: u64,
}

impl UnreadCounts {
    /// The number of all records that could not be read.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.n_by_unknown_kind.values().sum::<u64>() + self.n_truncated
    }

    pub(crate) fn add(&mut self, other: &UnreadCounts) {
        for (kind, n) in &other.n_by_unknown_kind {
            *self.n_by_unknown_kind.entry(*kind).or_default() += n;
        }
        self.n_truncated += other.n_truncated;
    }
}

/// Decodes the records of a buffer that begin at these offsets, and counts those that cannot be read. Any bytes and
/// offsets are valid input.
#[must_use]
pub fn records(buffer: &[u8], offsets: &[usize]) -> (Vec<Record>, UnreadCounts) {
    let (mut decoded, mut unread) = (Vec::new(), UnreadCounts::default());
    let ends = offsets.iter().skip(1).copied().chain([buffer.len()]);
    for (begin, end) in offsets.iter().zip(ends) {
        match record(buffer.get(*begin..end).unwrap_or_default()) {
            Ok(Record::Other(kind)) => *unread.n_by_unknown_kind.entry(kind).or_default() += 1,
            Ok(record) => decoded.push(record),
            Err(_) => unread.n_truncated += 1,
        }
    }
    (decoded, unread)
}
