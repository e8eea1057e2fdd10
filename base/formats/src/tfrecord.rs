//! TFRecord framing: how event files hold their records.
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
//! - The length's CRC is wrong, or the length is beyond 2 GiB: the next header is searched for, one whose length CRC holds and whose record lies wholly
//!   in the input. Each byte is tried once, so the search costs no more than reading.
//! - The length's CRC holds but the record reaches past the input's end: either its writer is not done yet, or the
//!   length is wrong. The scanner waits, and meanwhile searches behind the header. If the record becomes whole first, it
//!   was the writer; if another whole record turns up inside it, it was the length. A valid length CRC there by accident
//!   has a chance below 2^-60 a byte.

use std::{
    io::{self, Read},
    ops::Range,
};

mod buffers;
mod crc;

pub use crc::masked_crc;

/// Length and its CRC.
const HEADER: usize = 12;
/// Header and the data's CRC.
const FRAME: u64 = 16;
/// The first read of a poll; it doubles with the amount read.
const CHUNK: usize = 64 << 10;
/// The largest single read.
const MAX_CHUNK: usize = 1 << 20;
/// How many unfinished candidates a search remembers. Real files have one; more means noise that happens to hold.
const MAX_CANDIDATES: usize = 64;
/// The longest record: what protobuf can decode. A header that says more is damaged.
const MAX_RECORD: u64 = 1 << 31;
/// A search gives up that many bytes at once when nothing in them could be a record, so that noise is not held in
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
    /// A header whose CRC holds but whose length reaches past other whole records.
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
    /// Nothing whole is left in the input: come back when it has grown.
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

/// Finds records in bytes that may still grow. Holds no bytes: the caller passes the input from
/// [`offset`](Self::offset) on, as much of it as there is.
#[derive(Debug, Clone, Default)]
pub struct RecordScanner {
    offset: u64,
    search: Option<Search>,
}

/// The search for the next good header behind a bad one at the scanner's offset.
#[derive(Debug, Clone)]
struct Search {
    kind: DamageKind,
    /// Every position before this one, relative to the scanner's offset, has been tried.
    tried: usize,
    /// Positions whose length CRC holds but whose record was not whole yet, with where it would end.
    candidates: Vec<(usize, u64)>,
}

impl RecordScanner {
    /// A scanner for input that begins `offset` bytes into the file.
    pub fn new(offset: u64) -> Self {
        Self { offset, search: None }
    }

