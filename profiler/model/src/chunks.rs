//! The chunk file `chunks-PID.bin`: the records that the collector PID drained from rings.
//!
//! Append-only, little-endian: a file header, then chunks, each the next records of one ring. (A second collector with
//! the same process id writes `chunks-PID-2.bin`, and so on.)
//!
//! ```text
//! file  byte 0     magic "STPCHNK1"                chunk  byte 0     magic "STPK"
//!            8     collector's pid u32                         4     header crc u32: of bytes 8..64
//!            12    zero u32                                    8     payload crc u32: of bytes 64..end
//!            16    begun i64, CLOCK_MONOTONIC_RAW ns           12    count u32, records, at most 65,536
//!            24    crc u32: of bytes 0..24                     16    pid u32
//!            28    zero u32                                    20    ring number u32
//!            32    first chunk                                 24    made u64: distinguishes rings with the same number
//!                                                              32    first u64: sequence number of the first record
//!                                                              40    dropped u64: records that the ring could not take, in total
//!                                                              48    written i64, CLOCK_MONOTONIC_RAW ns
//!                                                              56    flags u32: 1 the ring's last chunk, 2 size limit reached,
//!                                                                    4 a flight recorder's: records before it were written over
//!                                                              60    zero u32
//!                                                              64    count x 32 bytes: the records
//! ```
//!
//! Checksums are CRC-32C. The header has a separate one, so that the number of lost records is known exactly if only a
//! payload is damaged; if a header is damaged, the number follows from the sequence numbers. The chunks of a batch are
//! written in one `write`, and records are removed from the ring only after that: the records of a chunk that a crash
//! cut short are still in the ring.

use events::Record;

/// Magic of the file.
const FILE_MAGIC: [u8; 8] = *b"STPCHNK1";
/// Length of the file header.
pub const FILE_HEADER: usize = 32;
/// Magic of a chunk.
pub const SYNC: [u8; 4] = *b"STPK";
/// Length of a chunk's header.
const CHUNK_HEADER: usize = 64;
/// Records of a chunk, at most.
pub const MAX_RECORDS: usize = 1 << 16;
/// Length of the longest chunk.
pub const MAX_CHUNK: usize = CHUNK_HEADER + MAX_RECORDS * size_of::<Record>();

/// The ring ended with this chunk.
pub const FLAG_LAST: u32 = 1;
/// The collector stopped here because the trace reached its size limit.
pub const FLAG_LIMIT: u32 = 2;

/// The chunk is from a flight recorder's ring: the records that are missing before the chunk were overwritten.
pub const FLAG_FLIGHT: u32 = 4;

/// The header of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Number of records.
    pub count: u32,
    /// The producing process.
    pub pid: u32,
    /// Number of the ring.
    pub ring: u32,
    /// Distinguishes rings with the same number.
    pub made: u64,
    /// Sequence number of the first record.
    pub first: u64,
    /// Records that the ring could not take so far.
    pub dropped: u64,
    /// Time of writing, CLOCK_MONOTONIC_RAW ns.
    pub written_ns: i64,
    /// [`FLAG_LAST`], [`FLAG_LIMIT`], [`FLAG_FLIGHT`].
    pub flags: u32,
}

/// The header of a chunk file.
#[must_use]
pub fn file_header(pid: u32, begun_ns: i64) -> [u8; FILE_HEADER] {
    let mut bytes = [0; FILE_HEADER];
    bytes[..8].copy_from_slice(&FILE_MAGIC);
    bytes[8..12].copy_from_slice(&pid.to_le_bytes());
    bytes[16..24].copy_from_slice(&begun_ns.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..24]);
    bytes[24..28].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Length of a chunk's header, in records.
const HEADER_RECORDS: usize = CHUNK_HEADER / size_of::<Record>();

/// Begins a chunk at the end of `batch`. The caller appends its records, at most [`MAX_RECORDS`], and passes the
/// returned position to [`end_chunk`].
pub fn begin_chunk(batch: &mut Vec<Record>) -> usize {
    batch.resize(batch.len() + HEADER_RECORDS, Record::default());
    batch.len()
}

