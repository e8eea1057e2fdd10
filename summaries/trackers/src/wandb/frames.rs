//! The records of a log: a LevelDB log (leveldb's doc/log_format.md) with a header of its own (wandb's
//! sdk/internal/datastore.py, up to release 0.19.11): blocks of 32 KiB, in them chunks of checksum, length, kind and
//! data. The checksum is zlib's CRC-32 of kind and data.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use crate::{
    reader::{Batch, Problem},
    tail::identity,
};

/// The first bytes of a log.
pub(super) const IDENT: &[u8] = b":W&B";
/// The length of the log's header, and of a chunk's.
const HEADER: usize = 7;
const BLOCK: u64 = 32 << 10;

// The kinds of chunks.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// A record, and its range in the file.
#[derive(Debug)]
pub(super) struct Frame {
    pub record: Vec<u8>,
    pub bytes: Range<u64>,
}

/// What one call read.
#[derive(Default)]
pub(super) struct FrameBatch {
    pub frames: Vec<Frame>,
    /// Whether the file was shortened or replaced: the records are those from its beginning.
    pub is_restarted: bool,
    /// Whether there is more in the file.
    pub has_more: bool,
}

/// Reads the records of a growing file.
#[derive(Debug)]
pub(super) struct Frames {
    path: PathBuf,
    /// Where the next chunk begins.
    offset: u64,
    /// The chunks so far of a record in parts, and where it begins.
    partial: Option<(Vec<u8>, u64)>,
    identity: Option<u64>,
}

/// What some bytes begin with.
enum Chunk<'a> {
    /// Kind, data.
    Good(u8, &'a [u8]),
    /// A chunk with a wrong checksum, of this length with its header.
    Damaged(u64),
    /// Nothing that can be a chunk: the next one begins with the next block.
    Unknown,
    /// The block is over: too little of it is left for a chunk.
    Padding,
    /// Its end is not there yet.
    Incomplete,
}

impl Frames {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), offset: 0, partial: None, identity: None }
    }

    /// Reads about `allowance` bytes of records.
    pub fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<FrameBatch> {
        let mut file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        let (len, identity) = (metadata.len(), identity(&metadata));
        let mut found = FrameBatch::default();
        if len < self.offset || self.identity.is_some_and(|known| known != identity) {
            (self.offset, self.partial, found.is_restarted) = (0, None, true);
        }
        self.identity = Some(identity);
        let begin = self.offset;
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        // Two blocks always have a whole chunk.
        file.take(allowance.max(2 * BLOCK)).read_to_end(&mut bytes)?;
        self.scan(&bytes, &mut found, batch);
        batch.n_bytes += self.offset - begin;
        found.has_more = begin + (bytes.len() as u64) < len;
        Ok(found)
    }

    /// Goes over the chunks of `bytes`, which begin at the offset.
    fn scan(&mut self, bytes: &[u8], found: &mut FrameBatch, batch: &mut Batch) {
        let begin = self.offset;
        if begin == 0 {
            let Some(header) = bytes.get(..HEADER) else { return };
            if !header.starts_with(IDENT) {
                let what = "a header that is not that of Weights & Biases";
                batch.problems.push(Problem { what, bytes: 0..HEADER as u64 });
            }
            self.offset = HEADER as u64;
        }
        while let Some(rest) = bytes.get((self.offset - begin) as usize..).filter(|rest| !rest.is_empty()) {
            let from = self.offset;
            let left = BLOCK - from % BLOCK;
            match chunk(rest, left) {
                Chunk::Good(kind, data) => {
                    self.offset += (HEADER + data.len()) as u64;
                    self.join(kind, data, from, found, batch);
                }
                Chunk::Damaged(length) => self.skip(length, "a record with a wrong checksum", batch),
                Chunk::Padding if rest.len() as u64 >= left => self.offset += left,
                Chunk::Unknown if rest.len() as u64 >= left => {
                    let is_filler = rest.iter().take(left as usize).all(|byte| *byte == 0);
                    if is_filler && self.partial.is_none() {
                        self.offset += left;
                    } else {
                        self.skip(left, "bytes that are no record", batch);
                    }
                }
                Chunk::Padding | Chunk::Unknown | Chunk::Incomplete => return,
            }
        }
    }

    /// Leaves out some bytes, and the record of which they may have been a part.
    fn skip(&mut self, length: u64, what: &'static str, batch: &mut Batch) {
        let begin = self.partial.take().map_or(self.offset, |(_, begin)| begin);
        self.offset += length;
        batch.problems.push(Problem { what, bytes: begin..self.offset });
    }

    /// Adds a chunk to its record.
    fn join(&mut self, kind: u8, data: &[u8], from: u64, found: &mut FrameBatch, batch: &mut Batch) {
        let until = self.offset;
        if matches!(kind, FULL | FIRST)
            && let Some((_, begin)) = self.partial.take()
        {
            batch.problems.push(Problem { what: "a record without its end", bytes: begin..from });
        }
        match (kind, &mut self.partial) {
            (FULL, _) => found.frames.push(Frame { record: data.to_vec(), bytes: from..until }),
            (FIRST, partial) => *partial = Some((data.to_vec(), from)),
            (_, Some((record, _))) => record.extend_from_slice(data),
            // The rest of a record whose begin was damaged, which has been counted.
            (_, None) => {}
        }
        if kind == LAST
            && let Some((record, begin)) = self.partial.take()
        {
            found.frames.push(Frame { record, bytes: begin..until });
        }
    }
}

/// The chunk at the beginning of `bytes`, of whose block `left` bytes are left.
fn chunk(bytes: &[u8], left: u64) -> Chunk<'_> {
    if left < HEADER as u64 {
        return Chunk::Padding;
    }
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Chunk::Incomplete };
    let [c0, c1, c2, c3, l0, l1, kind] = *header;
    let (checksum, length) = (u32::from_le_bytes([c0, c1, c2, c3]), usize::from(u16::from_le_bytes([l0, l1])));
    if !matches!(kind, FULL | FIRST | MIDDLE | LAST) || (HEADER + length) as u64 > left {
        return Chunk::Unknown;
    }
    let Some(data) = rest.get(..length) else { return Chunk::Incomplete };
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(data);
    if hasher.finalize() == checksum { Chunk::Good(kind, data) } else { Chunk::Damaged((HEADER + length) as u64) }
}
