//! Writing event files: their names, their first record, and writes that leave only complete records.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::proto::{Event, event::What};

/// The first record of a file: the version of the format.
const FILE_VERSION: &str = "brain.Event:2";

/// The number of files that this process has named: distinguishes those of the same second.
static N_FILES: AtomicU32 = AtomicU32::new(0);

/// An event file that is being written.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
    /// The length of the complete records, bytes.
    len: u64,
}

/// The first event of a file. `wall_time` is in Unix seconds.
pub fn version(wall_time: f64) -> Event {
    Event { wall_time, step: 0, what: Some(What::FileVersion(FILE_VERSION.into())), source_metadata: None }
}

impl EventFile {
    /// Creates an empty file in `folder`, which is created if it is missing. The file's name is
    /// `events.out.tfevents.SECONDS.HOST.PID.N`, then `suffix`; `seconds` since 1970.
    ///
    /// # Errors
    /// The folder or the file cannot be created; the error has its path.
    pub fn create(folder: &Path, suffix: &str, seconds: u64) -> Result<EventFile, (PathBuf, io::Error)> {
        fs::create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
        let path = folder.join(format!("{}{suffix}", file_name(seconds)));
        match File::create_new(&path) {
            Ok(file) => Ok(EventFile::from_file(path, file)),
            Err(error) => Err((path, error)),
        }
    }

    /// An event file from an empty file that is open for writing.
    pub fn from_file(path: PathBuf, file: File) -> EventFile {
        EventFile { path, file, len: 0 }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends framed records ([`crate::tfrecord::append_record`]). Where a write fails, the file is truncated to the
    /// records before, as far as the system allows.
    ///
    /// # Errors
    /// Errors of the system, such as a full disk. A later call may succeed.
    pub fn write(&mut self, records: &[u8]) -> io::Result<()> {
        let result = self.file.write_all(records);
        match result {
            Ok(()) => self.len += records.len() as u64,
            // Where these calls fail as well, readers skip the torn record and find the next good one.
            Err(_) => {
                let _ = self.file.set_len(self.len);
                let _ = self.file.seek(SeekFrom::Start(self.len));
            }
        }
        result
    }
}

/// A file name by which TensorBoard recognises event files, made of the same parts as TensorFlow's.
fn file_name(seconds: u64) -> String {
    let n = N_FILES.fetch_add(1, Ordering::Relaxed);
    format!("events.out.tfevents.{seconds:010}.{}.{}.{n}", host_name(), std::process::id())
}

/// The host's name without characters that are unusual in file names.
fn host_name() -> String {
    let name =
        fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
