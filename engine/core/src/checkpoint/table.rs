//! Sorted string tables: the files of keys and values that index TensorFlow's checkpoints.
//!
//! ```text
//! file:     data blocks, metaindex block, index block, footer
//! block:    entries, restart offsets (u32 each), their number (u32); behind it a byte that says the compression
//!           (0: none, 1: Snappy) and the masked CRC-32C of block and byte (u32)
//! entry:    varint: bytes shared with the key before; varint: further bytes of the key; varint: bytes of the value; both
//! handle:   varint: offset, varint: size of a block (without the five bytes behind it)
//! footer:   48 bytes: handles of the metaindex and the index, padding, 57 fb 80 8b 24 75 47 db
//! ```
//! The index maps a key not below the last of each data block to the block's handle. All numbers are little endian
//! (tensorflow/core/lib/io/table_format.txt).

use std::collections::BTreeMap;
use std::path::Path;

use formats::tfrecord::masked_crc;
use prost::encoding::{decode_varint, encode_varint};

use super::CheckpointError;

const FOOTER: usize = 48;
const MAGIC: [u8; 8] = [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb];
/// Compression byte and checksum.
const TRAILER: usize = 5;
/// What a block may decompress to; TensorFlow makes blocks of 256 KiB, larger only around one large value.
const MAX_BLOCK: usize = 1 << 30;
/// A block is closed when it has grown beyond this.
const BLOCK_SIZE: usize = 256 << 10;
/// Keys between two restarts.
const RESTART_EVERY: usize = 16;

