//! The collector's copy of one trace folder.
//!
//! Each file is copied in order from its beginning, so that its length says which bytes the collector has: bytes that
//! come again are recognised by their position, and a gap is refused. After a kill a copy is a prefix of its
//! source. Files are synced before an acknowledgement (unless the server's options say otherwise), so that acknowledged
//! bytes survive the machine's stop too.

use crate::identity::to_hex;
use crate::tail::{is_trace_file, tail_crc};
use crate::wire::{FileLength, Hello, Piece, State, up};
use events::control::{Collector, Losses};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trace_model::layout::{SOURCE_FILE, SourceInfo, read_json};

/// Files of one folder, at most; each process writes two.
const MAX_FILES: usize = 4096;

/// Why an item was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    /// The sender violates the protocol.
    #[error("{0}")]
    Protocol(String),
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
}

/// The copy of one file.
struct Copy {
    file: File,
    len: u64,
    is_dirty: bool,
}

/// A copy of a trace folder, written in order.
pub(crate) struct Mirror {
    dir: PathBuf,
    copies: BTreeMap<String, Copy>,
    /// The claim that shows readers that the trace grows; `None` before the first connection and after the trace's end.
    claim: Option<Collector>,
    /// The number of the connection that may write.
    pub(crate) turn: u64,
    /// Bytes that were received again since the hub took the count.
    pub(crate) repeated: u64,
}

/// Returns the path of a folder's copy.
pub(crate) fn mirror_path(gathered: &Path, hello: &Hello) -> PathBuf {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    let host: String = hello.host.chars().filter(is_plain).take(64).collect();
    let host = if host.is_empty() { "host" } else { &host };
    gathered.join(format!("{host}-{}", to_hex(&hello.folder)))
}

impl Mirror {
    pub(crate) fn create(dir: &Path, hello: &Hello) -> Result<Mirror, MirrorError> {
        let io_error = |e| MirrorError::Io(dir.to_owned(), e);
        std::fs::create_dir_all(dir).map_err(io_error)?;
        let info = SourceInfo { host: hello.host.clone(), clock: hello.clock.clone(), folder: to_hex(&hello.folder) };
        let path = dir.join(SOURCE_FILE);
        let text = serde_json::to_string_pretty(&info).map_err(|e| io_error(e.into()))?;
        let staged = dir.join("source.json.tmp");
        std::fs::write(&staged, text).and_then(|()| std::fs::rename(&staged, &path)).map_err(io_error)?;
        Mirror::open(dir)
    }

    /// Opens a copy that an earlier collector began.
    pub(crate) fn open(dir: &Path) -> Result<Mirror, MirrorError> {
        let mut copies = BTreeMap::new();
        let io_error = |e| MirrorError::Io(dir.to_owned(), e);
        for entry in std::fs::read_dir(dir).map_err(io_error)? {
            let entry = entry.map_err(io_error)?;
            if let Some(name) = entry.file_name().to_str().filter(|name| is_trace_file(name)) {
                copies.insert(name.to_owned(), Copy::open(&entry.path()).map_err(io_error)?);
            }
        }
        Ok(Mirror { dir: dir.to_owned(), copies, claim: None, turn: 0, repeated: 0 })
    }

    /// Returns the id of the source folder; `None` where `dir` is no copy.
    pub(crate) fn folder_of(dir: &Path) -> Option<String> {
        Some(read_json::<SourceInfo>(&dir.join(SOURCE_FILE)).ok()?.folder)
    }

    /// Begins a connection: ends the previous one's right to write, and returns the lengths of the copied files.
    pub(crate) fn begin_connection(&mut self) -> Result<Vec<FileLength>, MirrorError> {
        if self.claim.is_none() {
            let claimed = Collector::claim(&self.dir);
            let claim = claimed.map_err(|e| MirrorError::Io(self.dir.clone(), io::Error::other(e)))?;
            self.claim = Some(claim);
        }
        self.turn += 1;
        let length = |(name, copy): (&String, &Copy)| {
            let tail_crc = tail_crc(&copy.file, copy.len)?;
            Ok(FileLength { file: name.clone(), length: copy.len, tail_crc })
        };
        self.copies.iter().map(length).collect::<io::Result<_>>().map_err(|e| MirrorError::Io(self.dir.clone(), e))
    }

