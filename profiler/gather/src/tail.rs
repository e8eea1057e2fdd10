//! The part of a trace folder that is not sent yet: the growing ends of its files, with names before the events that
//! use them.

use crate::wire::FileLength;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use trace_model::chunks;

/// The most bytes of a piece.
pub(crate) const MAX_PIECE_BYTES: usize = 128 << 10;
/// The bytes that are read at a time, with room for the longest chunk.
const BLOCK_BYTES: usize = chunks::MAX_CHUNK + MAX_PIECE_BYTES;
/// The bytes at the end of a file's sent part whose checksum identifies the file.
pub(crate) const TAIL_BYTES: u64 = 4096;
/// The bytes before the first unsent byte that are compared before each read, to notice that the file was rewritten.
const SEAM_BYTES: usize = 64;

/// A part of a file to be sent as one piece.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) data: Bytes,
}

/// A file of the folder that may still grow.
struct GrowingFile {
    file: File,
    /// The name of the collector's copy.
    name: String,
    /// The offset of the first byte that [`Tail::next`] has not returned.
    offset: u64,
    /// The last bytes before `offset`.
    seam: Vec<u8>,
    is_chunks: bool,
    /// The file's length at the last [`Tail::measure_files`].
    length: u64,
}

/// The unsent ends of a trace folder's files.
pub(crate) struct Tail {
    dir: PathBuf,
    collector_files: BTreeMap<String, FileLength>,
    files: BTreeMap<PathBuf, GrowingFile>,
    /// Files with new bytes, in the order in which they are sent.
    queue: VecDeque<PathBuf>,
    parts: VecDeque<Part>,
}

/// Why the connection cannot continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TailError {
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// Bytes that had been read have changed: a failed write (disk full) was truncated and repeated.
    #[error("{0} was written anew")]
    Rewritten(PathBuf),
}

impl Tail {
    /// Returns the tail of a folder of which the collector has `collector_files`.
    pub(crate) fn new(dir: &Path, collector_files: Vec<FileLength>) -> Tail {
        let collector_files = collector_files.into_iter().map(|f| (f.file.clone(), f)).collect();
        Tail {
            dir: dir.to_owned(),
            collector_files,
            files: BTreeMap::new(),
            queue: VecDeque::new(),
            parts: VecDeque::new(),
        }
    }

    /// Reads the current lengths of the folder's files.
    pub(crate) fn measure_files(&mut self) -> Result<(), TailError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |e| TailError::Io(path, e)
        };
        let (mut meta_files, mut chunk_files) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(&self.dir).map_err(failed(&self.dir))? {
            let path = entry.map_err(failed(&self.dir))?.path();
            match path.file_name().and_then(|n| n.to_str()) {
                Some(name) if is_meta(name) => meta_files.push(path),
                Some(name) if is_chunks(name) => chunk_files.push(path),
                _ => {}
            }
        }
        // Programs write a name before the first event that uses it. Meta files are measured after chunk files, so that
        // they contain all names that the measured chunks use, and are sent before the chunks.
        meta_files.sort_unstable();
        chunk_files.sort_unstable();
        for path in chunk_files.iter().chain(&meta_files) {
            self.measure(path).map_err(failed(path))?;
        }
        let is_new = |path: &PathBuf| self.files.get(path).is_some_and(|f| f.offset < f.length);
        self.queue = meta_files.into_iter().chain(chunk_files).filter(is_new).collect();
        Ok(())
    }

    fn measure(&mut self, path: &Path) -> io::Result<()> {
        if !self.files.contains_key(path) {
            let file = File::open(path)?;
            let growing = open_growing(file, path, &self.collector_files)?;
            self.files.insert(path.to_owned(), growing);
        }
        if let Some(growing) = self.files.get_mut(path) {
            growing.length = growing.file.metadata()?.len();
        }
        Ok(())
    }

    /// Returns the next part up to the measured lengths; with `to_the_end` also a chunk that may be incomplete.
    pub(crate) fn next(&mut self, to_the_end: bool) -> Result<Option<Part>, TailError> {
        while self.parts.is_empty() {
            let Some(path) = self.queue.front() else { return Ok(None) };
            let Some(growing) = self.files.get_mut(path) else {
                self.queue.pop_front();
                continue;
            };
            let data = growing.read(to_the_end).map_err(|e| TailError::Io(path.clone(), e))?;
            let Some(data) = data else { return Err(TailError::Rewritten(path.clone())) };
            if data.is_empty() {
                self.queue.pop_front();
                continue;
            }
            let begin = growing.offset - data.len() as u64;
            for at in (0..data.len()).step_by(MAX_PIECE_BYTES) {
                let part = data.slice(at..data.len().min(at + MAX_PIECE_BYTES));
                self.parts.push_back(Part { file: growing.name.clone(), offset: begin + at as u64, data: part });
            }
        }
        Ok(self.parts.pop_front())
    }
}

