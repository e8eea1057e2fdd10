//! The meta file `meta-PID.bin` of a process: the names behind its ids, its threads, and its clock's anchors.
//!
//! An append-only sequence of frames, each written with one `write` to a file opened with `O_APPEND`:
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
//! tag 1 Process   pid u32, start i64 (Unix ns), clock u32 (0 ticks of a counter, 1 nanoseconds), host, exe, n u32,
//!                 n args, born u64 (with the pid it identifies the process; 0 or absent: unknown)
//! tag 2 Thread    ring u32, tid u32, name
//! tag 3 Site      id u32, category, name
//! tag 4 Node      id u32, name, op, device
//! tag 5 Anchor    ticks u64, mono i64 (ns), real i64 (Unix ns)
//! tag 6 Track     ring u32, kind u32 (0 thread, 1 CPU, 2 operations of no thread), process u32, tid u32,
//!                 order i32, name: the subject and process of a recorder's ring
//! tag 7 Other     pid u32, name: a process that is recorded from outside
//! tag 8 Frame     id u32, address u64, module: a code address, in the module's file, or in memory without a module
//! tag 9 Stack     id u32, parent u32 (u32::MAX: none), frame u32: a call stack is its parent with one more frame
//! tag 10 Symbol   frame u32, inlined u32, line u32, name, file: a frame's function; one entry for each function
//!                 that is inlined there, outermost first
//! tag 11 Note     kind u32 (0 events lost, 1 not available here, 2 times that disagree), count u64, source, text: a
//!                 message for the user
//! tag 12 Stream   ring u32, stream u64, order i32, device, name: the device's stream whose work a ring holds
//! ```
//!
//! A `Process` entry begins a session: a process that starts recording into the same folder again, or a later process
//! with the same id, appends a new one. The entries after it belong to that session, and so do the rings that were made
//! after its first anchor; sessions with the same `born` are one process. Unknown tags are skipped and counted: later
//! versions may add some.

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
/// The number of command-line arguments that are written.
const MAX_ARGS: usize = 12;

/// One entry of a meta file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The process; begins a session.
    Process {
        /// The process's id.
        pid: u32,
        /// When the session began, Unix nanoseconds.
        start_ns: i64,
        /// The meaning of the process's ticks.
        clock: Source,
        /// The machine's name.
        host: String,
        /// The program's path.
        exe: String,
        /// The first arguments of the command line, at most 12.
        args: Vec<String>,
        /// The process's start time in the kernel's clock ticks, by which two processes with one id differ. 0: unknown.
        born: u64,
    },
    /// A thread has a ring.
    Thread {
        /// The number in the ring's file name.
        ring: u32,
        /// The operating system's thread id.
        tid: u32,
        /// The thread's name; empty where it has none.
        name: String,
    },
    /// The meaning of a site id.
    Site {
        /// The id.
        id: u32,
        /// The kind of site: `op`, `step`, ... or a `tracing` target.
        category: String,
        /// The name of the slices and counters there.
        name: String,
    },
    /// The meaning of a node id.
    Node {
        /// The id.
        id: u32,
        /// The node's full name in its graph.
        name: String,
        /// The op's name.
        op: String,
        /// The device that the node runs on.
        device: String,
    },
    /// One instant on the three clocks.
    Anchor(Anchor),
    /// The track of a recorder's ring: a thread of another process, a CPU.
    Track {
        /// The number in the chunks' headers.
        ring: u32,
        /// The track's kind.
        kind: TrackKind,
        /// The process that the track belongs to.
        process: u32,
        /// The kernel's thread id; 0 where the track is not a thread's.
        tid: u32,
        /// Among the tracks of its process the smaller comes first.
        order: i32,
        /// The track's name.
        name: String,
    },
    /// A process that is recorded from outside.
    Other {
        /// The process's id.
        pid: u32,
        /// The process's command.
        name: String,
    },
    /// A place in code.
    Frame {
        /// The id.
        id: u32,
        /// The address: in the module's file, or in memory where there is no module.
        address: u64,
        /// The file of code; empty where there is none (JIT code), `[kernel]` in the kernel.
        module: String,
    },
    /// A call stack: its caller's stack and one more frame.
    Stack {
        /// The id.
        id: u32,
        /// The stack of the caller; `u32::MAX` for none.
        parent: u32,
        /// The innermost frame.
        frame: u32,
    },
    /// The function of a frame.
    Symbol {
        /// The frame.
        frame: u32,
        /// 0 for the function that was called, 1, 2, ... for those inlined into it.
        inlined: u32,
        /// The line, 0 where unknown.
        line: u32,
        /// The function's name.
        name: String,
        /// The source file, empty where unknown.
        file: String,
    },
    /// The track of a device's ring: a stream of work.
    Stream {
        /// The number in the ring's file name.
        ring: u32,
        /// The stream's number on its device; `u64::MAX` for none.
        stream: u64,
        /// Among the tracks of its process the smaller comes first.
        order: i32,
        /// The device.
        device: String,
        /// The track's name.
        name: String,
    },
    /// A message for the user.
    Note {
        /// The message's subject.
        kind: NoteKind,
        /// The total count.
        count: u64,
        /// The message's source; a later note of the same kind and source replaces it.
        source: String,
        /// The message.
        text: String,
    },
}

