//! Pinned memory of the host, through which copies from and to a device go: copies by the device's own engines need it.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::backend::{Backend, Failed};

/// Bytes that are kept for the next copies.
const KEPT: usize = 512 << 20;
/// The smallest piece.
const SMALLEST: usize = 4096;

/// A device's pieces.
pub(crate) struct Staging {
    backend: Arc<dyn Backend>,
    /// By the logarithm of their size, and the bytes of all.
    free: Mutex<(Vec<Vec<Pinned>>, usize)>,
}

struct Pinned(*mut u8);
// SAFETY: a piece that is kept belongs to nobody else.
unsafe impl Send for Pinned {}

/// A piece, returned when it is dropped: no copy may use it then.
pub(crate) struct Piece {
    at: Pinned,
    class: usize,
    staging: Arc<Staging>,
}

impl Staging {
    pub fn new(backend: Arc<dyn Backend>) -> Staging {
        Staging { backend, free: Mutex::new((Vec::new(), 0)) }
    }

    /// A piece of at least so many bytes.
    ///
    /// # Errors
    /// The driver has none.
    pub fn piece(self: &Arc<Staging>, n_bytes: usize) -> Result<Piece, Failed> {
        let too_large = || Failed { call: "cuMemHostAlloc", reason: format!("{n_bytes} bytes are too many") };
        let size = n_bytes.max(SMALLEST).checked_next_power_of_two().ok_or_else(too_large)?;
        let class = size.ilog2() as usize;
        let kept = {
            let (free, bytes) = &mut *self.free.lock();
            let kept = free.get_mut(class).and_then(Vec::pop);
            *bytes -= if kept.is_some() { size } else { 0 };
            kept
        };
        let at = match kept {
            Some(kept) => kept,
            None => Pinned(self.backend.alloc_pinned(size)?),
        };
        Ok(Piece { at, class, staging: Arc::clone(self) })
    }
}

impl Piece {
    /// Where it begins.
    pub fn at(&self) -> *mut u8 {
        self.at.0
    }

    /// Its first bytes.
    ///
    /// # Safety
    /// So many were written, and nothing writes them meanwhile.
    pub unsafe fn bytes(&self, n: usize) -> &[u8] {
        // SAFETY: as the caller promises; the piece is as long as was asked for.
        unsafe { std::slice::from_raw_parts(self.at.0, n) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let size = 1usize << self.class;
        let (free, bytes) = &mut *self.staging.free.lock();
        if *bytes + size > KEPT {
            // SAFETY: it came from there; its owner ends, so no copy uses it.
            unsafe { self.staging.backend.free_pinned(self.at.0) };
            return;
        }
        if free.len() <= self.class {
            free.resize_with(self.class + 1, Vec::new);
        }
        free[self.class].push(Pinned(self.at.0));
        *bytes += size;
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for piece in self.free.get_mut().0.drain(..).flatten() {
            // SAFETY: as above.
            unsafe { self.backend.free_pinned(piece.0) };
        }
    }
}
