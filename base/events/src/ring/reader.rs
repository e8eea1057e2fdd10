//! Reading rings: draining them as the consumer, or peeking without consuming. Files are not trusted.

use super::file::read_exact_at;
use super::{BURST, HEADER_BYTES, Header, MAGIC, MAX_RECORDS, NAME_BYTES, OPEN_DEPTHS, Slot, protocol};
use crate::names::{NodeId, SiteId};
use crate::record::Record;
use memmap2::MmapRaw;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Why a ring cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The file cannot be opened, read or mapped.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The producer is still creating the ring: try again later.
    #[error("the ring is being made")]
    NotReady,
    /// The file is not a ring, or a ring of another version.
    #[error("not a ring of this version (magic {0:#018x})")]
    Foreign(u64),
    /// The header contradicts itself or the file's length.
    #[error("damaged ring header: {0}")]
    Damaged(&'static str),
}

/// The writer of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingInfo {
    /// The process's id.
    pub pid: u32,
    /// The operating system's thread id.
    pub tid: u32,
    /// The ring's number in its process.
    pub ring: u32,
    /// The thread's name; empty when it has none.
    pub name: String,
    /// The ring's capacity in records, a power of two.
    pub capacity: u32,
    /// The time of the ring's creation, ticks: distinguishes it from an earlier ring with the same number.
    pub made: u64,
}

/// A slice that began and has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlice {
    /// The begin, ticks.
    pub begin: u64,
    /// The call site.
    pub site: SiteId,
    /// The graph node or [`NodeId::NONE`].
    pub node: NodeId,
    /// The number of slices that are open around this one.
    pub depth: u32,
}

/// The result of one [`RingReader::drain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainCounts {
    /// The number of records that were appended.
    pub records: usize,
    /// Whether head and tail contradicted each other; the content of the ring is discarded.
    pub damaged: bool,
}

/// The length of a header's fixed part, in u64 words: up to and including `made`.
const FIXED_WORDS: usize = 13;

/// Parses a header's fixed part, of a mapped or a read file.
fn parse_fixed(words: &[u64; FIXED_WORDS], file_len: u64) -> Result<RingInfo, RingError> {
    let half = |i: usize| (words[i / 2] >> (32 * (i % 2))) as u32;
    match words[0] {
        MAGIC => {}
        0 => return Err(RingError::NotReady),
        magic => return Err(RingError::Foreign(magic)),
    }
    let (header_bytes, capacity, name_len) = (half(2), half(3), half(7) as usize);
    if header_bytes as usize != HEADER_BYTES {
        return Err(RingError::Damaged("header size"));
    }
    if !capacity.is_power_of_two() || capacity > MAX_RECORDS {
        return Err(RingError::Damaged("capacity"));
    }
    if file_len != HEADER_BYTES as u64 + u64::from(capacity) * 32 {
        return Err(RingError::Damaged("the file's length is not that of its capacity"));
    }
    let name: Vec<u8> = words[4..].iter().flat_map(|w| w.to_le_bytes()).take(name_len.min(NAME_BYTES)).collect();
    let name = String::from_utf8_lossy(&name).into_owned();
    Ok(RingInfo { pid: half(4), tid: half(5), ring: half(6), name, made: words[12], capacity })
}

/// The number of records between the positions; `None` where the positions contradict each other or the capacity.
fn n_filled(head: u64, tail: u64, capacity: u32) -> Option<u64> {
    head.checked_sub(tail).filter(|&n| n <= u64::from(capacity))
}

/// The consumer of a ring. Only one process at a time may drain a ring, which [`crate::control::Collector`] ensures.
pub struct RingReader {
    map: MmapRaw,
    path: PathBuf,
    info: RingInfo,
    tail: u64,
}

