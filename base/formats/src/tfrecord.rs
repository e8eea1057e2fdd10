//! TFRecord framing: the records of event files.
//!
//! ```text
//! offset  size
//!      0     8  length of the data, u64 little endian
//!      8     4  masked CRC-32C of these 8 bytes
//!     12     n  data
//!   12+n     4  masked CRC-32C of the data
//! ```
//!
//! The mask, `rotr(crc, 15) + 0xa282ead8`, keeps zeros and nested records from looking valid
//! (tensorflow/core/lib/io/record_writer.h, tensorflow/core/lib/hash/crc32c.h).
//!
//! [`RecordScanner`] finds the records in bytes that may still grow and may be damaged; [`RecordStream`] feeds it from
//! a file. What the scanner does with each kind of damage:
//!
//! - The data's CRC is wrong: the length is trusted, the record is skipped.
//! - The length's CRC is wrong, or the length is over 2 GiB: the scanner searches for the next header whose length
//!   CRC holds and whose record lies entirely in the input. Each byte is tried once, so the search costs no more than
//!   reading.
//! - The length's CRC holds but the record reaches past the input's end: either the record is still being written, or
//!   the length is wrong. The scanner waits, and meanwhile searches behind the header. If the record becomes complete
//!   first, it was being written; if another complete record is found inside it, the length was wrong. The chance that
//!   a length CRC holds by accident is below 2^-60 for each byte.

use std::{
    io::{self, Read},
    ops::Range,
};

mod buffers;
mod crc;

pub use crc::masked_crc;

/// Bytes of the length and its CRC.
const HEADER: usize = 12;
/// Bytes of the header and the data's CRC.
const FRAME: u64 = 16;
/// The smallest read, bytes; reads grow with the number of bytes that wait in the buffer.
const CHUNK: usize = 64 << 10;
/// The largest read, bytes.
const MAX_CHUNK: usize = 1 << 20;
/// The number of incomplete candidates that a search stores. Real files have one; more are noise with accidental CRCs.
const MAX_CANDIDATES: usize = 64;
/// The longest record, bytes: protobuf's limit for a message. A header with a larger length is damaged.
const MAX_RECORD: u64 = 1 << 31;
/// A search reports this many bytes as damaged when no record can begin in them, so that noise does not fill the
/// memory.
const SEARCH_STRIDE: usize = 1 << 20;

/// Appends one framed record to `out`.
pub fn append_record(out: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    out.reserve(data.len() + FRAME as usize);
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked_crc(&length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&masked_crc(data).to_le_bytes());
}

/// The fault of a range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// A record whose data does not match its CRC.
    BadData,
    /// A header that does not match its CRC, or whose length no record can have, up to the next good record.
    BadLength,
    /// A header whose CRC holds but whose length reaches past other complete records.
    TooLong,
}

/// A damaged range of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The fault.
    pub kind: DamageKind,
    /// Offsets from the beginning of the file.
    pub bytes: Range<u64>,
}

/// The next finding of a scanner.
#[derive(Debug, PartialEq, Eq)]
pub enum Scan<T> {
    /// A record whose two CRCs hold.
    Record(Record<T>),
    /// Bytes that were skipped.
    Damage(Damage),
    /// The input holds no other complete record: scan again when the input has grown.
    More,
}

/// A record: where its frame begins, and its data.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// Offset of the frame from the beginning of the file.
    pub offset: u64,
    /// The data, without the frame.
    pub data: T,
}

/// Finds records in bytes that may still grow. Stores no bytes: the caller passes all the existing input from
/// [`offset`](Self::offset) on.
#[derive(Debug, Clone, Default)]
pub struct RecordScanner {
    offset: u64,
    search: Option<Search>,
}

/// The search for the next good header behind a bad one at the scanner's offset.
#[derive(Debug, Clone)]
struct Search {
    kind: DamageKind,
    /// The position to try next, relative to the scanner's offset.
    next: usize,
    /// Positions where a length CRC holds but the record was not complete, with the record's length.
    candidates: Vec<(usize, u64)>,
}

impl RecordScanner {
    /// A scanner for input that begins `offset` bytes into the file.
    pub fn new(offset: u64) -> Self {
        Self { offset, search: None }
    }

    /// The offset in the file at which the next call's input begins: all bytes before it were reported.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next finding in `input`, which begins at [`offset`](Self::offset) and holds all existing bytes from there
    /// on. A record's data is given as its range in `input`.
    pub fn scan(&mut self, input: &[u8]) -> Scan<Range<usize>> {
        if self.search.is_none() {
            match header(input) {
                None => return Scan::More,
                Some(Header::Length(length)) if fits(0, length, input) => {
                    return self.record(0, length, input);
                }
                Some(Header::Length(length)) => {
                    self.begin_search(DamageKind::TooLong, vec![(0, length)]);
                }
                Some(Header::Bad) => self.begin_search(DamageKind::BadLength, Vec::new()),
            }
        }
        self.resume_search(input)
    }

