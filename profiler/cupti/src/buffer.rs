//! A buffer of records, cut into them.

use crate::layout::{Kind, Layout};
use crate::record::{Record, record};
use std::collections::BTreeMap;

/// Where the records of a buffer begin.
#[derive(Clone, Copy, Debug)]
pub enum Bounds<'a> {
    /// One follows the other, as long as this version's are.
    Of(&'a Layout),
    /// As the library says, in order.
    At(&'a [usize]),
}

/// The unreadable part of a buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Records of kinds that are not read, by kind.
    pub unknown: BTreeMap<u32, u64>,
    /// Records that are cut.
    pub cut: u64,
    /// Bytes behind a record of unknown length.
    pub bytes: u64,
}

impl Unread {
    /// Records and lost rests, all together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.unknown.values().sum::<u64>() + self.cut + u64::from(self.bytes > 0)
    }

    pub(crate) fn add(&mut self, other: &Unread) {
        for (kind, n) in &other.unknown {
            *self.unknown.entry(*kind).or_default() += n;
        }
        self.cut += other.cut;
        self.bytes += other.bytes;
    }
}

/// All records of a buffer, and what is not read. Any bytes are valid input.
#[must_use]
pub fn records<'a>(buffer: &'a [u8], bounds: Bounds<'_>) -> (Vec<Record<'a>>, Unread) {
    let (mut found, mut unread) = (Vec::new(), Unread::default());
    let mut take = |bytes: &'a [u8]| match record(bytes) {
        Ok(Record::Other { kind, .. }) => *unread.unknown.entry(kind).or_default() += 1,
        Ok(record) => found.push(record),
        Err(_) => unread.cut += 1,
    };
    match bounds {
        Bounds::At(begins) => {
            for (idx, begin) in begins.iter().enumerate() {
                let end = begins.get(idx + 1).copied().unwrap_or(buffer.len());
                take(buffer.get(*begin..end).unwrap_or_default());
            }
        }
        Bounds::Of(layout) => {
            let mut rest = buffer;
            while let Some(kind) = rest.first_chunk().map(|kind| Kind::from_bits(u32::from_le_bytes(*kind))) {
                let Some(kind) = kind else {
                    // Its length is not known either: what follows cannot be found.
                    take(rest);
                    unread.bytes = rest.len() as u64;
                    return (found, unread);
                };
                let (record, behind) = rest.split_at(layout.length(kind).min(rest.len()));
                take(if record.len() == layout.length(kind) { record } else { &[] });
                rest = behind;
            }
            if !rest.is_empty() {
                take(&[]);
            }
        }
    }
    (found, unread)
}