impl GrowingFile {
    /// Reads the next bytes, none where no complete chunk is there; `None` where the file was rewritten.
    fn read(&mut self, to_the_end: bool) -> io::Result<Option<Bytes>> {
        let mut seam = vec![0; self.seam.len()];
        let from = self.offset - seam.len() as u64;
        match self.file.read_exact_at(&mut seam, from) {
            Ok(()) if seam == self.seam => {}
            Ok(()) => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(e),
        }
        let length = self.length.saturating_sub(self.offset).min(BLOCK_BYTES as u64) as usize;
        let mut data = read_up_to(&self.file, self.offset, length)?;
        let reaches_end = self.offset + data.len() as u64 >= self.length;
        if self.is_chunks && !(to_the_end && reaches_end) {
            data.truncate(chunks::n_final_bytes(&data, self.offset == 0));
        }
        self.offset += data.len() as u64;
        let seam_begin = data.len().saturating_sub(SEAM_BYTES);
        self.seam.extend_from_slice(&data[seam_begin..]);
        let excess = self.seam.len().saturating_sub(SEAM_BYTES);
        self.seam.drain(..excess);
        Ok(Some(Bytes::from(data)))
    }
}

/// Finds the name of the collector's copy of a file, and the offset at which to continue.
fn open_growing(file: File, path: &Path, collector_files: &BTreeMap<String, FileLength>) -> io::Result<GrowingFile> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_chunks = is_chunks(&file_name);
    let stem = file_name.strip_suffix(".bin").unwrap_or(&file_name);
    // A rewritten file is sent from its beginning under a new name; readers recognise events that they already have.
    let names = std::iter::once(file_name.clone()).chain((1u32..).map(|n| format!("{stem}.r{n}.bin")));
    let len = file.metadata()?.len();
    for name in names {
        let n_sent = match collector_files.get(&name) {
            None => 0,
            Some(copy) if copy.length <= len && tail_crc(&file, copy.length)? == copy.tail_crc => copy.length,
            Some(_) => continue,
        };
        let mut seam = vec![0; n_sent.min(SEAM_BYTES as u64) as usize];
        let from = n_sent - seam.len() as u64;
        file.read_exact_at(&mut seam, from)?;
        return Ok(GrowingFile { file, name, offset: n_sent, seam, is_chunks, length: n_sent });
    }
    // Unreachable in practice: there are 2^32 names.
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Reads `length` bytes of a file from an offset, fewer at the file's end.
pub(crate) fn read_up_to(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut n_read) = (vec![0; length], 0);
    while n_read < length {
        match file.read_at(&mut bytes[n_read..], offset.saturating_add(n_read as u64))? {
            0 => break,
            n => n_read += n,
        }
    }
    bytes.truncate(n_read);
    Ok(bytes)
}

/// CRC-32C of the last [`TAIL_BYTES`] bytes before `end`.
pub(crate) fn tail_crc(file: &File, end: u64) -> io::Result<u32> {
    let mut bytes = vec![0; end.min(TAIL_BYTES) as usize];
    let from = end - bytes.len() as u64;
    file.read_exact_at(&mut bytes, from)?;
    Ok(crc32c::crc32c(&bytes))
}

fn is_meta(name: &str) -> bool {
    name.starts_with("meta-") && name.ends_with(".bin")
}

fn is_chunks(name: &str) -> bool {
    name.starts_with("chunks-") && name.ends_with(".bin")
}

/// Whether a name from another process is valid for a file of a trace folder.
pub(crate) fn is_trace_file(name: &str) -> bool {
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
    name.len() <= 64 && is_plain && (is_meta(name) || is_chunks(name))
}
