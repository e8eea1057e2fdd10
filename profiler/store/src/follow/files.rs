//! The chunk files of a trace folder, read in the order in which their collectors worked.

use events::Record;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trace_model::chunks;
use trace_model::chunks::{ChunkHeader, Scanned, Scanner};

/// Bytes asked for at a time.
const PIECE: u64 = 1 << 20;

/// A growing chunk file.
#[derive(Debug)]
pub(crate) struct ChunkFile {
    pub(crate) path: PathBuf,
    /// When its collector began; only one works at a time, so files in this order hold each ring's records in order.
    begun_ns: i64,
    file: File,
    pub(crate) scanner: Scanner,
    pub(crate) error: Option<String>,
}

/// What one chunk brought.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) header: ChunkHeader,
    pub(crate) records: Vec<Record>,
    /// The records do not check and are not here.
    pub(crate) bad: bool,
}

/// All chunk files of a folder.
#[derive(Debug, Default)]
pub(crate) struct ChunkFiles {
    files: Vec<ChunkFile>,
    /// Files before this one are read to their end, and their collectors are gone.
    at: usize,
    pub(crate) bytes: u64,
}

impl ChunkFiles {
    pub(crate) fn files(&self) -> &[ChunkFile] {
        &self.files
    }

    /// Adds the file unless it is known or still too short for its header.
    pub(crate) fn discover(&mut self, path: &Path) -> io::Result<()> {
        if self.files.iter().any(|f| f.path == path) {
            return Ok(());
        }
        let mut file = File::open(path)?;
        let mut header = [0; chunks::FILE_HEADER];
        match file.read_exact(&mut header) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(e),
        }
        let begun_ns = header[16..24].try_into().map_or(0, i64::from_le_bytes);
        let mut scanner = Scanner::default();
        scanner.feed(&header);
        let place = self.files.partition_point(|f| f.begun_ns <= begun_ns).max(self.at);
        self.files.insert(place, ChunkFile { path: path.to_owned(), begun_ns, file, scanner, error: None });
        self.bytes += chunks::FILE_HEADER as u64;
        Ok(())
    }

    /// Appends the next chunks, at least `budget` records' worth if there are so many.
    /// Returns whether everything that is there now was read.
    pub(crate) fn read(&mut self, budget: usize, out: &mut Vec<Staged>) -> bool {
        let mut n = 0;
        while let Some(file) = self.files.get_mut(self.at) {
            loop {
                let mut records = Vec::new();
                while n < budget
                    && let Some(found) = file.scanner.next(&mut records)
                {
                    let (header, bad) = match found {
                        Scanned::Chunk(header) => (header, false),
                        Scanned::BadPayload(header) => (header, true),
                    };
                    n += records.len();
                    out.push(Staged { header, records: std::mem::take(&mut records), bad });
                }
                if n >= budget {
                    return false;
                }
                let mut piece = Vec::new();
                match file.file.by_ref().take(PIECE).read_to_end(&mut piece) {
                    Ok(0) => break,
                    Ok(read) => {
                        self.bytes += read as u64;
                        file.scanner.feed(&piece);
                    }
                    Err(e) => {
                        file.error = Some(e.to_string());
                        break;
                    }
                }
            }
            if self.at + 1 == self.files.len() {
                return true;
            }
            self.at += 1;
        }
        true
    }
}