    fn begin_search(&mut self, kind: DamageKind, candidates: Vec<(usize, u64)>) {
        self.search = Some(Search { kind, next: 1, candidates });
    }

    fn resume_search(&mut self, input: &[u8]) -> Scan<Range<usize>> {
        let Some(search) = &mut self.search else {
            return Scan::More;
        };
        let kind = search.kind;
        let n_damaged = match search.find(input) {
            Some((0, length)) => return self.record(0, length, input),
            Some((at, _)) => at,
            // No record can begin in the bytes that were tried.
            None if search.candidates.is_empty() && search.next >= SEARCH_STRIDE => search.next,
            None => return Scan::More,
        };
        let damage = Damage { kind, bytes: self.offset..self.offset + n_damaged as u64 };
        self.advance(n_damaged as u64);
        Scan::Damage(damage)
    }

    /// Checks and consumes the complete record at `at`.
    fn record(&mut self, at: usize, length: u64, input: &[u8]) -> Scan<Range<usize>> {
        let begin = at + HEADER;
        // `fits` holds, so the length is within the input.
        let end = begin + length as usize;
        let offset = self.offset + at as u64;
        self.advance(at as u64 + length + FRAME);
        if read_u32(&input[end..]) == masked_crc(&input[begin..end]) {
            Scan::Record(Record { offset, data: begin..end })
        } else {
            Scan::Damage(Damage { kind: DamageKind::BadData, bytes: offset..self.offset })
        }
    }

    fn advance(&mut self, n: u64) {
        self.offset += n;
        self.search = None;
    }
}

impl Search {
    /// Finds the first position with a complete record; returns it with the record's length.
    fn find(&mut self, input: &[u8]) -> Option<(usize, u64)> {
        if let Some(found) = self.candidates.iter().find(|(at, length)| fits(*at, *length, input)) {
            return Some(*found);
        }
        while let Some(Some(header)) = input.get(self.next..).map(header) {
            if let Header::Length(length) = header {
                if fits(self.next, length, input) {
                    return Some((self.next, length));
                }
                if self.candidates.len() < MAX_CANDIDATES {
                    self.candidates.push((self.next, length));
                }
            }
            self.next += 1;
        }
        None
    }
}

enum Header {
    /// The CRC holds and the length is possible.
    Length(u64),
    Bad,
}

/// The header at the beginning of `input`; `None` if it is incomplete.
fn header(input: &[u8]) -> Option<Header> {
    let (length, rest) = input.split_first_chunk::<8>()?;
    let crc = rest.first_chunk::<4>()?;
    let is_intact = masked_crc(length) == u32::from_le_bytes(*crc);
    let length = u64::from_le_bytes(*length);
    Some(if is_intact && length <= MAX_RECORD { Header::Length(length) } else { Header::Bad })
}

/// Whether a record of `length` at `at` lies entirely in the input.
fn fits(at: usize, length: u64, input: &[u8]) -> bool {
    length + FRAME <= (input.len() - at) as u64
}

fn read_u32(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b))
}

/// Whether `prefix` begins with a TFRecord header.
pub fn begins_with_record(prefix: &[u8]) -> bool {
    matches!(header(prefix), Some(Header::Length(_)))
}

/// Consecutive complete records with valid headers. [`records`](Self::records) verifies the checksums of their data,
/// perhaps on another thread than the one that reads.
#[derive(Debug)]
pub struct Block {
    /// The offset of the first record in the file.
    offset: u64,
    bytes: Vec<u8>,
    range: Range<usize>,
}

impl Block {
    /// The range of the file that the block covers.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.range.len() as u64
    }

    /// The block's records, or the damage in their place. The headers were verified when the block was made.
    pub fn records(&self) -> impl Iterator<Item = Scan<&[u8]>> {
        let (mut offset, mut rest) = (self.offset, &self.bytes[self.range.clone()]);
        std::iter::from_fn(move || {
            let length = u64::from_le_bytes(*rest.first_chunk()?);
            let (frame, remaining) = rest.split_at((length + FRAME) as usize);
            let (data, crc) = frame[HEADER..].split_at(length as usize);
            let bytes = offset..offset + frame.len() as u64;
            (offset, rest) = (bytes.end, remaining);
            Some(if read_u32(crc) == masked_crc(data) {
                Scan::Record(Record { offset: bytes.start, data })
            } else {
                Scan::Damage(Damage { kind: DamageKind::BadData, bytes })
            })
        })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        buffers::recycle(std::mem::take(&mut self.bytes));
    }
}

