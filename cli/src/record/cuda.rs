//! CUDA in the command: the library that its driver loads into any program ([`stepscope-inject`]).
//!
//! [`stepscope-inject`]: ../../../profiler/inject/src/lib.rs

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the library, where it lies elsewhere.
pub const ENV: &str = "STEPSCOPE_INJECTION";
const FILE: &str = "libstepscope_inject.so";
/// What CUDA's driver and NVTX look for.
const LOADED_FROM: [&str; 2] = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"];

/// The library: what [`ENV`] names, or beside the program, or in `../lib`.
pub fn library() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(ENV) {
        return Some(path.into());
    }
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    [folder.join(FILE), folder.join("../lib").join(FILE)].into_iter().find(|path| path.is_file())
}

/// Has CUDA and NVTX record, in the command and what it starts. What the user chose to be loaded stays.
pub fn inject(command: &mut Command, library: &Path) {
    for name in LOADED_FROM.into_iter().filter(|name| std::env::var_os(name).is_none()) {
        command.env(name, library);
    }
}