/// The subject of a recorder's track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TrackKind {
    /// A thread.
    Thread = 0,
    /// A CPU.
    Cpu = 1,
    /// Operations that begin and end on no thread: requests to a disk.
    Async = 2,
}

impl TrackKind {
    fn from_bits(bits: u32) -> Option<Self> {
        [Self::Thread, Self::Cpu, Self::Async].into_iter().find(|kind| *kind as u32 == bits)
    }
}

/// The subject of an [`Entry::Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NoteKind {
    /// Events were lost.
    Lost = 0,
    /// Something cannot be recorded on this machine; the text says how to get it.
    Unavailable = 1,
    /// Times that disagree.
    Clock = 2,
}

impl NoteKind {
    fn from_bits(bits: u32) -> Option<Self> {
        [Self::Lost, Self::Unavailable, Self::Clock].into_iter().find(|kind| *kind as u32 == bits)
    }
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
        let cut = &text[..text.floor_char_boundary(MAX_STRING)];
        // MAX_STRING fits into a u32.
        self.u32(cut.len() as u32).0.extend_from_slice(cut.as_bytes());
        self
    }
}

/// Appends the entry's frame to `out`.
fn encode(entry: &Entry, out: &mut Vec<u8>) {
    let mut payload = Encoder(Vec::new());
    let tag = match entry {
        Entry::Process { pid, start_ns, clock, host, exe, args, born } => {
            payload.u32(*pid).i64(*start_ns).u32(u32::from(*clock == Source::MonotonicRaw)).str(host).str(exe);
            payload.u32(args.len().min(MAX_ARGS) as u32);
            for arg in args.iter().take(MAX_ARGS) {
                payload.str(arg);
            }
            payload.i64(born.cast_signed());
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
        Entry::Track { ring, kind, process, tid, order, name } => {
            payload.u32(*ring).u32(*kind as u32).u32(*process).u32(*tid).u32(order.cast_unsigned()).str(name);
            6
        }
        Entry::Other { pid, name } => {
            payload.u32(*pid).str(name);
            7
        }
        Entry::Frame { id, address, module } => {
            payload.u32(*id).i64(address.cast_signed()).str(module);
            8
        }
        Entry::Stack { id, parent, frame } => {
            payload.u32(*id).u32(*parent).u32(*frame);
            9
        }
        Entry::Symbol { frame, inlined, line, name, file } => {
            payload.u32(*frame).u32(*inlined).u32(*line).str(name).str(file);
            10
        }
        Entry::Note { kind, count, source, text } => {
            payload.u32(*kind as u32).i64(count.cast_signed()).str(source).str(text);
            11
        }
        Entry::Stream { ring, stream, order, device, name } => {
            payload.u32(*ring).i64(stream.cast_signed()).u32(order.cast_unsigned()).str(device).str(name);
            12
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

/// Reads a payload from the front; `None` where the payload is too short or not UTF-8.
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

/// The content of a frame with a good checksum.
enum Decoded {
    Entry(Entry),
    UnknownTag,
    Malformed,
}

fn decode(tag: u32, payload: &[u8]) -> Decoded {
    let mut payload = Payload(payload);
    let entry = match tag {
        1..=5 => decode_self_entry(tag, &mut payload),
        6..=12 => decode_recorder_entry(tag, &mut payload),
        _ => return Decoded::UnknownTag,
    };
    entry.map_or(Decoded::Malformed, Decoded::Entry)
}

/// Decodes an entry that a process writes about itself.
fn decode_self_entry(tag: u32, payload: &mut Payload<'_>) -> Option<Entry> {
    Some(match tag {
        1 => return decode_process(payload),
        2 => Entry::Thread { ring: payload.u32()?, tid: payload.u32()?, name: payload.string()? },
        3 => Entry::Site { id: payload.u32()?, category: payload.string()?, name: payload.string()? },
        4 => Entry::Node {
            id: payload.u32()?,
            name: payload.string()?,
            op: payload.string()?,
            device: payload.string()?,
        },
        _ => Entry::Anchor(Anchor {
            ticks: payload.i64()?.cast_unsigned(),
            mono_ns: payload.i64()?,
            real_ns: payload.i64()?,
        }),
    })
}

/// Decodes an entry that a recorder writes about other processes and devices.
fn decode_recorder_entry(tag: u32, payload: &mut Payload<'_>) -> Option<Entry> {
    Some(match tag {
        6 => Entry::Track {
            ring: payload.u32()?,
            kind: TrackKind::from_bits(payload.u32()?)?,
            process: payload.u32()?,
            tid: payload.u32()?,
            order: payload.u32()?.cast_signed(),
            name: payload.string()?,
        },
        7 => Entry::Other { pid: payload.u32()?, name: payload.string()? },
        8 => Entry::Frame { id: payload.u32()?, address: payload.i64()?.cast_unsigned(), module: payload.string()? },
        9 => Entry::Stack { id: payload.u32()?, parent: payload.u32()?, frame: payload.u32()? },
        10 => {
            let (frame, inlined, line) = (payload.u32()?, payload.u32()?, payload.u32()?);
            Entry::Symbol { frame, inlined, line, name: payload.string()?, file: payload.string()? }
        }
        12 => Entry::Stream {
            ring: payload.u32()?,
            stream: payload.i64()?.cast_unsigned(),
            order: payload.u32()?.cast_signed(),
            device: payload.string()?,
            name: payload.string()?,
        },
        _ => {
            let (kind, count) = (NoteKind::from_bits(payload.u32()?)?, payload.i64()?.cast_unsigned());
            Entry::Note { kind, count, source: payload.string()?, text: payload.string()? }
        }
    })
}

fn decode_process(payload: &mut Payload<'_>) -> Option<Entry> {
    let (pid, start_ns) = (payload.u32()?, payload.i64()?);
    let clock = if payload.u32()? == 0 { Source::Counter } else { Source::MonotonicRaw };
    let (host, exe) = (payload.string()?, payload.string()?);
    // The count is not trusted: the loop ends where the payload does.
    let args = (0..payload.u32()?).map_while(|_| payload.string()).collect();
    // Older traces end before this field.
    let born = payload.i64().unwrap_or(0).cast_unsigned();
    Some(Entry::Process { pid, start_ns, clock, host, exe, args, born })
}

/// The path of a process's meta file.
#[must_use]
pub fn path(trace_dir: &Path, pid: u32) -> PathBuf {
    trace_dir.join(format!("meta-{pid}.bin"))
}

/// Appends entries. Failures are counted, not returned: a full disk must not stop the traced program.
pub struct Writer {
    file: File,
    buffer: Vec<u8>,
    lost: u64,
}

impl Writer {
    /// Opens or creates the meta file of process `pid`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn create(trace_dir: &Path, pid: u32) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path(trace_dir, pid))?;
        Ok(Self { file, buffer: Vec::new(), lost: 0 })
    }

    /// Appends an entry, with one `write`.
    pub fn append(&mut self, entry: &Entry) {
        self.buffer.clear();
        encode(entry, &mut self.buffer);
        self.write();
    }

    /// Appends entries in few writes: one for each 64 KiB.
    pub fn append_all(&mut self, entries: impl Iterator<Item = Entry>) {
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

    /// The number of writes that failed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Reads the entries of a meta file that may still grow.
///
/// Damaged bytes up to the next valid frame are skipped, and each such gap is counted once. An incomplete frame at the
/// end waits for its remaining bytes. Memory: two chunks of 64 KiB, independent of the file's size.
pub struct MetaReader {
    file: File,
    pending: Vec<u8>,
    is_in_gap: bool,
    n_damaged: u64,
    skipped_bytes: u64,
    n_unknown: u64,
}

impl MetaReader {
    /// Opens a meta file, which may still be empty.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self { file, pending: Vec::new(), is_in_gap: false, n_damaged: 0, skipped_bytes: 0, n_unknown: 0 })
    }

    /// Appends the entries that were completed since the last call to `out`. Returns their number.
    ///
    /// # Errors
    /// Reading failed; entries before the failure are in `out`, and the call may be repeated.
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

    /// The number of gaps of damaged bytes, and of valid frames whose payload is malformed.
    #[must_use]
    pub fn n_damaged(&self) -> u64 {
        self.n_damaged
    }

    /// The number of bytes that were skipped in gaps.
    #[must_use]
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// The number of entries whose tag this version does not know.
    #[must_use]
    pub fn n_unknown(&self) -> u64 {
        self.n_unknown
    }

    /// The number of bytes of an incomplete frame at the end. Where it stays above zero, the writer was killed while
    /// writing.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        self.pending.len()
    }

    fn parse(&mut self, out: &mut Vec<Entry>) {
        let mut pos = 0;
        while let Some(step) = self.frame(&self.pending[pos..]) {
            match step {
                ParseStep::Frame(len, decoded) => {
                    self.is_in_gap = false;
                    pos += len;
                    match decoded {
                        Decoded::Entry(entry) => out.push(entry),
                        Decoded::UnknownTag => self.n_unknown += 1,
                        Decoded::Malformed => self.n_damaged += 1,
                    }
                }
                ParseStep::Skip(len) => {
                    self.n_damaged += u64::from(!self.is_in_gap);
                    self.is_in_gap = true;
                    self.skipped_bytes += len as u64;
                    pos += len;
                }
            }
        }
        self.pending.drain(..pos);
    }

    /// Decodes the frame at the front of `bytes`, or skips to the next possible one. `None` where more bytes are
    /// needed.
    fn frame(&self, bytes: &[u8]) -> Option<ParseStep> {
        if bytes.is_empty() {
            return None;
        }
        let sync_len = bytes.len().min(SYNC.len());
        if bytes[..sync_len] != SYNC[..sync_len] {
            let next = bytes[1..].iter().position(|&b| b == SYNC[0]);
            return Some(ParseStep::Skip(next.map_or(bytes.len(), |n| n + 1)));
        }
        let mut header = Payload(bytes.get(4..HEADER)?);
        let (len, crc, tag) = (header.u32()?, header.u32()?, header.u32()?);
        if len as usize > MAX_PAYLOAD {
            return Some(ParseStep::Skip(1));
        }
        let payload = bytes.get(HEADER..HEADER + len as usize)?;
        if crc != checksum(len.to_le_bytes(), tag.to_le_bytes(), payload) {
            return Some(ParseStep::Skip(1));
        }
        Some(ParseStep::Frame(HEADER + len as usize, decode(tag, payload)))
    }
}

enum ParseStep {
    /// A frame, with its length in bytes.
    Frame(usize, Decoded),
    /// The number of bytes that belong to no frame.
    Skip(usize),
}