impl RingReader {
    /// Opens a ring to drain it.
    ///
    /// # Errors
    /// The file is missing, not writable, not ready, not a ring, or damaged.
    pub fn open(path: &Path) -> Result<Self, RingError> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let len = file.metadata()?.len();
        if len < HEADER_BYTES as u64 {
            return Err(if len == 0 { RingError::NotReady } else { RingError::Damaged("shorter than a header") });
        }
        let map = MmapRaw::map_raw(&file)?;
        if map.len() as u64 != len {
            return Err(RingError::NotReady); // it grew between the two calls
        }
        // SAFETY: the mapping is page-aligned and longer than a header, which is all atomics and padding.
        let header = unsafe { &*map.as_ptr().cast::<Header>() };
        let mut words = [header.magic.load(Ordering::Acquire); FIXED_WORDS];
        for (i, word) in words.iter_mut().enumerate().skip(1) {
            // SAFETY: FIXED_WORDS words lie inside the header, which is 8-byte aligned.
            *word = unsafe { &*map.as_ptr().cast::<std::sync::atomic::AtomicU64>().add(i) }.load(Ordering::Relaxed);
        }
        let info = parse_fixed(&words, len)?;
        let tail = header.consumer.tail.load(Ordering::Relaxed);
        Ok(Self { path: path.to_owned(), info, tail, map })
    }

    fn header(&self) -> &Header {
        // SAFETY: as in `open`, which checked the length.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// The slots; as many as the capacity, which `open` compared with the length.
    fn slots(&self) -> &[Slot] {
        // SAFETY: `open` checked that the mapping holds the header and `capacity` slots; slots are atomics.
        unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(HEADER_BYTES).cast::<Slot>(), self.info.capacity as usize)
        }
    }

    /// The ring's writer.
    #[must_use]
    pub fn info(&self) -> &RingInfo {
        &self.info
    }

    /// The file's path; once the ring is retired, the path of the removed file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends every published record to `out`, at most a ring's capacity, and frees the records' slots.
    pub fn drain(&mut self, out: &mut Vec<Record>) -> DrainCounts {
        let (drained, head) = self.copy_part(0, usize::MAX, out);
        // Where another process damaged the positions, the ring starts again from the producer's head.
        self.tail = head;
        protocol::free_to(&self.header().consumer.tail, head);
        drained
    }

    /// As [`drain`](Self::drain), but consumes no record: [`consume_to`](Self::consume_to) does so once they are
    /// stored.
    pub fn peek(&self, out: &mut Vec<Record>) -> DrainCounts {
        self.copy_part(0, usize::MAX, out).0
    }

    /// As [`peek`](Self::peek), but skips the oldest `skip` records and appends at most `max`.
    pub fn peek_part(&self, skip: u64, max: usize, out: &mut Vec<Record>) -> DrainCounts {
        self.copy_part(skip, max, out).0
    }

    /// Copies at most `max` published records after the oldest `skip`; also returns the producer's position.
    fn copy_part(&self, skip: u64, max: usize, out: &mut Vec<Record>) -> (DrainCounts, u64) {
        let head = protocol::published(&self.header().producer.head);
        let Some(n) = n_filled(head, self.tail, self.info.capacity) else {
            return (DrainCounts { records: 0, damaged: true }, head);
        };
        let n = n.saturating_sub(skip).min(max as u64);
        let from = self.tail + skip;
        self.copy(from, from + n, out);
        (DrainCounts { records: n as usize, damaged: false }, head)
    }

    /// Frees the slots of the records before number `end`, which a [`peek`](Self::peek) or a
    /// [`snapshot`](Self::snapshot) has returned.
    pub fn consume_to(&mut self, end: u64) {
        self.tail = self.tail.max(end.min(self.published()));
        protocol::free_to(&self.header().consumer.tail, self.tail);
    }

    /// The number of records that were consumed, which is the sequence number of the next one.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.tail
    }

    /// Whether the ring is a flight recorder's, whose old records are overwritten; [`snapshot`](Self::snapshot) reads
    /// it.
    #[must_use]
    pub fn overwrites(&self) -> bool {
        self.header().producer.overwrites.load(Ordering::Relaxed) != 0
    }

    /// Returns the unconsumed records of a flight recorder's ring, while its producer goes on. Consumes no record:
    /// [`consume_to`](Self::consume_to) does so once they are stored.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (capacity, before) = (u64::from(self.info.capacity), self.tail);
        let head = protocol::published(&self.header().producer.head);
        let first = self.tail.max(head.saturating_sub(capacity));
        let mut records = Vec::new();
        if first < head {
            self.copy(first, head, &mut records);
        }
        let first_intact =
            protocol::first_intact(&self.header().producer.head, capacity, BURST).clamp(first, head.max(first));
        records.drain(..(first_intact - first) as usize);
        Snapshot { first: first_intact, overwritten: first_intact.saturating_sub(before), records }
    }

    /// Copies the records between two positions, at most `capacity` of them.
    fn copy(&self, first: u64, end: u64, out: &mut Vec<Record>) {
        let (slots, mask) = (self.slots(), u64::from(self.info.capacity) - 1);
        // Two contiguous ranges, before and after the wrap-around; the mask keeps both inside the slots.
        let n = (end - first) as usize;
        let from = (first & mask) as usize;
        let first = n.min(slots.len() - from);
        out.reserve(n);
        for run in [&slots[from..from + first], &slots[..n - first]] {
            out.extend(run.iter().map(|slot| Record::from_words(slot.load())));
        }
    }

    /// The number of records to be drained; 0 where the positions are damaged.
    #[must_use]
    pub fn pending(&self) -> u64 {
        n_filled(protocol::published(&self.header().producer.head), self.tail, self.info.capacity).unwrap_or(0)
    }

    /// Whether the positions contradict each other: another process wrote to the file.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        n_filled(protocol::published(&self.header().producer.head), self.tail, self.info.capacity).is_none()
    }

    /// The number of records ever published, the drained ones included.
    #[must_use]
    pub fn published(&self) -> u64 {
        protocol::published(&self.header().producer.head)
    }

    /// The number of records that were dropped because the ring was full. Published + dropped = emitted.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.header().producer.dropped.load(Ordering::Relaxed)
    }

    /// Whether the thread ended or recording stopped: a drain after this returned true empties the ring for good.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.header().producer.finished.load(Ordering::Acquire) != 0
    }

    /// The slices that are open now, outermost first. A slice may be both here and among the records for a moment:
    /// its record is published before its entry closes.
    #[must_use]
    pub fn open_slices(&self) -> Vec<OpenSlice> {
        let entries = self.header().open.iter().zip(0..);
        entries.filter_map(|(entry, depth)| entry.get().map(|fields| open_slice(fields, depth))).collect()
    }

    /// Removes the file of a finished, drained ring and notifies its process, which then releases the mapping. Until
    /// then the ring counts against the process's limit.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn retire(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)?;
        self.header().consumer.retired.store(1, Ordering::Relaxed);
        Ok(())
    }
}