/// All keys and values of a table.
pub(super) fn read(path: &Path, file: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, CheckpointError> {
    let bad = |problem: &str| CheckpointError::format(path, problem);
    let footer = file.len().checked_sub(FOOTER).map(|at| &file[at..]);
    let footer = footer.filter(|f| f.ends_with(&MAGIC)).ok_or_else(|| bad("it is no table (the footer is missing)"))?;
    let mut rest = footer;
    let index = handle(&mut rest).and_then(|_metaindex| handle(&mut rest));
    let index = index.ok_or_else(|| bad("the footer is not sound"))?;
    let mut all = BTreeMap::new();
    for (_, value) in entries(path, &block(path, file, index)?)? {
        let at = handle(&mut value.as_slice()).ok_or_else(|| bad("an entry of the index is not sound"))?;
        for (key, value) in entries(path, &block(path, file, at)?)? {
            if all.insert(key, value).is_some() {
                return Err(bad("a key is there twice"));
            }
        }
    }
    Ok(all)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(decode_varint(rest).ok()?).ok()
}

fn handle(rest: &mut &[u8]) -> Option<(usize, usize)> {
    Some((number(rest)?, number(rest)?))
}

/// A block's contents, decompressed, after its checksum was compared.
fn block(path: &Path, file: &[u8], (at, size): (usize, usize)) -> Result<Vec<u8>, CheckpointError> {
    let bad = |problem: &str| CheckpointError::format(path, format!("the block at {at} {problem}"));
    let whole = at.checked_add(size).and_then(|n| n.checked_add(TRAILER)).and_then(|end| file.get(at..end));
    let (body, crc) = whole.and_then(<[u8]>::split_last_chunk::<4>).ok_or_else(|| bad("lies outside of the file"))?;
    if masked_crc(body) != u32::from_le_bytes(*crc) {
        return Err(CheckpointError::checksum(path, format!("the block at {at}")));
    }
    let contents = &body[..size];
    match body[size] {
        0 => Ok(contents.to_vec()),
        1 => match snap::raw::decompress_len(contents) {
            // Snappy's densest copy gives 64 bytes for 3.
            Ok(n) if n <= MAX_BLOCK && n <= contents.len().saturating_mul(22) => {
                snap::raw::Decoder::new().decompress_vec(contents).map_err(|_| bad("does not decompress"))
            }
            _ => Err(bad("claims an impossible size")),
        },
        _ => Err(bad("has an unknown compression")),
    }
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

fn entries(path: &Path, block: &[u8]) -> Result<Vec<Entry>, CheckpointError> {
    let bad = || CheckpointError::format(path, "a block's entries are not sound");
    let (rest, n) = block.split_last_chunk::<4>().ok_or_else(bad)?;
    let n_restarts = u32::from_le_bytes(*n) as usize;
    let end = n_restarts.checked_mul(4).and_then(|n| rest.len().checked_sub(n)).ok_or_else(bad)?;
    let mut rest = &rest[..end];
    let mut out: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while !rest.is_empty() {
        let mut next = || number(&mut rest).ok_or_else(bad);
        let (shared, more, len) = (next()?, next()?, next()?);
        let before = out.last().map(|(key, _)| key.as_slice()).unwrap_or_default();
        let mut key = before.get(..shared).ok_or_else(bad)?.to_vec();
        let (suffix, tail) = rest.split_at_checked(more).ok_or_else(bad)?;
        let (value, tail) = tail.split_at_checked(len).ok_or_else(bad)?;
        key.extend_from_slice(suffix);
        rest = tail;
        out.push((key, value.to_vec()));
    }
    Ok(out)
}

/// A table of these keys and values, uncompressed.
pub(super) fn write(all: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut index = Block::default();
    let mut data = Block::default();
    let mut last_key: &[u8] = &[];
    for (key, value) in all {
        if data.bytes.len() > BLOCK_SIZE {
            index.add(last_key, &data.finish(&mut file));
        }
        data.add(key, value);
        last_key = key;
    }
    index.add(last_key, &data.finish(&mut file));
    let metaindex = Block::default().finish(&mut file);
    let index = index.finish(&mut file);
    let mut footer = [metaindex, index].concat();
    footer.resize(FOOTER - MAGIC.len(), 0);
    file.extend_from_slice(&footer);
    file.extend_from_slice(&MAGIC);
    file
}

#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    last_key: Vec<u8>,
    n_entries: usize,
}

impl Block {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = match self.n_entries.is_multiple_of(RESTART_EVERY) {
            true => {
                self.restarts.push(self.bytes.len() as u32);
                0
            }
            false => self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count(),
        };
        for n in [shared, key.len() - shared, value.len()] {
            encode_varint(n as u64, &mut self.bytes);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last_key = key.to_vec();
        self.n_entries += 1;
    }

    /// Appends the block to the file and gives its handle; a new block begins.
    fn finish(&mut self, file: &mut Vec<u8>) -> Vec<u8> {
        let mut done = std::mem::take(self);
        if done.restarts.is_empty() {
            done.restarts.push(0);
        }
        done.restarts.iter().for_each(|r| done.bytes.extend_from_slice(&r.to_le_bytes()));
        done.bytes.extend_from_slice(&(done.restarts.len() as u32).to_le_bytes());
        let mut handle = Vec::new();
        encode_varint(file.len() as u64, &mut handle);
        encode_varint(done.bytes.len() as u64, &mut handle);
        done.bytes.push(0);
        let crc = masked_crc(&done.bytes);
        file.append(&mut done.bytes);
        file.extend_from_slice(&crc.to_le_bytes());
        handle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BTreeMap<Vec<u8>, Vec<u8>> {
        (0..3000u32)
            .map(|i| (format!("layer/{i:05}/weights").into_bytes(), vec![i as u8; (i % 700) as usize]))
            .collect()
    }

    #[test]
    fn tables_survive_the_way_there_and_back() {
        for all in [sample(), BTreeMap::new(), BTreeMap::from([(vec![], vec![1])])] {
            assert_eq!(read(Path::new("t"), &write(&all)).unwrap(), all);
        }
    }

    #[test]
    fn damage_is_an_error() {
        let small: BTreeMap<_, _> = sample().into_iter().take(20).collect();
        let file = write(&small);
        for i in 0..file.len() {
            let mut damaged = file.clone();
            damaged[i] ^= 1 << (i % 8);
            // The metaindex's handle and the footer's padding carry no information.
            if let Ok(all) = read(Path::new("t"), &damaged) {
                assert_eq!(all, small, "byte {i}");
            }
            assert!(read(Path::new("t"), &file[..i]).is_err());
        }
    }
}