    /// The offset in the file at which the input of the next call begins: everything before it is done with.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next finding in `input`, which begins at [`offset`](Self::offset) and holds all that exists from there on.
    /// A record's data is given as its range in `input`.
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
        self.search = Some(Search { kind, tried: 1, candidates });
    }

    fn resume_search(&mut self, input: &[u8]) -> Scan<Range<usize>> {
        let Some(search) = &mut self.search else {
            return Scan::More;
        };
        let kind = search.kind;
        let damaged = match search.find(input) {
            Some((0, length)) => return self.record(0, length, input),
            Some((at, _)) => at,
            None if search.candidates.is_empty() && search.tried >= SEARCH_STRIDE => search.tried,
            None => return Scan::More,
        };
        let damage = Damage { kind, bytes: self.offset..self.offset + damaged as u64 };
        self.advance(damaged as u64);
        Scan::Damage(damage)
    }

    /// The whole record at `at`, which is checked and consumed.
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
    /// The first position whose record is whole, with its length.
    fn find(&mut self, input: &[u8]) -> Option<(usize, u64)> {
        if let Some(found) = self.candidates.iter().find(|(at, length)| fits(*at, *length, input)) {
            return Some(*found);
        }
        while let Some(Some(header)) = input.get(self.tried..).map(header) {
            if let Header::Length(length) = header {
                if fits(self.tried, length, input) {
                    return Some((self.tried, length));
                }
                if self.candidates.len() < MAX_CANDIDATES {
                    self.candidates.push((self.tried, length));
                }
            }
            self.tried += 1;
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
    let holds = masked_crc(length) == u32::from_le_bytes(*crc);
    let length = u64::from_le_bytes(*length);
    Some(if holds && length <= MAX_RECORD { Header::Length(length) } else { Header::Bad })
}

/// Whether a record of `length` at `at` lies wholly in the input.
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

/// Whole records one behind the other, with headers that hold. The checksums of their data are verified by
/// [`records`](Self::records), which may run on another thread than the one that reads.
#[derive(Debug)]
pub struct Block {
    /// The offset of the first record in the file.
    offset: u64,
    bytes: Vec<u8>,
    range: Range<usize>,
}

impl Block {
    /// The bytes of the file that it covers.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.range.len() as u64
    }

    /// Its records, or the damage that stands in their place. The headers were verified when the block was cut.
    pub fn records(&self) -> impl Iterator<Item = Scan<&[u8]>> {
        let (mut offset, mut rest) = (self.offset, &self.bytes[self.range.clone()]);
        std::iter::from_fn(move || {
            let length = u64::from_le_bytes(*rest.first_chunk()?);
            let (frame, behind) = rest.split_at((length + FRAME) as usize);
            let (data, crc) = frame[HEADER..].split_at(length as usize);
            let bytes = offset..offset + frame.len() as u64;
            (offset, rest) = (bytes.end, behind);
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
        buffers::give_back(std::mem::take(&mut self.bytes));
    }
}

/// A [`RecordScanner`] with the bytes that it waits on, fed from a reader that may be reopened between calls.
///
/// Memory: one chunk (64 KiB to 1 MiB) plus the unfinished record; nothing while there is nothing unfinished.
#[derive(Debug, Default)]
pub struct RecordStream {
    scanner: RecordScanner,
    buf: Vec<u8>,
    /// Bytes of `buf` before this one are done with.
    start: usize,
    /// The last finding was [`Scan::More`].
    is_exhausted: bool,
}

impl RecordStream {
    /// A stream whose first byte is `offset` bytes into the file.
    pub fn new(offset: u64) -> Self {
        Self { scanner: RecordScanner::new(offset), ..Self::default() }
    }

    /// The offset at which the source must stand: everything before was read.
    pub fn read_offset(&self) -> u64 {
        self.scanner.offset() + self.n_waiting()
    }

    /// The offset of the first byte that is not yet part of a finding.
    pub fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// How many bytes at the end belong to nothing whole yet: a record being written, or a torn tail.
    pub fn n_waiting(&self) -> u64 {
        (self.buf.len() - self.start) as u64
    }

    /// Whether nothing can be found before the source has more.
    pub fn is_idle(&self) -> bool {
        self.is_exhausted || self.n_waiting() == 0
    }

    /// The next finding. `source` stands at [`read_offset`](Self::read_offset). [`Scan::More`] means that the source
    /// has nothing more now; a later call goes on from there.
    ///
    /// # Errors
    /// Those of `source`; nothing is lost, the call may be repeated.
    pub fn next(&mut self, source: &mut impl Read) -> io::Result<Scan<&[u8]>> {
        let found = loop {
            let before = self.scanner.offset();
            let found = self.scanner.scan(&self.buf[self.start..]);
            let base = self.start;
            self.start += (self.scanner.offset() - before) as usize;
            match found {
                Scan::More if self.fill(source)? == 0 => break Scan::More,
                Scan::More => {}
                Scan::Damage(damage) => break Scan::Damage(damage),
                Scan::Record(Record { offset, data }) => {
                    break Scan::Record(Record { offset, data: base + data.start..base + data.end });
                }
            }
        };
        self.is_exhausted = found == Scan::More;
        Ok(match found {
            Scan::Record(Record { offset, data }) => Scan::Record(Record { offset, data: &self.buf[data] }),
            Scan::Damage(damage) => Scan::Damage(damage),
            Scan::More => Scan::More,
        })
    }

    /// The next records as a block of about `size` bytes: fast, and for another thread to decode. `None` when what
    /// comes next is not a whole record behind a good header, or not even there: [`next`](Self::next) says what it is.
    ///
    /// # Errors
    /// Those of `source`; nothing is lost, the call may be repeated.
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
            // What waits here waits in no more memory than it needs.
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

    /// Reads one chunk; the number of bytes read. The chunk grows with what is waiting, so that a large record costs
    /// few reads, and a small file a small buffer.
    fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        self.buf.drain(..self.start);
        self.start = 0;
        let chunk = self.buf.len().clamp(CHUNK, MAX_CHUNK);
        // What was read before an error stays.
        let n = source.take(chunk as u64).read_to_end(&mut self.buf);
        if self.buf.is_empty() {
            self.buf = Vec::new();
        }
        n
    }
}

#[cfg(test)]
mod tests;
