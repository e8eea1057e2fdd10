//! Event files as they are written: what they are called, what they begin with, and that they hold whole records only.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::proto::{Event, event::What};

/// The first record of a file: the version of the format.
const FILE_VERSION: &str = "brain.Event:2";

/// Distinguishes the files of one process that begin in the same second.
static N_FILES: AtomicU32 = AtomicU32::new(0);

/// An event file that is being written.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
    end: u64,
}

/// The first record of a file. `wall` is the time, in Unix seconds.
pub fn version(wall: f64) -> Event {
    Event { wall_time: wall, step: 0, what: Some(What::FileVersion(FILE_VERSION.into())), source_metadata: None }
}

impl EventFile {
    /// Makes `folder` if need be, and in it an empty file `events.out.tfevents.SECONDS.HOST.PID.N` and `suffix`;
    /// `seconds` since 1970.
    ///
    /// # Errors
    /// The folder or the file cannot be made; with the path that it is about.
    pub fn create(folder: &Path, suffix: &str, seconds: u64) -> Result<EventFile, (PathBuf, io::Error)> {
        fs::create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
        let path = folder.join(format!("{}{suffix}", file_name(seconds)));
        match File::create_new(&path) {
            Ok(file) => Ok(EventFile::of(path, file)),
            Err(error) => Err((path, error)),
        }
    }

    /// A file that is open for writing, and empty.
    pub fn of(path: PathBuf, file: File) -> EventFile {
        EventFile { path, file, end: 0 }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes framed records ([`crate::tfrecord::append_record`]): all of them or, as far as the system allows, nothing
    /// of them.
    ///
    /// # Errors
    /// Those of the system, a full disk say. Later records may fit again.
    pub fn write(&mut self, records: &[u8]) -> io::Result<()> {
        let result = self.file.write_all(records);
        match result {
            Ok(()) => self.end += records.len() as u64,
            // Should these fail as well, a reader finds the next good record behind the torn one.
            Err(_) => {
                let _ = self.file.set_len(self.end);
                let _ = self.file.seek(SeekFrom::Start(self.end));
            }
        }
        result
    }
}

/// The name that TensorBoard looks for, with the parts that TensorFlow puts into it.
fn file_name(seconds: u64) -> String {
    let n = N_FILES.fetch_add(1, Ordering::Relaxed);
    format!("events.out.tfevents.{seconds:010}.{}.{}.{n}", host_name(), std::process::id())
}

/// The host's name, as far as it can be part of a file name.
fn host_name() -> String {
    let name =
        fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
