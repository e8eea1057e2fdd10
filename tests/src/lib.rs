//! Helpers of the end-to-end tests: where the binary, the data and the oracles are.
//!
//! A test that needs something from outside reads one variable. Set and missing is a failure; unset leaves the check out,
//! which is printed and counted ([`test_support`]), so that `cargo test` alone works on any machine. `cargo xtask test` sets
//! them all, but for the files of other projects (`STEPSCOPE_DATA`), which it fetches where it can.

pub mod atspi;
pub mod browser;
pub mod desktop;
pub mod training;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The exit codes of commands that Ctrl-C and SIGTERM ended, after they have written what there was: those of a shell.
pub const INTERRUPTED: i32 = 130;
/// See [`INTERRUPTED`].
pub const TERMINATED: i32 = 143;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_path_buf()
}

pub use test_support::{data, data_folder, left_out, path_in as from_env};

/// The release binary under test.
#[track_caller]
pub fn stepscope_binary(check: &str) -> Option<PathBuf> {
    from_env("STEPSCOPE_BIN", check)
}

/// Whether a program was built with `query`; one without it has no panel of SQL either.
///
/// # Panics
/// It does not start.
pub fn has_sql(binary: &Path) -> bool {
    let output = training::output_of(Command::new(binary).args(["query", "."]));
    !String::from_utf8_lossy(&output.stderr).contains("built without SQL")
}

/// How often a fault is tried: a sample in CI, the whole number in `cargo xtask soak`.
pub fn times(sample: usize, soak: usize) -> usize {
    if test_support::is_soak() { soak } else { sample }
}

/// A port of the loopback address that was free a moment ago.
///
/// # Panics
/// When the machine has no port left.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
