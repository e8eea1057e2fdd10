//! Input files: unpacked if they are compressed, and read through a window that moves forward.

use super::problems::{Problem, Problems};
use super::reader::ImportError;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// The longest text of one event, bytes; a longer one is damage.
pub(super) const MAX_EVENT: usize = 256 << 20;
/// A compressed file expands at most by this factor, plus [`SLACK`].
const MAX_RATIO: u64 = 1_000;
/// Bytes to which any compressed file may expand.
const SLACK: u64 = 64 << 20;

/// A file's bytes, unpacked.
pub(crate) struct Input {
    pub(crate) file: Arc<File>,
    pub(crate) length: u64,
}

impl Input {
    /// Opens a file. A compressed one (gzip, zstd) is unpacked into a temporary file without a name, from which
    /// arguments of events are read on demand.
    pub(crate) fn open(path: &Path, problems: &mut Problems) -> Result<Input, ImportError> {
        let failed = |e: io::Error| ImportError::Io(path.to_owned(), e);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut magic = [0; 4];
        let n = file.read_at(&mut magic, 0).map_err(failed)?;
        let limit = length.saturating_mul(MAX_RATIO).saturating_add(SLACK);
        let unpacked = match &magic[..n] {
            [0x1f, 0x8b, ..] => {
                unpack(MultiGzDecoder::new(io::BufReader::with_capacity(READ_BYTES, &file)), limit, problems)
            }
            [0x28, 0xb5, 0x2f, 0xfd] => unpack(zstd::Decoder::new(&file).map_err(failed)?, limit, problems),
            _ => return Ok(Input { file: Arc::new(file), length }),
        };
        unpacked.map_err(failed)
    }
}

/// Unpacks as much as possible, and counts damage.
fn unpack(mut from: impl Read, limit: u64, problems: &mut Problems) -> io::Result<Input> {
    let mut to = tempfile::tempfile()?;
    let (mut buffer, mut length) = (vec![0; READ_BYTES], 0);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                to.write_all(&buffer[..n])?;
                length += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                problems.count_at(Problem::Truncated, length);
                break;
            }
            Err(_) => {
                problems.count_at(Problem::BadCompression, length);
                break;
            }
        }
        if length > limit {
            problems.count_at(Problem::Bomb, length);
            break;
        }
    }
    Ok(Input { file: Arc::new(to), length })
}

/// The protobuf varint at the begin of `bytes`, and its length, bytes.
pub(super) fn varint(mut bytes: &[u8]) -> Option<(u64, usize)> {
    let n = bytes.len();
    let value = prost::encoding::decode_varint(&mut bytes).ok()?;
    Some((value, n - bytes.len()))
}

/// A window that moves forward over a file: its next bytes, as many as are needed.
pub(crate) struct Window {
    file: Arc<File>,
    length: u64,
    buffer: Vec<u8>,
    /// Offset in the file of the buffer.
    base: u64,
    /// Offset in the buffer of the next byte.
    position: usize,
}

impl Window {
    pub(crate) fn new(input: &Input) -> Window {
        Window { file: input.file.clone(), length: input.length, buffer: Vec::new(), base: 0, position: 0 }
    }

    /// The next bytes, as far as they are read.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.position..]
    }

    /// Offset in the file of [`Window::bytes`].
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.position = self.position.saturating_add(n).min(self.buffer.len());
    }

    /// Whether [`Window::bytes`] reach to the file's end.
    pub(crate) fn is_last(&self) -> bool {
        self.base + self.buffer.len() as u64 >= self.length
    }

    /// Reads more bytes, and keeps those that are not consumed. Returns false at the file's end.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        if self.is_last() {
            return Ok(false);
        }
        self.buffer.drain(..self.position);
        self.base += self.position as u64;
        self.position = 0;
        let kept = self.buffer.len();
        // The window doubles, so that an event longer than the window is scanned a few times only.
        let n_read = READ_BYTES.max(kept).min(usize::try_from(self.length - self.base).unwrap_or(usize::MAX) - kept);
        self.buffer.resize(kept + n_read, 0);
        let n = self.file.read_at(&mut self.buffer[kept..], self.base + kept as u64);
        self.buffer.truncate(kept + *n.as_ref().unwrap_or(&0));
        if n? == 0 {
            // The file was truncated since it was opened.
            self.length = self.base + self.buffer.len() as u64;
        }
        Ok(!self.is_last() || self.buffer.len() > kept)
    }

    /// Reads until the window has `n` bytes. Returns false if the file ends before.
    pub(crate) fn fill(&mut self, n: usize) -> io::Result<bool> {
        while self.bytes().len() < n {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next line without its end; `None` at the file's end. A line longer than [`MAX_EVENT`] is cut.
    pub(crate) fn line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut seen = 0;
        let n = loop {
            let bytes = self.bytes();
            match memchr::memchr(b'\n', &bytes[seen..]) {
                Some(n) => break seen + n,
                None if bytes.len() > MAX_EVENT => break bytes.len(),
                None => seen = bytes.len(),
            }
            if !self.more()? {
                if self.bytes().is_empty() {
                    return Ok(None);
                }
                break self.bytes().len();
            }
        };
        let from = self.position;
        self.consume(n + 1);
        let line = &self.buffer[from..from + n];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}
