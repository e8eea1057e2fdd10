//! The process that the library was loaded into: its mapped files and its signals.

use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether this process has the file mapped.
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

/// Blocks all signals of this thread, and of the threads that it starts meanwhile, until this is dropped.
pub struct SignalsBlocked {
    before: Option<libc::sigset_t>,
}

impl SignalsBlocked {
    pub fn begin() -> SignalsBlocked {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `sigfillset` initialises the first set, and `pthread_sigmask` the second where it gives 0.
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let status = libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            (status == 0).then(|| before.assume_init())
        };
        SignalsBlocked { before }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: a set that `pthread_sigmask` gave.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}
