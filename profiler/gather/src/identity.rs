//! What stays the same over connections and kills: a trace folder's id, a machine's clock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

/// The file with a trace folder's own id.
const FOLDER_ID: &str = "folder-id";
/// Length of an id, bytes.
pub(crate) const ID_BYTES: usize = 16;

/// A trace folder's id, and the right to send the folder, which ends with the process.
#[derive(Debug)]
pub(crate) struct FolderId {
    pub(crate) id: [u8; ID_BYTES],
    _lock: File,
}

/// Why a folder cannot be claimed.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// Another process sends it.
    InUse,
    /// It cannot be written.
    Io(io::Error),
}

impl From<io::Error> for ClaimError {
    fn from(error: io::Error) -> Self {
        ClaimError::Io(error)
    }
}

impl FolderId {
    /// The folder's id; makes one where there is none.
    ///
    /// # Errors
    /// Another process sends the folder, or it cannot be written.
    pub(crate) fn claim(trace_dir: &Path) -> Result<FolderId, ClaimError> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(trace_dir.join(FOLDER_ID))?;
        file.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => ClaimError::InUse,
            TryLockError::Error(e) => ClaimError::Io(e),
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let id = match from_hex(text.trim()) {
            Some(id) => id,
            None => {
                let id = random()?;
                file.set_len(0)?;
                io::Seek::rewind(&mut file)?;
                file.write_all(to_hex(&id).as_bytes())?;
                file.sync_all()?;
                id
            }
        };
        Ok(FolderId { id, _lock: file })
    }

    /// Gives another folder the same id.
    ///
    /// # Errors
    /// The folder is not writable.
    pub(crate) fn copy_to(&self, trace_dir: &Path) -> io::Result<()> {
        std::fs::write(trace_dir.join(FOLDER_ID), to_hex(&self.id))
    }
}

fn random() -> io::Result<[u8; ID_BYTES]> {
    let mut id = [0; ID_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

/// Bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; ID_BYTES]> {
    let mut id = [0; ID_BYTES];
    if text.len() != 2 * ID_BYTES || !text.is_ascii() {
        return None;
    }
    for (byte, at) in id.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(id)
}

/// Which clock times are of, and how it is read. Processes with the same one need no exchange of stamps.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Machine, boot and time namespace; letters, digits and `-`.
    pub id: String,
    /// Reads it, ns.
    pub now: fn() -> i64,
}

impl Clock {
    /// This process's: `CLOCK_MONOTONIC_RAW`, in which its trace is.
    #[must_use]
    pub fn here() -> Clock {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // A container may have a clock of its own.
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        let namespace: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let id = match boot.trim() {
            // Without it no two processes are known to share a clock.
            "" => format!("unknown-{}", random().map_or_else(|_| std::process::id().to_string(), |id| to_hex(&id))),
            boot => format!("{boot}-{namespace}"),
        };
        Clock { id, now: events::clock::mono_now }
    }
}

/// Whether text from outside may be a clock's id: it becomes part of a file's name.
pub(crate) fn is_clock_id(id: &str) -> bool {
    (1..=100).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
