//! Helpers of the end-to-end tests: where the binary, the data and the oracles are.
//!
//! A test that needs something from outside reads one variable. Set and missing is a failure; unset prints what is
//! skipped and why, so that `cargo test` alone works on any machine. `cargo xtask test` sets them all.
#![allow(clippy::print_stderr)] // Tests say what they skip.

pub mod atspi;
pub mod desktop;
pub mod training;

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_path_buf()
}

/// The path in the variable `name`, which must exist; `None`, with a line on stderr, when the variable is unset.
///
/// # Panics
/// When the variable names a path that does not exist.
pub fn from_env(name: &str, what_is_skipped: &str) -> Option<PathBuf> {
    let Some(value) = std::env::var_os(name) else {
        eprintln!("SKIPPED {what_is_skipped}: {name} is not set (cargo xtask test sets it)");
        return None;
    };
    let path = PathBuf::from(value);
    assert!(path.exists(), "{name}={} does not exist", path.display());
    Some(path)
}

/// The release binary under test.
pub fn stepscope_binary(what_is_skipped: &str) -> Option<PathBuf> {
    from_env("STEPSCOPE_BIN", what_is_skipped)
}

/// How often a fault is tried: a sample in CI, the whole number in `cargo xtask soak`.
pub fn times(sample: usize, soak: usize) -> usize {
    if std::env::var_os("STEPSCOPE_SOAK").is_some() { soak } else { sample }
}

/// A port of the loopback address that was free a moment ago.
///
/// # Panics
/// When the machine has no port left.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
