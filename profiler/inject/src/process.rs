//! The process that the library was loaded into: its mapped files and its signals.

use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether this process has a file mapped into its memory.
pub fn has_mapped(file: &Path) -> bool {
    let Ok(inode) = file.metadata().map(|metadata| metadata.ino().to_string()) else { return false };
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    // Addresses, permissions, offset, device, inode, path.
    maps.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        fields.nth(4) == Some(inode.as_bytes()) && line.ends_with(name)
    })
}

/// Blocks all signals of the calling thread, and of the threads that it starts, until this is dropped.
pub struct SignalBlockGuard {
    previous_mask: Option<libc::sigset_t>,
}

impl SignalBlockGuard {
    pub fn block_all() -> SignalBlockGuard {
        let (mut all, mut previous_mask) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `sigfillset` initialises the first set, and `pthread_sigmask` the second where it returns 0.
        let previous_mask = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let status = libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), previous_mask.as_mut_ptr());
            (status == 0).then(|| previous_mask.assume_init())
        };
        SignalBlockGuard { previous_mask }
    }
}

impl Drop for SignalBlockGuard {
    fn drop(&mut self) {
        if let Some(previous_mask) = &self.previous_mask {
            // SAFETY: `pthread_sigmask` has initialised the set.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, previous_mask, std::ptr::null_mut()) };
        }
    }
}