    /// Writes items and syncs them if `sync` is set; returns the last sequence number and the number of new bytes.
    pub(crate) fn write_items(&mut self, items: Vec<up::What>, sync: bool) -> Result<(u64, u64), MirrorError> {
        let (mut sequence, mut n_bytes, mut is_finished) = (0, 0, false);
        for item in items {
            match item {
                up::What::Piece(piece) => {
                    sequence = piece.sequence;
                    n_bytes += self.write(&piece)?;
                }
                up::What::State(state) => {
                    sequence = state.sequence;
                    is_finished |= state.finished;
                    self.write_state(&state);
                }
                up::What::Hello(_) => return Err(MirrorError::Protocol("a greeting comes first, and once".to_owned())),
            }
        }
        for (name, copy) in self.copies.iter_mut().filter(|(_, copy)| sync && copy.is_dirty) {
            copy.file.sync_data().map_err(|e| MirrorError::Io(self.dir.join(name), e))?;
            copy.is_dirty = false;
        }
        match &self.claim {
            Some(_) if is_finished => {
                if let Some(claim) = self.claim.take() {
                    claim.finish();
                }
            }
            Some(claim) => claim.heartbeat(),
            None => {}
        }
        Ok((sequence, n_bytes))
    }

    fn write_state(&self, state: &State) {
        if let Some(claim) = &self.claim {
            let (events, threads, meta) = (state.lost_events, state.lost_threads, state.lost_meta);
            claim.report_losses(Losses { events, threads, meta });
        }
    }

    /// Appends the new bytes of a piece; returns their number.
    fn write(&mut self, piece: &Piece) -> Result<u64, MirrorError> {
        if !is_trace_file(&piece.file) {
            return Err(MirrorError::Protocol(format!("{:?} is no file of a trace folder", piece.file)));
        }
        if crc32c::crc32c(&piece.data) != piece.crc {
            return Err(MirrorError::Protocol(format!("piece {} was damaged on its way", piece.sequence)));
        }
        if !self.copies.contains_key(&piece.file) {
            if self.copies.len() >= MAX_FILES {
                return Err(MirrorError::Protocol(format!("more than {MAX_FILES} files in one folder")));
            }
            let path = self.dir.join(&piece.file);
            let copy = Copy::open(&path).map_err(|e| MirrorError::Io(path, e))?;
            self.copies.insert(piece.file.clone(), copy);
        }
        let Some(copy) = self.copies.get_mut(&piece.file) else { return Ok(0) };
        let Some(n_known) = copy.len.checked_sub(piece.offset) else {
            let (file, offset, len) = (&piece.file, piece.offset, copy.len);
            return Err(MirrorError::Protocol(format!(
                "{file}: bytes from {offset} on, but those from {len} on are next"
            )));
        };
        let n_known = usize::try_from(n_known).unwrap_or(usize::MAX).min(piece.data.len());
        self.repeated += n_known as u64;
        let new = &piece.data[n_known..];
        if let Err(e) = copy.file.write_all(new) {
            // A part may have been written. Its bytes are right, and the sender sends the piece again.
            copy.len = copy.file.metadata().map_or(copy.len, |m| m.len());
            return Err(MirrorError::Io(self.dir.join(&piece.file), e));
        }
        copy.is_dirty |= !new.is_empty();
        copy.len += new.len() as u64;
        Ok(new.len() as u64)
    }
}

impl Copy {
    fn open(path: &Path) -> io::Result<Copy> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let len = file.metadata()?.len();
        // Dirty, since an earlier collector may have written bytes without syncing them.
        Ok(Copy { file, len, is_dirty: true })
    }
}
