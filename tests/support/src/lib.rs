//! What tests need from outside the workspace: files of other tools, programs, and rights on the machine.
//!
//! A check that lacks something calls [`left_out`] and returns. It is printed, and where `STEPSCOPE_LEFT_OUT` names a file
//! also appended there: `cargo xtask test` prints the count and the reasons as its last lines, so that a green run says how
//! much it did not check. A variable that is set but names nothing is a failure: whoever sets it wants the check.
#![allow(clippy::print_stderr)] // Tests say what they leave out.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// The file that collects what was left out, one line each: the place of the check, its test, and why.
pub const LEFT_OUT: &str = "STEPSCOPE_LEFT_OUT";

/// Says that the calling check was left out, and why.
///
/// # Panics
/// When the file in `STEPSCOPE_LEFT_OUT` cannot be written: a check would be missing in silence.
#[track_caller]
pub fn left_out(why: impl Display) {
    let place = Location::caller();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    let why = why.to_string().replace(['\n', '\t'], " ");
    eprintln!("left out: {test}: {why}");
    let Some(path) = std::env::var_os(LEFT_OUT) else { return };
    // One write: tests of several programs append at once.
    let line = format!("{}:{}\t{test}\t{why}\n", place.file(), place.line());
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("{LEFT_OUT}={}: {error}", path.display());
    }
}

/// The value of the variable `name`. Where it is not set the check is left out: `check` says what it would have compared.
#[track_caller]
pub fn variable(name: &str, check: &str) -> Option<OsString> {
    let value = std::env::var_os(name);
    if value.is_none() {
        left_out(format_args!("{check}: {name} is not set (cargo xtask test sets it)"));
    }
    value
}

/// The path in the variable `name`, as [`variable`] otherwise.
///
/// # Panics
/// When the variable names a path that does not exist.
#[track_caller]
pub fn path_in(name: &str, check: &str) -> Option<PathBuf> {
    let path = PathBuf::from(variable(name, check)?);
    assert!(path.exists(), "{name}={} does not exist", path.display());
    Some(path)
}

/// The repository's root.
#[must_use]
pub fn root() -> &'static Path {
    let support = Path::new(env!("CARGO_MANIFEST_DIR"));
    support.parent().and_then(Path::parent).expect("tests/support lies two folders down")
}

/// The files of other tools that lie in the project: `tests/data` (its SOURCES.md says what they are).
#[must_use]
pub fn data_folder() -> PathBuf {
    root().join("tests/data")
}

/// A file or folder of other tools: of `tests/data`, or, where its licence keeps it from there, of the folder that
/// `STEPSCOPE_DATA` names. Where that is not set the check is left out.
///
/// # Panics
/// When the folder is named and does not have it.
#[track_caller]
pub fn data(name: &str) -> Option<PathBuf> {
    let own = data_folder().join(name);
    if own.exists() {
        return Some(own);
    }
    let Some(folder) = std::env::var_os("STEPSCOPE_DATA") else {
        left_out(format_args!("{name}: STEPSCOPE_DATA names no folder of other projects' files"));
        return None;
    };
    // Tests run in their member's folder; a relative path is meant from the root.
    let path = root().join(folder).join(name);
    assert!(path.exists(), "{} is missing", path.display());
    Some(path)
}

/// As [`data`], for a file that `tests/scripts/fetch_data.py` may not have brought yet: the check is left out without it.
pub fn data_if_fetched(name: &str) -> Option<PathBuf> {
    let path = root().join(std::env::var_os("STEPSCOPE_DATA").unwrap_or_default()).join(name);
    if path.exists() {
        return Some(path);
    }
    left_out(format_args!(
        "{name}: not in the folder of other projects' files (STEPSCOPE_DATA; fetch_data.py brings it)"
    ));
    None
}

/// Whether this is the long run of `cargo xtask soak`.
#[must_use]
pub fn is_soak() -> bool {
    std::env::var_os("STEPSCOPE_SOAK").is_some()
}
