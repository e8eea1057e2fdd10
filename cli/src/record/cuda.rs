//! CUDA in the command: the library that its driver loads into any program (`profiler/inject`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dynamic_library::loads;

/// Names the library, where it lies elsewhere.
pub const ENV: &str = "STEPSCOPE_INJECTION";
const FILE: &str = "libstepscope_inject.so";
/// The variables in which CUDA's driver and NVTX look for it.
const LOADED_FROM: [&str; 2] = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"];
/// Its folder, relative to the program's: a release has it in the same one, an installation in `lib`, cargo's tests in `deps`.
const FOLDERS: [&str; 3] = ["", "../lib", "deps"];

/// The library: what [`ENV`] names, or where a release, an installation or cargo puts it.
pub fn library() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(ENV).filter(|path| !path.is_empty()) {
        // The command may change its working directory.
        return std::path::absolute(path).ok().filter(|path| path.is_file());
    }
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    FOLDERS.into_iter().map(|relative| folder.join(relative).join(FILE)).find(|path| path.is_file())
}

/// Has CUDA and NVTX record, in the command and what it starts. What the user chose to be loaded stays.
pub fn inject(command: &mut Command, library: &Path) {
    for name in LOADED_FROM.into_iter().filter(|name| std::env::var_os(name).is_none()) {
        command.env(name, library);
    }
}

/// How to get the library.
pub fn remedy() -> String {
    format!(
        "{FILE} is not in this program's folder: a release has it, 'cargo build --release' makes it, and {ENV} names it \
         where it is elsewhere"
    )
}

/// A warning for machines that have CUDA when the library is missing.
pub fn warning() -> Option<String> {
    let is_missed = library().is_none() && loads("libcuda.so.1");
    is_missed.then(|| format!("CUDA: not recorded; {}", remedy()))
}
