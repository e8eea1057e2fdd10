//! Records CUDA in the command, through a library (`profiler/inject`) that CUDA's driver loads into it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dynamic_library::can_load;

/// The variable with the path of the library, where it is in none of [`FOLDERS`].
pub const ENV: &str = "STEPSCOPE_INJECTION";
const FILE: &str = "libstepscope_inject.so";
/// The variables from which CUDA's driver and NVTX take the library's path.
const INJECTION_VARIABLES: [&str; 2] = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"];
/// The folders where the library may be, relative to the program's folder: the same folder in a release, `lib` in an
/// installation, `deps` in cargo's tests.
const FOLDERS: [&str; 3] = ["", "../lib", "deps"];

/// Finds the library: the path in [`ENV`], or the file in one of [`FOLDERS`].
pub fn find_library() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(ENV).filter(|path| !path.is_empty()) {
        // The command may change its working directory.
        return std::path::absolute(path).ok().filter(|path| path.is_file());
    }
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    FOLDERS.into_iter().map(|relative| folder.join(relative).join(FILE)).find(|path| path.is_file())
}

/// Makes CUDA and NVTX record, in the command and its children. Libraries that the user's environment names stay.
pub fn inject(command: &mut Command, library: &Path) {
    for name in INJECTION_VARIABLES.into_iter().filter(|name| std::env::var_os(name).is_none()) {
        command.env(name, library);
    }
}

/// What the user can do to get the library.
pub fn remedy() -> String {
    format!(
        "{FILE} is not in this program's folder: a release has it, 'cargo build --release' makes it, and {ENV} names it \
         where it is elsewhere"
    )
}

/// A warning for machines that have CUDA when the library is missing.
pub fn warning() -> Option<String> {
    let is_missing = find_library().is_none() && can_load("libcuda.so.1");
    is_missing.then(|| format!("CUDA: not recorded; {}", remedy()))
}
