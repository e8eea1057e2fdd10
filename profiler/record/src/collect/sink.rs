//! The sink of the collector's batches.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use trace_model::chunks;

/// A destination of batches of complete chunks. After an error no part of the batch counts as written.
pub(crate) trait Sink {
    /// Appends a batch; on an error removes the part that was written, if possible.
    fn append(&mut self, batch: &[u8]) -> io::Result<()>;
}

pub(crate) struct FileSink {
    file: File,
    /// The length of the completely written batches, bytes.
    len: u64,
}

impl FileSink {
    /// Creates a new chunk file with its header; earlier files of the same process id stay.
    pub(crate) fn create(trace_dir: &Path) -> io::Result<FileSink> {
        let pid = std::process::id();
        let file = (1..)
            .map(|n| match n {
                1 => format!("chunks-{pid}.bin"),
                n => format!("chunks-{pid}-{n}.bin"),
            })
            .map(|name| OpenOptions::new().append(true).create_new(true).open(trace_dir.join(name)))
            .find(|opened| !matches!(opened, Err(e) if e.kind() == io::ErrorKind::AlreadyExists));
        let file = file.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        let mut sink = FileSink { file, len: 0 };
        sink.append(&chunks::file_header(pid, events::clock::mono_now()))?;
        Ok(sink)
    }
}

impl Sink for FileSink {
    fn append(&mut self, batch: &[u8]) -> io::Result<()> {
        match self.file.write_all(batch) {
            Ok(()) => {
                self.len += batch.len() as u64;
                Ok(())
            }
            Err(e) => {
                // Removes the part that was written. Where that fails too, readers skip the part as damage and find its
                // records in a later chunk.
                let _ = self.file.set_len(self.len);
                Err(e)
            }
        }
    }
}
