//! Unix: `fork`, `atexit`, `gethostname`, and Linux's `gettid`.

/// Whether a process can record on this system.
pub(crate) const CAN_RECORD: bool = true;

/// The system's id of the calling thread; 0 where only Linux has one.
pub(crate) fn thread_id() -> u32 {
    #[cfg(target_os = "linux")]
    {
        // The system call: glibc has the function only since 2.30.
        // SAFETY: gettid has no argument and cannot fail.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        tid as u32
    }
    #[cfg(not(target_os = "linux"))]
    {
        0
    }
}

/// This machine's name; empty where it has none.
pub(crate) fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is writable for its length less one, so that a zero always ends the name.
    let status = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let end = buffer.iter().position(|&b| b == 0).unwrap_or(0);
    if status == 0 { String::from_utf8_lossy(&buffer[..end]).into_owned() } else { String::new() }
}

/// Calls the handlers in the thread that forks: before each fork, and after it in the parent and in the child.
pub(crate) fn on_fork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) {
    // SAFETY: the handlers are plain functions, and the one for the child needs no lock that another thread may hold.
    let status = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    debug_assert_eq!(status, 0, "only fails without memory");
}

/// Calls `handler` when the process exits, while other threads may still run.
pub(crate) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler is a plain function.
    let status = unsafe { libc::atexit(handler) };
    debug_assert_eq!(status, 0, "only fails without memory");
}
