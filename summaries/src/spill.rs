//! Bytes that are in memory within a budget of the process, and in a temporary file beyond it.
//!
//! The budget is `STEPSCOPE_HISTOGRAM_MIB` (MiB, default 256). The file has no name: it disappears with the process.

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

const BUDGET_VARIABLE: &str = "STEPSCOPE_HISTOGRAM_MIB";
const DEFAULT_MIB: u64 = 256;
/// The fewest bytes that a column moves to the file at a time.
const MIN_SPILL: usize = 64 << 10;

/// The number of bytes of all columns of the process in memory.
static N_RESIDENT: AtomicU64 = AtomicU64::new(0);
/// The file of the columns beyond the budget, and its length.
static FILE: Mutex<Option<(File, u64)>> = Mutex::new(None);

fn budget() -> u64 {
    static BUDGET: OnceLock<u64> = OnceLock::new();
    let mib = || env::var(BUDGET_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_MIB);
    *BUDGET.get_or_init(|| mib().saturating_mul(1 << 20))
}

/// A growing column of bytes, whose older part may be in the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpillingBytes {
    /// The parts in the file: the begin of each in this column, and in the file.
    spilled: Vec<(u64, u64)>,
    n_spilled: u64,
    resident: MemoryBuffer,
}

/// Bytes in memory, counted in [`N_RESIDENT`].
#[derive(Debug, Default)]
struct MemoryBuffer(Vec<u8>);

impl SpillingBytes {
    pub fn len(&self) -> u64 {
        self.n_spilled + self.resident.0.len() as u64
    }

    /// Appends bytes. A later `read` may not cross the end of an append.
    pub fn append(&mut self, bytes: &[u8]) {
        self.resident.0.extend_from_slice(bytes);
        let n_resident = N_RESIDENT.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        if n_resident > budget() && self.resident.0.len() >= MIN_SPILL {
            self.spill();
        }
    }

    fn spill(&mut self) {
        // Where the file cannot be written the bytes stay in memory, beyond the budget.
        if let Ok(file_offset) = write(&self.resident.0) {
            self.spilled.push((self.n_spilled, file_offset));
            self.n_spilled += self.resident.0.len() as u64;
            self.resident = MemoryBuffer::default();
        }
    }

    /// Calls `read` with the `len` bytes from `begin`.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn read<T>(&self, begin: u64, len: usize, read: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        if let Some(begin) = begin.checked_sub(self.n_spilled) {
            return Ok(read(&self.resident.0[begin as usize..begin as usize + len]));
        }
        let part_idx = self.spilled.partition_point(|(part_begin, _)| *part_begin <= begin);
        let (part_begin, file_offset) = self.spilled[part_idx - 1];
        let mut bytes = vec![0; len];
        let mut file = FILE.lock();
        let (file, _) = file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(file_offset + begin - part_begin))?;
        file.read_exact(&mut bytes)?;
        Ok(read(&bytes))
    }

    /// The number of bytes in the file.
    pub fn n_spilled(&self) -> u64 {
        self.n_spilled
    }
}

/// Appends to the file; returns the offset of the bytes.
fn write(bytes: &[u8]) -> io::Result<u64> {
    let mut file = FILE.lock();
    if file.is_none() {
        *file = Some((tempfile::tempfile()?, 0));
    }
    let (file, end) = file.as_mut().ok_or(io::ErrorKind::NotFound)?;
    file.seek(SeekFrom::Start(*end))?;
    file.write_all(bytes)?;
    let file_offset = *end;
    *end += bytes.len() as u64;
    Ok(file_offset)
}

impl Clone for MemoryBuffer {
    fn clone(&self) -> Self {
        N_RESIDENT.fetch_add(self.0.len() as u64, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for MemoryBuffer {
    fn drop(&mut self) {
        N_RESIDENT.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}
