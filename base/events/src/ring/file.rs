//! Files for shared mappings, with reserved disk space and present pages.

use memmap2::MmapRaw;
use std::fs::File;
use std::io;

/// Makes the file `len` bytes long with disk space behind every byte: a sparse file would end the program with SIGBUS
/// when the disk is full at the first store.
///
/// # Errors
/// There is no space, or the file system refuses.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let len = libc::off_t::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        loop {
            // SAFETY: the descriptor is open for the length of the call; no memory is involved.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
                0 => return Ok(()),
                libc::EINTR => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        // Without `posix_fallocate`, writing zeros reserves the space.
        use std::io::Write;
        io::copy(&mut io::Read::take(io::repeat(0), len), &mut &*file)?;
        (&*file).flush()
    }
}

/// Maps the file with its pages present and writable, so that the first stores take no page fault (100 ns and more
/// each).
///
/// # Errors
/// The system refuses the mapping.
pub(crate) fn map_present(file: &File) -> io::Result<MmapRaw> {
    let map = MmapRaw::map_raw(file)?;
    #[cfg(target_os = "linux")]
    if map.advise(memmap2::Advice::PopulateWrite).is_ok() {
        return Ok(map);
    }
    // Before Linux 5.14: touch each page.
    for page in (0..map.len()).step_by(4096) {
        // SAFETY: the byte is inside the mapping; the file is new, known to no other process, and full of zeros.
        let byte = unsafe { &*map.as_ptr().add(page).cast::<std::sync::atomic::AtomicU8>() };
        byte.store(0, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(map)
}

/// Fills `out` with the file's bytes from `offset` on.
///
/// # Errors
/// The file is shorter (`UnexpectedEof`), or cannot be read.
pub(crate) fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
    }
    #[cfg(not(unix))]
    {
        // The file is the caller's own, which reads it nowhere else at the same time.
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(out)
    }
}
