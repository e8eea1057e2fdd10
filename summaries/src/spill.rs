//! Bytes that are held in memory within a budget of the process, and in a temporary file beyond it.
//!
//! The budget is `STEPSCOPE_HISTOGRAM_MIB` (MiB, 256 without it). The file has no name: it is gone with the process.

use std::{
    env,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

const VARIABLE: &str = "STEPSCOPE_HISTOGRAM_MIB";
const DEFAULT_MIB: u64 = 256;
/// Less than this is not worth a place in the file.
const LEAST: usize = 64 << 10;

/// What all columns of the process hold in memory.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Where columns beyond the budget are, with its end.
static FILE: Mutex<Option<(File, u64)>> = Mutex::new(None);

fn budget() -> u64 {
    static BUDGET: OnceLock<u64> = OnceLock::new();
    let mib = || env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_MIB);
    *BUDGET.get_or_init(|| mib().saturating_mul(1 << 20))
}

/// Bytes that only grow; older ones may be in the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpillingBytes {
    /// Ranges in the file: where each begins here, and there.
    spilled: Vec<(u64, u64)>,
    n_spilled: u64,
    held: MemoryBuffer,
}

/// Bytes in memory, counted in [`HELD`].
#[derive(Debug, Default)]
struct MemoryBuffer(Vec<u8>);

impl SpillingBytes {
    pub fn len(&self) -> u64 {
        self.n_spilled + self.held.0.len() as u64
    }

    /// Appends bytes that will be read at once or in parts, but not together with others.
    pub fn append(&mut self, bytes: &[u8]) {
        self.held.0.extend_from_slice(bytes);
        let n_held = HELD.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        if n_held > budget() && self.held.0.len() >= LEAST {
            self.spill();
        }
    }

    fn spill(&mut self) {
        // A disk that takes no more leaves the bytes where they are.
        if let Ok(place) = write(&self.held.0) {
            self.spilled.push((self.n_spilled, place));
            self.n_spilled += self.held.0.len() as u64;
            self.held = MemoryBuffer::default();
        }
    }

    /// Hands `len` bytes from `begin` on to `read`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read<T>(&self, begin: u64, len: usize, read: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        if let Some(begin) = begin.checked_sub(self.n_spilled) {
            return Ok(read(&self.held.0[begin as usize..begin as usize + len]));
        }
        let part = self.spilled.partition_point(|(first, _)| *first <= begin);
        let (first, place) = self.spilled[part - 1];
        let mut bytes = vec![0; len];
        let mut file = FILE.lock();
        let (file, _) = file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(place + begin - first))?;
        file.read_exact(&mut bytes)?;
        Ok(read(&bytes))
    }

    /// How much is in the file.
    pub fn n_spilled(&self) -> u64 {
        self.n_spilled
    }
}

/// Appends to the file; where the bytes begin.
fn write(bytes: &[u8]) -> io::Result<u64> {
    let mut file = FILE.lock();
    if file.is_none() {
        *file = Some((tempfile::tempfile()?, 0));
    }
    let (file, end) = file.as_mut().ok_or(io::ErrorKind::NotFound)?;
    file.seek(SeekFrom::Start(*end))?;
    file.write_all(bytes)?;
    let place = *end;
    *end += bytes.len() as u64;
    Ok(place)
}

impl Clone for MemoryBuffer {
    fn clone(&self) -> Self {
        HELD.fetch_add(self.0.len() as u64, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for MemoryBuffer {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}
