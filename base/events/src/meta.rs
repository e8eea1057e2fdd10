//! The meta file `meta-PID.bin` of a process: what its ids mean, who its threads are, how its clock runs.
//!
//! Append-only, a sequence of frames, written with one `write` each to a file opened with `O_APPEND`, rarely:
//!
//! ```text
//! byte 0        4      8        12    16         16+len
//!      | "STPM" | len  | crc32c | tag | payload ... |
//!        u8 x 4   u32    u32      u32   len bytes          little-endian; len <= 65,536
//! ```
//!
//! The checksum covers `len`, `tag` and the payload. Strings are a u32 length and UTF-8 bytes. Payloads:
//!
//! ```text
//! tag 1 Process   pid u32, start i64 (Unix ns), clock u32 (0 ticks of a counter, 1 nanoseconds), host, exe, n u32, n args
//! tag 2 Thread    ring u32, tid u32, name
//! tag 3 Site      id u32, category, name
//! tag 4 Node      id u32, name, op, device
//! tag 5 Anchor    ticks u64, mono i64 (ns), real i64 (Unix ns)
//! ```
//!
//! A `Process` entry begins a session: a process that starts recording into the same folder again, or a later process
//! with the same id, appends a new one, and the ids after it replace the earlier ones.
//! Unknown tags are skipped and counted: later versions may add some.

use crate::clock::{Anchor, Source};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const SYNC: [u8; 4] = *b"STPM";
const HEADER: usize = 16;
/// The longest payload.
pub const MAX_PAYLOAD: usize = 1 << 16;
/// The longest string that is written; longer ones are cut at a character.
const MAX_STRING: usize = 4096;
/// How many command-line arguments are kept.
const MAX_ARGS: usize = 12;

/// One entry of a meta file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The process; begins a session.
    Process {
        /// Its id.
        pid: u32,
        /// When the session began, Unix nanoseconds.
        start_ns: i64,
        /// What its ticks are.
        clock: Source,
        /// Its machine's name.
        host: String,
        /// The path of its program.
        exe: String,
        /// Its command line's arguments, the first few.
        args: Vec<String>,
    },
    /// A thread has a ring.
    Thread {
        /// The number in the ring's file name.
        ring: u32,
        /// The operating system's thread id.
        tid: u32,
        /// Its name; empty when it has none.
        name: String,
    },
    /// What a site id means.
    Site {
        /// The id.
        id: u32,
        /// What kind of site: `op`, `step`, ... or a `tracing` target.
        category: String,
        /// The name of the slices and counters there.
        name: String,
    },
    /// What a node id means.
    Node {
        /// The id.
        id: u32,
        /// The node's full name in its graph.
        name: String,
        /// Its op.
        op: String,
        /// The device it runs on.
        device: String,
    },
    /// One instant on the three clocks.
    Anchor(Anchor),
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn i64(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn str(&mut self, text: &str) -> &mut Self {
        let kept = &text[..text.floor_char_boundary(MAX_STRING)];
        // A cut string is at most MAX_STRING bytes long.
        self.u32(kept.len() as u32).0.extend_from_slice(kept.as_bytes());
        self
    }
}

/// Appends the entry's frame to `out`.
fn encode(entry: &Entry, out: &mut Vec<u8>) {
    let mut payload = Encoder(Vec::new());
    let tag = match entry {
        Entry::Process { pid, start_ns, clock, host, exe, args } => {
            payload.u32(*pid).i64(*start_ns).u32(u32::from(*clock == Source::MonotonicRaw)).str(host).str(exe);
            payload.u32(args.len().min(MAX_ARGS) as u32);
            for arg in args.iter().take(MAX_ARGS) {
                payload.str(arg);
            }
            1u32
        }
        Entry::Thread { ring, tid, name } => {
            payload.u32(*ring).u32(*tid).str(name);
            2
        }
        Entry::Site { id, category, name } => {
            payload.u32(*id).str(category).str(name);
            3
        }
        Entry::Node { id, name, op, device } => {
            payload.u32(*id).str(name).str(op).str(device);
            4
        }
        Entry::Anchor(anchor) => {
            payload.i64(anchor.ticks.cast_signed()).i64(anchor.mono_ns).i64(anchor.real_ns);
            5
        }
    };
    let payload = payload.0;
    let (len, tag) = ((payload.len() as u32).to_le_bytes(), tag.to_le_bytes());
    out.extend_from_slice(&SYNC);
    out.extend_from_slice(&len);
    out.extend_from_slice(&checksum(len, tag, &payload).to_le_bytes());
    out.extend_from_slice(&tag);
    out.extend_from_slice(&payload);
}

fn checksum(len: [u8; 4], tag: [u8; 4], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(&len), &tag), payload)
}

/// Reads a payload from its front; `None` where it is too short or not UTF-8.
struct Payload<'a>(&'a [u8]);

impl<'a> Payload<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(front)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take(8).and_then(|b| b.try_into().ok()).map(i64::from_le_bytes)
    }

    fn string(&mut self) -> Option<String> {
        let len = self.u32()?;
        let bytes = self.take(usize::try_from(len).ok()?)?;
        Some(std::str::from_utf8(bytes).ok()?.to_owned())
    }
}

/// What a frame with a good checksum holds.
enum Decoded {
    Entry(Entry),
    UnknownTag,
    Malformed,
}