fn open_slice((begin, site, node): (u64, u32, u32), depth: u32) -> OpenSlice {
    OpenSlice { begin, site: SiteId::from_bits(site), node: NodeId::new(node), depth }
}

/// The content of a flight recorder's ring.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The sequence number of the first of `records`.
    pub first: u64,
    /// The number of records that were overwritten before they were consumed.
    pub overwritten: u64,
    /// The records, oldest first.
    pub records: Vec<Record>,
}

/// A ring's content at one moment.
#[derive(Clone, Debug)]
pub struct RingContents {
    /// The ring's writer.
    pub info: RingInfo,
    /// The position of the first of `records`: how many were drained before.
    pub first: u64,
    /// The published records that are not drained.
    pub records: Vec<Record>,
    /// The number of records that were dropped because the ring was full.
    pub dropped: u64,
    /// Whether the thread ended or recording stopped.
    pub finished: bool,
    /// The slices that were open, outermost first.
    pub open: Vec<OpenSlice>,
    /// Whether the positions contradicted each other; `records` is empty then.
    pub damaged: bool,
    /// Whether the ring is a flight recorder's: the records before `first` were overwritten.
    pub overwrites: bool,
}

/// Reads a ring without consuming, without write permission and without mapping it, so that a file that is truncated
/// while it is read gives an error, not a signal. For rings whose producer is dead or whose consumer is another
/// process.
///
/// # Errors
/// The file is missing, not a ring, or damaged.
pub fn peek(path: &Path) -> Result<RingContents, RingError> {
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Err(RingError::NotReady);
    }
    let mut page = [0; HEADER_BYTES];
    read_exact_at(&file, &mut page, 0).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => RingError::Damaged("shorter than a header"),
        _ => e.into(),
    })?;
    let word = |at: usize| page[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let info = parse_fixed(&std::array::from_fn(|i| word(8 * i)), file.metadata()?.len())?;
    let (head, tail) = (word(128), word(256));
    let open = (0..OPEN_DEPTHS).map(|depth| (depth, 384 + 32 * depth)).filter(|&(_, at)| word(at) != 0);
    let open = open.map(|(depth, at)| {
        let site_node = word(at + 16);
        open_slice((word(at + 8), site_node as u32, (site_node >> 32) as u32), depth as u32)
    });
    let mut peek = RingContents {
        first: tail,
        records: Vec::new(),
        dropped: word(136),
        finished: word(144) as u32 != 0,
        open: open.collect(),
        damaged: false,
        overwrites: (word(144) >> 32) as u32 != 0,
        info,
    };
    if peek.overwrites {
        peek.first = tail.max(head.saturating_sub(u64::from(peek.info.capacity)));
        peek.read_records(&file, head.saturating_sub(peek.first))?;
        peek.remove_overwritten(&file)?;
        return Ok(peek);
    }
    match n_filled(head, tail, peek.info.capacity) {
        None => peek.damaged = true,
        Some(n) => peek.read_records(&file, n)?,
    }
    Ok(peek)
}

impl RingContents {
    /// Removes the records that the producer may have overwritten while they were read.
    fn remove_overwritten(&mut self, file: &File) -> io::Result<()> {
        let mut head = [0; 8];
        read_exact_at(file, &mut head, 128)?;
        let first_intact = u64::from_le_bytes(head).saturating_add(BURST).saturating_sub(u64::from(self.info.capacity));
        let n_overwritten = first_intact.saturating_sub(self.first).min(self.records.len() as u64);
        self.records.drain(..n_overwritten as usize);
        self.first += n_overwritten;
        Ok(())
    }

    /// Reads `n` records from position `first` on, then removes those that a consumer drained meanwhile: only their
    /// slots may have been overwritten.
    fn read_records(&mut self, file: &File, n: u64) -> io::Result<()> {
        let mask = u64::from(self.info.capacity) - 1;
        let from = self.first & mask;
        let run = n.min(u64::from(self.info.capacity) - from) as usize;
        self.records = vec![Record::default(); n as usize];
        let (front, back) = self.records.split_at_mut(run);
        read_exact_at(file, bytemuck::cast_slice_mut(front), HEADER_BYTES as u64 + from * 32)?;
        read_exact_at(file, bytemuck::cast_slice_mut(back), HEADER_BYTES as u64)?;
        let mut tail = [0; 8];
        read_exact_at(file, &mut tail, 256)?;
        let n_drained = u64::from_le_bytes(tail).saturating_sub(self.first).min(n);
        self.records.drain(..n_drained as usize);
        self.first += n_drained;
        Ok(())
    }
}
