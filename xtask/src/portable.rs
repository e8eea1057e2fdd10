//! The program as it is released: with everything in it, and for systems that are older than this one.

use std::path::{Path, PathBuf};

use crate::prepare;
use crate::steps::{Failed, Steps};

/// The oldest system that what is released runs on: glibc 2.28 (2018; Debian 10, Ubuntu 18.10, RHEL 8).
pub const GLIBC: &str = "2.28";

/// What the released program has that a build from source leaves out, to be quick.
pub const FEATURES: &str = "--features=cluster,s3";

/// Builds program and library with these features for systems from [`GLIBC`] on, with zig's linker and the tools next to `python`
/// ([`prepare::wheel_tools`]); gives their folder.
pub fn program(steps: &mut Steps, python: &str, target: &str, features: &[&str]) -> Result<PathBuf, Failed> {
    let tools = Path::new(python).with_file_name("");
    let path = with_first(&tools);
    // `strip` knows the programs of this machine only.
    let env = [("PATH", path.as_str()), ("CARGO_PROFILE_RELEASE_STRIP", "symbols")];
    let zigbuild = tools.join("cargo-zigbuild").display().to_string();
    let target_arg = format!("{target}.{GLIBC}");
    let build = [&["zigbuild", "--release", "--target", &target_arg], features].concat();
    steps.run("program", &zigbuild, &build, &env)?;
    Ok(prepare::target_folder().join(target).join("release"))
}

/// The triple of this system's programs for a machine.
pub fn target(machine: &str) -> String {
    format!("{machine}-unknown-linux-gnu")
}

/// `PATH` with a folder before all others.
pub fn with_first(folder: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    let folders: Vec<PathBuf> = folders.collect();
    std::env::join_paths(folders).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}