fn decode(tag: u32, payload: &[u8]) -> Decoded {
    let mut p = Payload(payload);
    let entry = match tag {
        1 => decode_process(&mut p),
        2 => (|| Some(Entry::Thread { ring: p.u32()?, tid: p.u32()?, name: p.string()? }))(),
        3 => (|| Some(Entry::Site { id: p.u32()?, category: p.string()?, name: p.string()? }))(),
        4 => (|| Some(Entry::Node { id: p.u32()?, name: p.string()?, op: p.string()?, device: p.string()? }))(),
        5 => {
            (|| Some(Entry::Anchor(Anchor { ticks: p.i64()?.cast_unsigned(), mono_ns: p.i64()?, real_ns: p.i64()? })))()
        }
        _ => return Decoded::UnknownTag,
    };
    entry.map_or(Decoded::Malformed, Decoded::Entry)
}

fn decode_process(p: &mut Payload<'_>) -> Option<Entry> {
    let (pid, start_ns) = (p.u32()?, p.i64()?);
    let clock = if p.u32()? == 0 { Source::Counter } else { Source::MonotonicRaw };
    let (host, exe) = (p.string()?, p.string()?);
    // The count is not trusted: the loop ends where the payload does.
    let args = (0..p.u32()?).map_while(|_| p.string()).collect();
    Some(Entry::Process { pid, start_ns, clock, host, exe, args })
}

/// The path of a process's meta file.
#[must_use]
pub fn path(trace_dir: &Path, pid: u32) -> PathBuf {
    trace_dir.join(format!("meta-{pid}.bin"))
}

/// Appends entries. Failures are counted, not returned: a full disk must not stop the traced program.
pub(crate) struct Writer {
    file: File,
    buffer: Vec<u8>,
    lost: u64,
}

impl Writer {
    pub(crate) fn create(trace_dir: &Path, pid: u32) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path(trace_dir, pid))?;
        Ok(Self { file, buffer: Vec::new(), lost: 0 })
    }

    pub(crate) fn append(&mut self, entry: &Entry) {
        self.buffer.clear();
        encode(entry, &mut self.buffer);
        self.write();
    }

    /// As `append`, in few writes.
    pub(crate) fn append_all(&mut self, entries: impl Iterator<Item = Entry>) {
        self.buffer.clear();
        for entry in entries {
            encode(&entry, &mut self.buffer);
            if self.buffer.len() >= MAX_PAYLOAD {
                self.write();
                self.buffer.clear();
            }
        }
        self.write();
    }

    fn write(&mut self) {
        self.lost += u64::from(self.file.write_all(&self.buffer).is_err());
    }

    /// How many writes failed.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

/// Follows a growing meta file.
///
/// Damage is skipped to the next frame that checks and counted, once per gap; an unfinished frame at the end waits for
/// its rest. Memory: two chunks of 64 KiB, whatever the file says.
pub struct MetaReader {
    file: File,
    pending: Vec<u8>,
    in_gap: bool,
    damaged: u64,
    skipped_bytes: u64,
    unknown: u64,
}

impl MetaReader {
    /// Opens a meta file; it may still be empty.
    ///
    /// # Errors
    /// That the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self { file, pending: Vec::new(), in_gap: false, damaged: 0, skipped_bytes: 0, unknown: 0 })
    }

    /// Appends to `out` what was completed since the last call; returns how many entries that were.
    ///
    /// # Errors
    /// That reading failed; entries before the failure are in `out`, and the call may be repeated.
    pub fn poll(&mut self, out: &mut Vec<Entry>) -> io::Result<usize> {
        let before = out.len();
        loop {
            let read = (&self.file).take(MAX_PAYLOAD as u64).read_to_end(&mut self.pending);
            self.parse(out);
            if read? == 0 {
                return Ok(out.len() - before);
            }
        }
    }

    /// Places where frames were damaged and skipped.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// How many bytes were skipped there.
    #[must_use]
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// Entries of kinds that this version does not know.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Bytes of an unfinished frame at the end; not zero for good means that the writer was killed while writing.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        self.pending.len()
    }

    fn parse(&mut self, out: &mut Vec<Entry>) {
        let mut at = 0;
        while let Some(step) = self.frame(&self.pending[at..]) {
            match step {
                Step::Frame(len, decoded) => {
                    self.in_gap = false;
                    at += len;
                    match decoded {
                        Decoded::Entry(entry) => out.push(entry),
                        Decoded::UnknownTag => self.unknown += 1,
                        Decoded::Malformed => self.damaged += 1,
                    }
                }
                Step::Skip(len) => {
                    self.damaged += u64::from(!self.in_gap);
                    self.in_gap = true;
                    self.skipped_bytes += len as u64;
                    at += len;
                }
            }
        }
        self.pending.drain(..at);
    }

    /// What stands at the front of `bytes`; `None` when more bytes are needed to tell.
    fn frame(&self, bytes: &[u8]) -> Option<Step> {
        if bytes.is_empty() {
            return None;
        }
        let sync = bytes.len().min(SYNC.len());
        if bytes[..sync] != SYNC[..sync] {
            let next = bytes[1..].iter().position(|&b| b == SYNC[0]);
            return Some(Step::Skip(next.map_or(bytes.len(), |n| n + 1)));
        }
        let mut header = Payload(bytes.get(4..HEADER)?);
        let (len, crc, tag) = (header.u32()?, header.u32()?, header.u32()?);
        if len as usize > MAX_PAYLOAD {
            return Some(Step::Skip(1));
        }
        let payload = bytes.get(HEADER..HEADER + len as usize)?;
        if crc != checksum(len.to_le_bytes(), tag.to_le_bytes(), payload) {
            return Some(Step::Skip(1));
        }
        Some(Step::Frame(HEADER + len as usize, decode(tag, payload)))
    }
}

enum Step {
    /// A frame of so many bytes.
    Frame(usize, Decoded),
    /// So many bytes are no frame.
    Skip(usize),
}