/// A [`RecordScanner`] with the bytes that it waits on, fed from a reader that may be reopened between calls.
///
/// Memory: one chunk (64 KiB to 1 MiB) plus the incomplete record; none while no record is incomplete.
#[derive(Debug, Default)]
pub struct RecordStream {
    scanner: RecordScanner,
    buf: Vec<u8>,
    /// The bytes of `buf` before this position were reported.
    start: usize,
    /// Whether the last finding was [`Scan::More`].
    is_exhausted: bool,
}

impl RecordStream {
    /// A stream whose first byte is `offset` bytes into the file.
    pub fn new(offset: u64) -> Self {
        Self { scanner: RecordScanner::new(offset), ..Self::default() }
    }

    /// The offset in the file at which the source must stand: all bytes before it were read.
    pub fn read_offset(&self) -> u64 {
        self.scanner.offset() + self.n_waiting()
    }

    /// The offset of the first byte that is not yet part of a finding.
    pub fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// The number of bytes at the end that belong to no complete record: an unfinished record, or a torn tail.
    pub fn n_waiting(&self) -> u64 {
        (self.buf.len() - self.start) as u64
    }

    /// Whether no record can be found before the source has more bytes.
    pub fn is_idle(&self) -> bool {
        self.is_exhausted || self.n_waiting() == 0
    }

    /// The next finding. `source` stands at [`read_offset`](Self::read_offset). [`Scan::More`] means that the source
    /// has no more bytes now; a later call goes on from there.
    ///
    /// # Errors
    /// Errors of `source`; no byte is lost, and the call may be repeated.
    pub fn next(&mut self, source: &mut impl Read) -> io::Result<Scan<&[u8]>> {
        let finding = loop {
            let before = self.scanner.offset();
            let scanned = self.scanner.scan(&self.buf[self.start..]);
            let base = self.start;
            self.start += (self.scanner.offset() - before) as usize;
            match scanned {
                Scan::More if self.fill(source)? == 0 => break Scan::More,
                Scan::More => {}
                Scan::Damage(damage) => break Scan::Damage(damage),
                Scan::Record(Record { offset, data }) => {
                    break Scan::Record(Record { offset, data: base + data.start..base + data.end });
                }
            }
        };
        self.is_exhausted = finding == Scan::More;
        Ok(match finding {
            Scan::Record(Record { offset, data }) => Scan::Record(Record { offset, data: &self.buf[data] }),
            Scan::Damage(damage) => Scan::Damage(damage),
            Scan::More => Scan::More,
        })
    }

    /// The next records as a block of about `size` bytes, which another thread may decode. `None` where the next bytes
    /// are not a complete record with a valid header, or there are none: [`next`](Self::next) reports which.
    ///
    /// # Errors
    /// Errors of `source`; no byte is lost, and the call may be repeated.
    pub fn next_block(&mut self, source: &mut impl Read, size: usize) -> io::Result<Option<Block>> {
        if self.scanner.search.is_some() {
            return Ok(None);
        }
        let n_missing = size.saturating_sub(self.buf.len() - self.start);
        if n_missing > 0 {
            let mut bytes = buffers::take(size);
            bytes.extend_from_slice(&self.buf[self.start..]);
            let read = source.take(n_missing as u64).read_to_end(&mut bytes);
            self.buf = bytes;
            self.start = 0;
            read?;
        }
        let input = &self.buf[self.start..];
        let mut n = 0;
        while let Some(Header::Length(length)) = header(&input[n..])
            && fits(n, length, input)
        {
            n += (length + FRAME) as usize;
        }
        if n == 0 {
            // An incomplete record may wait for long, so it gets no more memory than it needs.
            self.buf.shrink_to_fit();
            return Ok(None);
        }
        let range = self.start..self.start + n;
        let tail = self.buf[range.end..].to_vec();
        let bytes = std::mem::replace(&mut self.buf, tail);
        self.start = 0;
        self.is_exhausted = false;
        let offset = self.scanner.offset();
        self.scanner.advance(n as u64);
        Ok(Some(Block { offset, bytes, range }))
    }

    /// Reads one chunk and returns its length. The chunk grows with the number of waiting bytes, so that a large record
    /// costs few reads and a small file a small buffer.
    fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        self.buf.drain(..self.start);
        self.start = 0;
        let chunk = self.buf.len().clamp(CHUNK, MAX_CHUNK);
        // The bytes that were read before an error stay in `buf`.
        let n = source.take(chunk as u64).read_to_end(&mut self.buf);
        if self.buf.is_empty() {
            self.buf = Vec::new();
        }
        n
    }
}

#[cfg(test)]
mod tests;
