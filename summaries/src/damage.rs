//! Damaged ranges of event files, which are shown to the user with the run.

use std::{fmt, ops::Range, path::Path, sync::Arc};

use formats::tfrecord;

/// The most damaged ranges of a file that are stored; the others are only counted.
const MAX_PER_FILE: u64 = 256;

/// The fault of a range of an event file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// A record's data does not match its checksum; it is skipped.
    BadData,
    /// A record's header does not match its checksum; everything up to the next good record is skipped.
    BadLength,
    /// A record claims a length that reaches over good records; everything up to the next good record is skipped.
    TooLong,
    /// A record with good checksums is no Event, or one of its values is not of its tag's form; the value is skipped.
    Undecodable,
    /// A value is of another kind than the earlier ones of its tag; it is skipped.
    KindChanged,
    /// The file became shorter than its part that was read, or was replaced; it is read again from its beginning, and
    /// the points that were read stay.
    Rewritten,
    /// A part of another tool's log that cannot be read; it is skipped. The text says what it is.
    Log(&'static str),
}

/// A damaged range of an event file. Displays as one line: `FILE: bad checksum, skipped bytes 17596..17672`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: Arc<Path>,
    /// The fault.
    pub kind: DamageKind,
    /// The range in bytes from the file's beginning.
    pub bytes: Range<u64>,
}

impl From<tfrecord::DamageKind> for DamageKind {
    fn from(kind: tfrecord::DamageKind) -> Self {
        match kind {
            tfrecord::DamageKind::BadData => Self::BadData,
            tfrecord::DamageKind::BadLength => Self::BadLength,
            tfrecord::DamageKind::TooLong => Self::TooLong,
        }
    }
}

/// The damage of one file: the number of all ranges, and the first of them until they are taken.
#[derive(Debug)]
pub(crate) struct DamageLog {
    file: Arc<Path>,
    count: u64,
    n_taken: u64,
    ranges: Vec<Damage>,
}

impl DamageLog {
    pub fn new(file: Arc<Path>) -> Self {
        Self { file, count: 0, n_taken: 0, ranges: Vec::new() }
    }

    /// The number of ranges that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a range. Adjacent ranges of `BadLength` become one: a search through a long damaged range reports it in
    /// parts.
    pub fn add(&mut self, kind: DamageKind, bytes: Range<u64>) {
        if let Some(last) = self.ranges.last_mut().filter(|last| last.kind == kind && last.bytes.end == bytes.start)
            && kind == DamageKind::BadLength
        {
            last.bytes.end = bytes.end;
            return;
        }
        self.count += 1;
        if self.count <= MAX_PER_FILE {
            self.ranges.push(Damage { file: self.file.clone(), kind, bytes });
        }
    }

    /// Moves the ranges of another log since its last call to this one.
    pub fn append(&mut self, other: &mut Self) {
        let mut ranges = Vec::new();
        self.count += other.take(&mut ranges);
        self.ranges.append(&mut ranges);
    }

    /// Moves the ranges since the last call to the end of `damage`; returns their number, those that were only counted
    /// included.
    pub fn take(&mut self, damage: &mut Vec<Damage>) -> u64 {
        damage.append(&mut self.ranges);
        let n_new = self.count - self.n_taken;
        self.n_taken = self.count;
        n_new
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.bytes;
        write!(f, "{}: ", self.file.display())?;
        match self.kind {
            DamageKind::BadData => write!(f, "bad checksum, skipped bytes {start}..{end}"),
            DamageKind::BadLength => write!(f, "no record header, skipped bytes {start}..{end}"),
            DamageKind::TooLong => write!(f, "impossible record length, skipped bytes {start}..{end}"),
            DamageKind::Undecodable => write!(f, "not a readable summary, skipped a value in bytes {start}..{end}"),
            DamageKind::KindChanged => write!(f, "a tag's value changed its kind, skipped it in bytes {start}..{end}"),
            DamageKind::Log(what) if start == end => write!(f, "skipped {what}"),
            DamageKind::Log(what) => write!(f, "skipped {what} in bytes {start}..{end}"),
            DamageKind::Rewritten => write!(f, "was shortened or replaced after {end} bytes, read again"),
        }
    }
}
