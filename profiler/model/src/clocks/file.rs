//! The file `clock-ID.bin` of a gathered folder: facts about one machine's clock, in the order of their discovery.
//!
//! Frames of 40 bytes, little-endian:
//!
//! ```text
//! byte 0   "STPX" an exchange, or "STPM" / "STPL" a fact: the collector's time was at most / at least the limit
//!      4   crc u32: CRC-32C of bytes 0..4 and 8..40
//!      8   request_sent i64, ns        of a fact: at i64
//!      16  received i64, ns                limit i64
//!      24  sent i64, ns                    zero
//!      32  response_received i64, ns                zero
//! ```
//!
//! Damaged frames are left out and counted; an unfinished frame at the end waits for its remaining bytes.

use super::fact::{BoundKind, Exchange, Fact};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Length of a frame, bytes.
const FRAME_BYTES: usize = 40;
/// The number of bytes that one read takes.
const READ_BYTES: usize = FRAME_BYTES * 1024;

/// A growing file of facts.
#[derive(Debug)]
pub struct ClockFile {
    file: File,
    pending: Vec<u8>,
    n_damaged: u64,
}

/// The file of the clock `id` in a gathered folder.
#[must_use]
pub fn path(gathered: &Path, id: &str) -> PathBuf {
    gathered.join(format!("clock-{id}.bin"))
}

/// Whether a path is that of a clock file.
pub fn is_clock_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("clock-") && name.ends_with(".bin")
}

/// An exchange as a frame.
#[must_use]
pub fn exchange_frame(exchange: &Exchange) -> [u8; FRAME_BYTES] {
    frame(
        *b"STPX",
        [exchange.request_sent, exchange.request_received, exchange.response_sent, exchange.response_received],
    )
}

/// A fact as a frame.
#[must_use]
pub fn fact_frame(fact: &Fact) -> [u8; FRAME_BYTES] {
    let tag = if fact.kind == BoundKind::Upper { *b"STPM" } else { *b"STPL" };
    frame(tag, [fact.at, fact.limit, 0, 0])
}

fn frame(tag: [u8; 4], values: [i64; 4]) -> [u8; FRAME_BYTES] {
    let mut bytes = [0; FRAME_BYTES];
    bytes[..4].copy_from_slice(&tag);
    for (slot, value) in bytes[8..].chunks_exact_mut(8).zip(values) {
        slot.copy_from_slice(&value.to_le_bytes());
    }
    let crc = checksum(&bytes);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn checksum(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..4]), &frame[8..FRAME_BYTES])
}

/// The facts of a frame; `None` for a damaged frame, empty for an exchange that proves nothing.
fn parse_facts(frame: &[u8]) -> Option<Vec<Fact>> {
    let stored_crc = frame[4..8].try_into().map_or(0, u32::from_le_bytes);
    let value = |n: usize| frame[8 + 8 * n..16 + 8 * n].try_into().map_or(0, i64::from_le_bytes);
    if stored_crc != checksum(frame) {
        return None;
    }
    let fact = |kind| vec![Fact { at: value(0), limit: value(1), kind }];
    match &frame[..4] {
        b"STPX" => {
            let exchange = Exchange {
                request_sent: value(0),
                request_received: value(1),
                response_sent: value(2),
                response_received: value(3),
            };
            Some(if exchange.is_monotonic() { exchange.facts().to_vec() } else { Vec::new() })
        }
        b"STPM" => Some(fact(BoundKind::Upper)),
        b"STPL" => Some(fact(BoundKind::Lower)),
        _ => None,
    }
}

/// Opens a file to append frames, each with one `write`.
///
/// # Errors
/// Fails if the file cannot be opened.
pub fn append_to(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // A frame that was cut short when a process was killed is filled up, so that later frames begin at multiples of the
    // frame's length.
    let torn = file.metadata()?.len() % FRAME_BYTES as u64;
    if torn > 0 {
        file.write_all(&vec![0; FRAME_BYTES - torn as usize])?;
    }
    Ok(file)
}

impl ClockFile {
    /// Opens a file, which may be empty.
    ///
    /// # Errors
    /// Fails if the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<ClockFile> {
        Ok(ClockFile { file: File::open(path)?, pending: Vec::new(), n_damaged: 0 })
    }

    /// Reads the facts that were appended since the last call.
    ///
    /// # Errors
    /// Fails if reading does; the next call tries again.
    pub fn poll(&mut self) -> io::Result<Vec<Fact>> {
        let mut new_facts = Vec::new();
        loop {
            let read = (&self.file).take(READ_BYTES as u64).read_to_end(&mut self.pending)?;
            let len = self.pending.len() / FRAME_BYTES * FRAME_BYTES;
            for frame in self.pending[..len].chunks_exact(FRAME_BYTES) {
                match parse_facts(frame) {
                    Some(facts) => new_facts.extend(facts),
                    None => self.n_damaged += 1,
                }
            }
            self.pending.drain(..len);
            if read == 0 {
                return Ok(new_facts);
            }
        }
    }

    /// Number of damaged frames.
    #[must_use]
    pub fn n_damaged(&self) -> u64 {
        self.n_damaged
    }
}
