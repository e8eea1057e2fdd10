//! Splits a buffer into its records.

use crate::record::{Record, record};
use std::collections::BTreeMap;

/// Counts of the records of a buffer that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Records of unknown kinds, by kind.
    pub unknown: BTreeMap<u32, u64>,
    /// Records that are shorter than their fields.
    pub cut: u64,
}

impl Unread {
    /// The number of all such records.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.unknown.values().sum::<u64>() + self.cut
    }

    pub(crate) fn add(&mut self, other: &Unread) {
        for (kind, n) in &other.unknown {
            *self.unknown.entry(*kind).or_default() += n;
        }
        self.cut += other.cut;
    }
}

/// The records of a buffer that begin at these offsets, and the counts of those that cannot be read. Any bytes and
/// offsets are valid input.
#[must_use]
pub fn records(buffer: &[u8], begins: &[usize]) -> (Vec<Record>, Unread) {
    let (mut found, mut unread) = (Vec::new(), Unread::default());
    let ends = begins.iter().skip(1).copied().chain([buffer.len()]);
    for (begin, end) in begins.iter().zip(ends) {
        match record(buffer.get(*begin..end).unwrap_or_default()) {
            Ok(Record::Other(kind)) => *unread.unknown.entry(kind).or_default() += 1,
            Ok(record) => found.push(record),
            Err(_) => unread.cut += 1,
        }
    }
    (found, unread)
}
