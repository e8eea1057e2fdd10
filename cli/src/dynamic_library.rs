//! Libraries of the system that are found at run time.

/// Whether the system finds the library.
pub fn can_load(name: &str) -> bool {
    // SAFETY: these are system libraries whose initialisers are safe to run in any process; the handle is
    // dropped at once and no symbol is taken from it.
    unsafe { libloading::Library::new(name) }.is_ok()
}
