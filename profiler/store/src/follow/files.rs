//! Reads the chunk files of a trace folder, in the order in which their collectors started.

use events::Record;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trace_model::chunks;
use trace_model::chunks::{ChunkHeader, ScannedChunk, Scanner};

/// Bytes that are read at a time.
const READ_BYTES: u64 = 1 << 20;

/// A growing chunk file.
#[derive(Debug)]
pub(crate) struct ChunkFile {
    pub(crate) path: PathBuf,
    /// Start of the collector. Only one collector works at a time, so that files in this order have each ring's records
    /// in order.
    begun_ns: i64,
    file: File,
    pub(crate) scanner: Scanner,
    pub(crate) error: Option<String>,
}

/// A chunk that was read and not applied yet.
#[derive(Debug)]
pub(crate) struct StagedChunk {
    pub(crate) header: ChunkHeader,
    pub(crate) records: Vec<Record>,
    /// Whether the records are damaged, and left out.
    pub(crate) is_damaged: bool,
}

/// All chunk files of a folder.
#[derive(Debug, Default)]
pub(crate) struct ChunkFiles {
    files: Vec<ChunkFile>,
    /// Index of the file that is being read. Earlier files are complete, and their collectors have ended.
    current_idx: usize,
    /// Bytes read so far.
    pub(crate) bytes: u64,
}

impl ChunkFiles {
    pub(crate) fn files(&self) -> &[ChunkFile] {
        &self.files
    }

    /// Adds a file, unless it was added before or is still too short for its header.
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
        let position = self.files.partition_point(|f| f.begun_ns <= begun_ns).max(self.current_idx);
        self.files.insert(position, ChunkFile { path: path.to_owned(), begun_ns, file, scanner, error: None });
        self.bytes += chunks::FILE_HEADER as u64;
        Ok(())
    }

    /// Appends the next chunks, with at least `budget` records if there are as many. Returns whether all chunks that
    /// exist now were read.
    pub(crate) fn read(&mut self, budget: usize, out: &mut Vec<StagedChunk>) -> bool {
        let mut n_records = 0;
        while let Some(file) = self.files.get_mut(self.current_idx) {
            loop {
                let mut records = Vec::new();
                while n_records < budget
                    && let Some(chunk) = file.scanner.next(&mut records)
                {
                    let (header, is_damaged) = match chunk {
                        ScannedChunk::Chunk(header) => (header, false),
                        ScannedChunk::BadPayload(header) => (header, true),
                    };
                    n_records += records.len();
                    out.push(StagedChunk { header, records: std::mem::take(&mut records), is_damaged });
                }
                if n_records >= budget {
                    return false;
                }
                let mut piece = Vec::new();
                match file.file.by_ref().take(READ_BYTES).read_to_end(&mut piece) {
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
            if self.current_idx + 1 == self.files.len() {
                return true;
            }
            self.current_idx += 1;
        }
        true
    }
}