/// Writes the header of the chunk whose records begin at `at`. Writes the number of these records, not `header.count`.
pub fn end_chunk(header: ChunkHeader, at: usize, batch: &mut [Record]) {
    end_chunk_with_crc(header, crc32c::crc32c(bytemuck::cast_slice(&batch[at..])), at, batch);
}

/// As [`end_chunk`], with the known checksum of the records.
pub fn end_chunk_with_crc(header: ChunkHeader, crc: u32, at: usize, batch: &mut [Record]) {
    let (before, records) = batch.split_at_mut(at);
    debug_assert!(records.len() <= MAX_RECORDS);
    let h: &mut [u8] = bytemuck::cast_slice_mut(&mut before[at - HEADER_RECORDS..]);
    h.fill(0);
    h[..4].copy_from_slice(&SYNC);
    h[8..12].copy_from_slice(&crc.to_le_bytes());
    h[12..16].copy_from_slice(&(records.len() as u32).to_le_bytes());
    h[16..20].copy_from_slice(&header.pid.to_le_bytes());
    h[20..24].copy_from_slice(&header.ring.to_le_bytes());
    h[24..32].copy_from_slice(&header.made.to_le_bytes());
    h[32..40].copy_from_slice(&header.first.to_le_bytes());
    h[40..48].copy_from_slice(&header.dropped.to_le_bytes());
    h[48..56].copy_from_slice(&header.written_ns.to_le_bytes());
    h[56..60].copy_from_slice(&header.flags.to_le_bytes());
    let crc = crc32c::crc32c(&h[8..]);
    h[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

/// Parses the header at the beginning of `bytes`; returns it with the payload's checksum. `None` if there is no valid
/// header. `bytes` must have at least the length of a header.
fn parse_header(bytes: &[u8]) -> Option<(ChunkHeader, u32)> {
    if bytes[..4] != SYNC || crc32c::crc32c(&bytes[8..CHUNK_HEADER]) != u32_at(bytes, 4) {
        return None;
    }
    let header = ChunkHeader {
        count: u32_at(bytes, 12),
        pid: u32_at(bytes, 16),
        ring: u32_at(bytes, 20),
        made: u64_at(bytes, 24),
        first: u64_at(bytes, 32),
        dropped: u64_at(bytes, 40),
        written_ns: u64_at(bytes, 48).cast_signed(),
        flags: u32_at(bytes, 56),
    };
    (header.count as usize <= MAX_RECORDS).then_some((header, u32_at(bytes, 8)))
}

/// Counts the bytes at the beginning of `bytes` that are final, however the file grows: complete chunks, and damage.
/// `bytes` begins at a chunk, or with the file's header if `at_begin`.
#[must_use]
pub fn n_final_bytes(bytes: &[u8], at_begin: bool) -> usize {
    let mut n_final = if at_begin { FILE_HEADER } else { 0 };
    if bytes.len() < n_final {
        return 0;
    }
    while let Some(rest) = bytes.get(n_final..).filter(|rest| rest.len() >= CHUNK_HEADER) {
        let len = match parse_header(rest) {
            Some((header, _)) => CHUNK_HEADER + header.count as usize * size_of::<Record>(),
            None => {
                let last_offset = rest.len() - CHUNK_HEADER;
                let is_header = |offset: &usize| rest[*offset] == SYNC[0] && parse_header(&rest[*offset..]).is_some();
                (1..=last_offset).find(is_header).unwrap_or_else(|| rest.len().saturating_sub(MAX_CHUNK))
            }
        };
        if len == 0 || rest.len() < len {
            break;
        }
        n_final += len;
    }
    n_final
}

/// The next chunk that a [`Scanner`] found.
#[derive(Clone, Debug, PartialEq)]
pub enum ScannedChunk {
    /// A valid chunk; its records were appended to the caller's vector.
    Chunk(ChunkHeader),
    /// A chunk whose records are damaged and were left out.
    BadPayload(ChunkHeader),
}

/// Damage in a file so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of damaged ranges.
    pub places: u64,
    /// Bytes of these ranges, which were skipped.
    pub bytes: u64,
    /// Offset of the first range in the file.
    pub first_at: u64,
}

/// Parses a chunk file while it grows. The file's bytes are fed in order, in pieces of any size.
///
/// Damage is skipped up to the next valid chunk. An unfinished chunk at the end waits for its remaining bytes. The
/// memory is bounded by [`MAX_CHUNK`] plus one piece.
#[derive(Debug, Default)]
pub struct Scanner {
    bytes: Vec<u8>,
    /// The number of `bytes` that are parsed.
    n_parsed: usize,
    /// Offset in the file of `bytes[0]`.
    offset: u64,
    has_header: bool,
    /// Whether the bytes before the position were skipped as damage.
    is_in_gap: bool,
    damage: Damage,
}

impl Scanner {
    /// Appends the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.n_parsed);
        self.offset += self.n_parsed as u64;
        self.n_parsed = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next chunk; `None` if more bytes are needed. Appends the records of a valid chunk to `records`.
    pub fn next(&mut self, records: &mut Vec<Record>) -> Option<ScannedChunk> {
        if !self.has_header {
            self.check_file_header()?;
        }
        loop {
            let rest = &self.bytes[self.n_parsed..];
            let sync_len = rest.len().min(SYNC.len());
            if rest[..sync_len] == SYNC[..sync_len] {
                let header = rest.get(..CHUNK_HEADER)?;
                if let Some((header, crc)) = parse_header(header) {
                    let payload = rest.get(CHUNK_HEADER..CHUNK_HEADER + header.count as usize * size_of::<Record>())?;
                    return Some(self.take_chunk(header, crc, payload.len(), records));
                }
            }
            let next = rest.get(1..)?.iter().position(|b| *b == SYNC[0]).map_or(rest.len(), |n| n + 1);
            self.skip(next);
        }
    }

    /// Consumes the chunk with this header and payload checksum, and appends its records if the payload is valid.
    fn take_chunk(&mut self, header: ChunkHeader, crc: u32, len: usize, records: &mut Vec<Record>) -> ScannedChunk {
        let from = self.n_parsed + CHUNK_HEADER;
        let payload = &self.bytes[from..from + len];
        let is_valid = crc32c::crc32c(payload) == crc;
        if is_valid {
            records.extend(payload.chunks_exact(size_of::<Record>()).map(bytemuck::pod_read_unaligned::<Record>));
            self.is_in_gap = false;
            self.n_parsed = from + len;
            return ScannedChunk::Chunk(header);
        }
        self.is_in_gap = false;
        // The header is valid, so the next chunk begins after a payload of this length.
        self.skip(CHUNK_HEADER + len);
        self.is_in_gap = false;
        ScannedChunk::BadPayload(header)
    }

    /// Checks the file header; a damaged header is skipped like other damage. `None` if more bytes are needed.
    fn check_file_header(&mut self) -> Option<()> {
        let header = self.bytes.get(self.n_parsed..self.n_parsed + FILE_HEADER)?;
        self.has_header = true;
        if header[..8] == FILE_MAGIC && crc32c::crc32c(&header[..24]) == u32_at(header, 24) {
            self.n_parsed += FILE_HEADER;
        }
        Some(())
    }

    fn skip(&mut self, n: usize) {
        if !self.is_in_gap {
            self.is_in_gap = true;
            if self.damage.places == 0 {
                self.damage.first_at = self.offset + self.n_parsed as u64;
            }
            self.damage.places += 1;
        }
        self.damage.bytes += n as u64;
        self.n_parsed += n;
    }

    /// Damage so far.
    #[must_use]
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// Bytes of an unfinished chunk at the end.
    #[must_use]
    pub fn n_unfinished_bytes(&self) -> usize {
        self.bytes.len() - self.n_parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(i: u64) -> Record {
        Record { begin: i, dur: 7, site: 1, node: u32::MAX, correlation: i as u32, arg: !i }
    }

    fn append_chunk(header: ChunkHeader, records: &[Record], out: &mut Vec<u8>) {
        let mut batch = Vec::new();
        let at = begin_chunk(&mut batch);
        batch.extend_from_slice(records);
        end_chunk(header, at, &mut batch);
        out.extend_from_slice(bytemuck::cast_slice(&batch));
    }

    /// A file of chunks of these sizes, all of one ring.
    fn file(sizes: &[usize]) -> (Vec<u8>, Vec<(ChunkHeader, Vec<Record>)>) {
        let mut bytes = file_header(9, 5).to_vec();
        let mut chunks = Vec::new();
        let mut first = 0;
        for size in sizes {
            let records: Vec<Record> = (first..first + *size as u64).map(record).collect();
            let count = *size as u32;
            let header = ChunkHeader { count, pid: 9, ring: 3, made: 77, first, dropped: 1, written_ns: 8, flags: 0 };
            append_chunk(header, &records, &mut bytes);
            first += *size as u64;
            chunks.push((header, records));
        }
        (bytes, chunks)
    }

    /// Everything that the scanner gives for these bytes, fed in pieces of `piece` bytes.
    fn scan(bytes: &[u8], piece: usize) -> (Vec<(ScannedChunk, Vec<Record>)>, Scanner) {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        for part in bytes.chunks(piece.max(1)) {
            scanner.feed(part);
            let mut records = Vec::new();
            while let Some(f) = scanner.next(&mut records) {
                found.push((f, std::mem::take(&mut records)));
            }
        }
        (found, scanner)
    }

    #[test]
    fn bytes_are_as_drawn() {
        let header = ChunkHeader { count: 1, pid: 2, ring: 3, made: 4, first: 5, dropped: 6, written_ns: 7, flags: 1 };
        let mut bytes = Vec::new();
        append_chunk(header, &[record(0)], &mut bytes);
        assert_eq!(bytes.len(), 96);
        assert_eq!(&bytes[..4], b"STPK");
        let words: Vec<u32> = bytes[12..64].chunks(4).map(|w| u32_at(w, 0)).collect();
        assert_eq!(words, [1, 2, 3, 4, 0, 5, 0, 6, 0, 7, 0, 1, 0]);
        assert_eq!(file_header(0x0403_0201, 1)[..17], *b"STPCHNK1\x01\x02\x03\x04\0\0\0\0\x01");
    }

    proptest! {
        #[test]
        fn round_trip_in_any_pieces(sizes in prop::collection::vec(0usize..40, 0..8), piece in 1usize..300) {
            let (bytes, chunks) = file(&sizes);
            let (found, scanner) = scan(&bytes, piece);
            let want: Vec<_> = chunks.into_iter().map(|(h, r)| (ScannedChunk::Chunk(h), r)).collect();
            prop_assert_eq!(found, want);
            prop_assert_eq!(scanner.damage(), Damage::default());
            prop_assert_eq!(scanner.n_unfinished_bytes(), 0);
        }

        #[test]
        fn damage_never_gives_a_wrong_record(
            sizes in prop::collection::vec(0usize..20, 1..8),
            piece in 1usize..3000,
            hits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, 1usize..200, any::<u8>()), 1..4),
        ) {
            let (mut bytes, chunks) = file(&sizes);
            for (at, what, len, xor) in hits {
                let at = at.index(bytes.len());
                let end = (at + len).min(bytes.len());
                match what {
                    0 => bytes[at] ^= xor,
                    1 => bytes[at..end].fill(0),
                    2 => bytes.truncate(at.max(1)),
                    _ => { let copy = bytes[at..end].to_vec(); bytes.splice(at..at, copy); }
                }
            }
            let (found, _) = scan(&bytes, piece);
            for (f, records) in found {
                match f {
                    // A chunk that checks is one of those that were written, whole.
                    ScannedChunk::Chunk(h) => prop_assert!(chunks.iter().any(|(want, r)| *want == h && *r == records)),
                    ScannedChunk::BadPayload(_) => prop_assert!(records.is_empty()),
                }
            }
        }
    }

    #[test]
    fn one_flipped_bit_costs_one_chunk() {
        let (bytes, _) = file(&[10, 10, 10]);
        for bit in (FILE_HEADER * 8..bytes.len() * 8).step_by(7) {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (found, scanner) = scan(&bytes, usize::MAX);
            let sound = found.iter().filter(|(f, _)| matches!(f, ScannedChunk::Chunk(_))).count();
            assert_eq!((sound, scanner.damage().places), (2, 1), "bit {bit}");
        }
    }
}
