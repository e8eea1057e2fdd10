//! Finds the CUPTI library: the one that the process has loaded already, else a toolkit's, else the system's.
//!
//! Only one CUPTI library can work in a process, so a library that the program ships (as PyTorch and JAX do) comes
//! first.

use libloading::Library;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// File names of the library in toolkits and wheels, the newest first.
const FILE_NAMES: [&str; 5] =
    ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so"];

/// Returns the library. It stays loaded, since CUPTI keeps pointers into it.
pub(crate) fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Some(library);
    }
    // A failure is not cached: the program may load a library later.
    let opened = open()?;
    Some(LIBRARY.get_or_init(|| opened))
}

fn open() -> Option<Library> {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let in_folders = folders().into_iter().flat_map(|folder| FILE_NAMES.map(|name| folder.join(name)));
    let mut candidates =
        mapped_libraries(&maps).chain(in_folders.filter(|path| path.is_file())).chain(FILE_NAMES.map(PathBuf::from));
    // SAFETY: loading runs the library's initialisers, which NVIDIA means to be run in any process.
    candidates.find_map(|candidate| unsafe { Library::new(candidate) }.ok())
}

/// Returns the CUPTI libraries among the mapped files in the text of `/proc/PID/maps`.
fn mapped_libraries(maps: &[u8]) -> impl Iterator<Item = PathBuf> {
    let paths = maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
        Some(PathBuf::from(OsString::from_vec(path.to_vec())))
    });
    paths.filter(|path| is_cupti(path))
}

/// Whether a file has the name of a CUPTI library, such as `libcupti.so.12` or `libcupti-HASH.so.12` in Python wheels.
fn is_cupti(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let rest = name.strip_prefix("libcupti");
    rest.is_some_and(|rest| rest.starts_with(['.', '-']) && rest.contains(".so"))
}

/// Returns the folders that are searched before the system's: those in environment variables, and those of toolkits.
fn folders() -> Vec<PathBuf> {
    let listed = std::env::var_os("STEPSCOPE_CUDA_LIBRARIES").unwrap_or_default();
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]);
    let toolkit_folders =
        toolkits.flat_map(|toolkit| ["extras/CUPTI/lib64", "lib64"].map(|folder| toolkit.join(folder)));
    std::env::split_paths(&listed).filter(|folder| !folder.as_os_str().is_empty()).chain(toolkit_folders).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_has_loaded_is_found_among_its_mappings() {
        let maps = b"7f00-7f01 r-xp 00000000 fe:00 12   /usr/lib/libc.so.6\n\
            7f02-7f03 r-xp 00000000 fe:00 13   /opt/my env/nvidia/cuda_cupti/lib/libcupti.so.12\n\
            7f04-7f05 r-xp 00000000 fe:00 14   /opt/torch/lib/libcupti-36f2cba2.so.12\n\
            7f06-7f07 r-xp 00000000 fe:00 15   /opt/x/libcuptiutil.so\n\
            7f08-7f09 rw-p 00000000 00:00 0    [heap]\n\
            7f0a";
        let found: Vec<PathBuf> = mapped_libraries(maps).collect();
        let want = ["/opt/my env/nvidia/cuda_cupti/lib/libcupti.so.12", "/opt/torch/lib/libcupti-36f2cba2.so.12"];
        assert_eq!(found, want.map(PathBuf::from));
    }
}
