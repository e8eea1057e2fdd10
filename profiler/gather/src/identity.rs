//! Identities that outlive connections and kills: those of a trace folder and of a machine's clock.

use crate::error::SendError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

/// The name of the file with a trace folder's id.
const FOLDER_ID: &str = "folder-id";
/// The length of an id, bytes.
pub(crate) const ID_BYTES: usize = 16;

/// A trace folder's id, with the lock of the process that may send the folder.
#[derive(Debug)]
pub(crate) struct FolderId {
    pub(crate) id: [u8; ID_BYTES],
    _lock: File,
}

impl FolderId {
    /// Locks the folder for sending and reads its id; creates the id where there is none.
    pub(crate) fn claim(trace_dir: &Path) -> Result<FolderId, SendError> {
        let failed = |e| SendError::Folder(trace_dir.to_owned(), e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(trace_dir.join(FOLDER_ID)).map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(SendError::InUse(trace_dir.to_owned())),
            Err(TryLockError::Error(e)) => Err(failed(e)),
            Ok(()) => Ok(FolderId { id: stored_id(&mut file).map_err(failed)?, _lock: file }),
        }
    }

    /// Writes the id into another folder.
    pub(crate) fn copy_to(&self, trace_dir: &Path) -> io::Result<()> {
        std::fs::write(trace_dir.join(FOLDER_ID), to_hex(&self.id))
    }
}

/// Reads the id in a file; writes a new one where there is none.
fn stored_id(file: &mut File) -> io::Result<[u8; ID_BYTES]> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if let Some(id) = from_hex(text.trim()) {
        return Ok(id);
    }
    let id = random_id()?;
    file.set_len(0)?;
    io::Seek::rewind(file)?;
    file.write_all(to_hex(&id).as_bytes())?;
    file.sync_all()?;
    Ok(id)
}

fn random_id() -> io::Result<[u8; ID_BYTES]> {
    let mut id = [0; ID_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; ID_BYTES]> {
    let is_id = text.len() == 2 * ID_BYTES && !text.starts_with('+');
    is_id.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(u128::to_be_bytes)
}

/// A clock and the function that reads it. Processes with the same clock need no exchange of stamps.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Identifies boot and time namespace; letters, digits and `-`.
    pub id: String,
    /// Reads the clock, ns.
    pub now: fn() -> i64,
}

impl Clock {
    /// The clock of this process and its trace, `CLOCK_MONOTONIC_RAW`.
    #[must_use]
    pub fn of_this_host() -> Clock {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // A container may have a time namespace with an offset of its own.
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        let namespace: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let id = match boot.trim() {
            // Without a boot id no two processes are known to share a clock: the id is random.
            "" => format!("unknown-{}", random_id().map_or_else(|_| std::process::id().to_string(), |id| to_hex(&id))),
            boot => format!("{boot}-{namespace}"),
        };
        Clock { id, now: events::clock::mono_now }
    }
}

/// Whether a text from another process is a valid clock id, which may become part of a file's name.
pub(crate) fn is_clock_id(id: &str) -> bool {
    (1..=100).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
