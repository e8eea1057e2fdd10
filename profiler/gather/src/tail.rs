//! The part of a trace folder that is still to be sent: the growing ends of its files, with names before the events
//! that use them.

use crate::wire::FileLength;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use trace_model::chunks;

/// The size of a piece, bytes, at most.
pub(crate) const PIECE: usize = 128 << 10;
/// Bytes that are read at a time: room for the longest chunk.
const BLOCK: usize = chunks::MAX_CHUNK + PIECE;
/// Bytes at the end of a file's sent part whose checksum identifies the file.
pub(crate) const TAIL: u64 = 4096;
/// Bytes before the next unsent byte that are compared before each read, to notice that the file was written anew.
const SEAM: usize = 64;

/// A part of a file, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) data: Bytes,
}

/// A file of the folder, and the part of it that was returned.
struct GrowingFile {
    file: File,
    /// The file's name on the other side.
    name: String,
    /// Everything before this offset was returned.
    at: u64,
    /// The last bytes before `at`.
    seam: Vec<u8>,
    is_chunks: bool,
    /// The file's length at the last [`Tail::measure_files`].
    limit: u64,
}

/// The unsent ends of a trace folder's files.
pub(crate) struct Tail {
    dir: PathBuf,
    have: BTreeMap<String, FileLength>,
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
    /// The tail of a folder of which the other side has the files `have`.
    pub(crate) fn new(dir: &Path, have: Vec<FileLength>) -> Tail {
        let have = have.into_iter().map(|f| (f.file.clone(), f)).collect();
        Tail { dir: dir.to_owned(), have, files: BTreeMap::new(), queue: VecDeque::new(), parts: VecDeque::new() }
    }

    /// Reads the current lengths of the folder's files.
    pub(crate) fn measure_files(&mut self) -> Result<(), TailError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |e| TailError::Io(path, e)
        };
        let (mut metas, mut others) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(&self.dir).map_err(failed(&self.dir))? {
            let path = entry.map_err(failed(&self.dir))?.path();
            match path.file_name().and_then(|n| n.to_str()) {
                Some(name) if is_meta(name) => metas.push(path),
                Some(name) if is_chunks(name) => others.push(path),
                _ => {}
            }
        }
        // A name is written before the first event that uses it. Meta files are measured after chunk files, so that
        // they have all names that the chunks use, and are sent before them.
        metas.sort_unstable();
        others.sort_unstable();
        for path in others.iter().chain(&metas) {
            self.measure(path).map_err(failed(path))?;
        }
        let is_new = |path: &PathBuf| self.files.get(path).is_some_and(|f| f.at < f.limit);
        self.queue = metas.into_iter().chain(others).filter(is_new).collect();
        Ok(())
    }

    fn measure(&mut self, path: &Path) -> io::Result<()> {
        if !self.files.contains_key(path) {
            let file = File::open(path)?;
            let growing = open_growing(file, path, &self.have)?;
            self.files.insert(path.to_owned(), growing);
        }
        if let Some(growing) = self.files.get_mut(path) {
            growing.limit = growing.file.metadata()?.len();
        }
        Ok(())
    }

    /// The next part of the measured lengths; with `to_the_end` also a chunk that may be incomplete.
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
            let begin = growing.at - data.len() as u64;
            for at in (0..data.len()).step_by(PIECE) {
                let part = data.slice(at..data.len().min(at + PIECE));
                self.parts.push_back(Part { file: growing.name.clone(), offset: begin + at as u64, data: part });
            }
        }
        Ok(self.parts.pop_front())
    }
}

impl GrowingFile {
    /// The next bytes, empty where no complete chunk is there; `None` where the file was written anew.
    fn read(&mut self, to_the_end: bool) -> io::Result<Option<Bytes>> {
        let mut seam = vec![0; self.seam.len()];
        let from = self.at - seam.len() as u64;
        match self.file.read_exact_at(&mut seam, from) {
            Ok(()) if seam == self.seam => {}
            Ok(()) => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(e),
        }
        let length = self.limit.saturating_sub(self.at).min(BLOCK as u64) as usize;
        let mut data = read_up_to(&self.file, self.at, length)?;
        let reaches_end = self.at + data.len() as u64 >= self.limit;
        if self.is_chunks && !(to_the_end && reaches_end) {
            data.truncate(chunks::n_final_bytes(&data, self.at == 0));
        }
        self.at += data.len() as u64;
        let seam_begin = data.len().saturating_sub(SEAM);
        self.seam.extend_from_slice(&data[seam_begin..]);
        let excess = self.seam.len().saturating_sub(SEAM);
        self.seam.drain(..excess);
        Ok(Some(Bytes::from(data)))
    }
}

/// Finds the file's name on the other side, and the offset at which to continue.
fn open_growing(file: File, path: &Path, have: &BTreeMap<String, FileLength>) -> io::Result<GrowingFile> {
    let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_chunks = is_chunks(&own);
    let stem = own.strip_suffix(".bin").unwrap_or(&own);
    // A file that was written anew is sent from its beginning under a new name; readers recognise events that they have
    // already.
    let names = std::iter::once(own.clone()).chain((1u32..).map(|n| format!("{stem}.r{n}.bin")));
    let len = file.metadata()?.len();
    for name in names {
        let at = match have.get(&name) {
            None => 0,
            Some(theirs) if theirs.length <= len && tail_crc(&file, theirs.length)? == theirs.tail_crc => theirs.length,
            Some(_) => continue,
        };
        let mut seam = vec![0; at.min(SEAM as u64) as usize];
        let from = at - seam.len() as u64;
        file.read_exact_at(&mut seam, from)?;
        return Ok(GrowingFile { file, name, at, seam, is_chunks, limit: at });
    }
    // Unreachable in practice: there are 2^32 names.
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Reads `length` bytes of a file from an offset on, fewer at the file's end.
pub(crate) fn read_up_to(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut n) = (vec![0; length], 0);
    while n < length {
        match file.read_at(&mut bytes[n..], offset.saturating_add(n as u64))? {
            0 => break,
            more => n += more,
        }
    }
    bytes.truncate(n);
    Ok(bytes)
}

/// CRC-32C of the last [`TAIL`] bytes before `end`.
pub(crate) fn tail_crc(file: &File, end: u64) -> io::Result<u32> {
    let mut bytes = vec![0; end.min(TAIL) as usize];
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

/// Whether a name from another process may be that of a file of a trace folder.
pub(crate) fn is_trace_file(name: &str) -> bool {
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
    name.len() <= 64 && is_plain && (is_meta(name) || is_chunks(name))
}
