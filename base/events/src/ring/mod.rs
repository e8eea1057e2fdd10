//! The ring: the records of one thread that are not drained yet, in a mapped file `ring-PID-K.ring`.
//!
//! One producer (the thread), one consumer (the collector's process), no lock. The file is
//!
//! ```text
//! byte 0     magic "STPRING1" u64, written last        producer's line   128  head u64: records ever published
//!      8     header bytes u32 (4096)                                     136  dropped u64: records lost to a full ring
//!      12    capacity u32, records, a power of two                       144  finished u32: 1 after the last record
//!      16    pid u32          20  tid u32                                148  overwrites u32: 1 for a flight recorder
//!                                                          consumer's line 256  tail u64: records ever drained
//!      24    ring number K u32                                           264  retired u32: 1 once the file was removed
//!      28    length of the name u32
//!      32    thread name, 64 bytes                     384..2432         open-slice table: 64 entries of 32 bytes
//!      96    made u64, ticks: which ring of this number   4096  capacity x 32 bytes: record i at slot i % capacity
//! ```
//!
//! An entry of the open-slice table, one for each depth:
//!
//! ```text
//! byte 0        8         16     20     24            32
//!      | number | begin   | site | node |   zero      |
//!        u64      u64       u32    u32                       number: counts the thread's slices from 1; 0: no slice
//! ```
//!
//! **Protocol.** The producer stores a record with plain stores and publishes it with a release store of `head`; the
//! consumer reads `head` (acquire), copies the records and frees their slots with a release store of `tail`. A full
//! ring drops the new record and counts it. Neither ever waits for the other, and because the file is a shared mapping
//! a published record is in the page cache and outlives the process (not the machine). A flight recorder's ring
//! (`overwrites`) has no consumer: the producer overwrites the oldest records, and a snapshot contains only the records
//! that the producer cannot have reached meanwhile. [`protocol`] has this part of the code, which `tests/ring_model.rs`
//! checks with a model checker. The producer never trusts `tail`, and the consumer nothing in the file: a garbage
//! `tail` looks like a full ring, a garbage `head` is damage, and neither can lead outside the mapping.
//!
//! Disk space is reserved when the file is created ([`file::reserve`]), so a full disk refuses the ring instead of
//! killing the program with SIGBUS later. Truncating a ring under a running program would kill it; no code here does
//! so.

pub(crate) mod file;
pub(crate) mod protocol;
mod reader;
mod sync;
mod writer;

pub(crate) use protocol::Slot;
pub use reader::{DrainCounts, OpenSlice, RingContents, RingError, RingInfo, RingReader, Snapshot, peek};
pub(crate) use writer::RingFile;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"STPRING1");
pub(crate) const HEADER_BYTES: usize = 4096;
/// The largest capacity that a reader accepts and a producer makes: 2^22 records, 128 MiB.
pub const MAX_RECORDS: u32 = 1 << 22;
/// The number of depths in the open-slice table.
pub const OPEN_DEPTHS: usize = 64;
const NAME_BYTES: usize = 64;

/// The mapped header. All fields are atomic, because another process reads and writes them.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) header_bytes: AtomicU32,
    pub(crate) capacity: AtomicU32,
    pub(crate) pid: AtomicU32,
    pub(crate) tid: AtomicU32,
    pub(crate) ring: AtomicU32,
    pub(crate) name_len: AtomicU32,
    pub(crate) name: [AtomicU64; NAME_BYTES / 8],
    pub(crate) made: AtomicU64,
    pad: [u64; 3],
    pub(crate) producer: ProducerLine,
    pub(crate) consumer: ConsumerLine,
    pub(crate) open: [OpenEntry; OPEN_DEPTHS],
}

/// The fields that only the producer writes, on two separate cache lines: the prefetcher fetches lines in pairs.
#[repr(C, align(128))]
pub(crate) struct ProducerLine {
    pub(crate) head: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) finished: AtomicU32,
    pub(crate) overwrites: AtomicU32,
}

/// The most records that a producer writes before it publishes them: a text's, and two for its long slice.
pub(crate) const BURST: u64 = crate::record::MAX_TEXT.div_ceil(crate::record::TEXT_BYTES) as u64 + 2;
/// The smallest capacity of a flight recorder's ring, records.
pub(crate) const MIN_FLIGHT_RECORDS: u32 = 4 * BURST.next_power_of_two() as u32;

/// The fields that only the consumer writes.
#[repr(C, align(128))]
pub(crate) struct ConsumerLine {
    pub(crate) tail: AtomicU64,
    pub(crate) retired: AtomicU32,
}

/// An entry of the open-slice table.
#[repr(C)]
pub(crate) struct OpenEntry {
    number: AtomicU64,
    begin: AtomicU64,
    site_node: AtomicU64,
    zero: u64,
}

const _: () = assert!(
    std::mem::offset_of!(Header, producer) == 128
        && std::mem::offset_of!(Header, consumer) == 256
        && std::mem::offset_of!(Header, open) == 384
        && size_of::<Header>() == 384 + OPEN_DEPTHS * 32
        && size_of::<Header>() <= HEADER_BYTES
);

impl OpenEntry {
    /// Shows a slice as running, under a number that no other slice of the thread has. Only the producer calls this.
    #[inline]
    pub(crate) fn open(&self, number: u64, begin: u64, site: u32, node: u32) {
        self.number.store(0, Ordering::Relaxed);
        // A reader that sees any of the new fields must not see an old number on both sides of them.
        std::sync::atomic::fence(Ordering::Release);
        self.begin.store(begin, Ordering::Relaxed);
        self.site_node.store(u64::from(node) << 32 | u64::from(site), Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
    }

    /// Shows that the slice ended.
    #[inline]
    pub(crate) fn close(&self) {
        self.number.store(0, Ordering::Release);
    }

    /// The open slice (begin, site, node); `None` where there is none, or the entry changed while it was read.
    fn get(&self) -> Option<(u64, u32, u32)> {
        let number = self.number.load(Ordering::Acquire);
        let (begin, site_node) = (self.begin.load(Ordering::Relaxed), self.site_node.load(Ordering::Relaxed));
        std::sync::atomic::fence(Ordering::Acquire);
        let is_unchanged = self.number.load(Ordering::Relaxed) == number;
        (number != 0 && is_unchanged).then_some((begin, site_node as u32, (site_node >> 32) as u32))
    }
}

/// The path of a ring.
#[must_use]
pub fn path(trace_dir: &Path, pid: u32, ring: u32) -> PathBuf {
    trace_dir.join(format!("ring-{pid}-{ring}.ring"))
}

/// The process and number of a ring, from its file's name; `None` for other files.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<(u32, u32)> {
    let (pid, ring) = name.strip_prefix("ring-")?.strip_suffix(".ring")?.split_once('-')?;
    Some((pid.parse().ok()?, ring.parse().ok()?))
}
