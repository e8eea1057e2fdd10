//! The Python package: built into a folder and tested there, and as a wheel.

use std::path::{Path, PathBuf};

use super::left_out::List;
use super::prepare;
use super::steps::{Failed, Steps};

/// The oldest system that a wheel runs on: glibc 2.28 (2018; Debian 10, Ubuntu 18.10, RHEL 8).
const TARGET: &str = "x86_64-unknown-linux-gnu.2.28";

/// Builds a wheel with the program in it, installs it into an environment that has nothing else, and tests it there.
pub fn wheel(steps: &mut Steps) -> Result<(), Failed> {
    let python = prepare::wheel_tools(steps)?;
    let tools = Path::new(&python).with_file_name("");
    let path = with_first(&tools);
    let env = [("PATH", path.as_str())];
    let zigbuild = tools.join("cargo-zigbuild").display().to_string();
    steps.run("program", &zigbuild, &["zigbuild", "--release", "--target", TARGET], &env)?;
    let built = prepare::target_folder().join("x86_64-unknown-linux-gnu/release");
    for (file, folder) in [("stepscope", "python/data/scripts"), ("libstepscope_inject.so", "python/data/data/lib")] {
        steps.run("folder", "mkdir", &["-p", folder], &[])?;
        steps.run("copy", "cp", &[&built.join(file).display().to_string(), folder], &[])?;
        steps.run("strip", "strip", &[&format!("{folder}/{file}")], &[])?;
    }
    let out = prepare::target_folder().join("wheel");
    let _ = std::fs::remove_dir_all(&out);
    let out_arg = out.display().to_string();
    let manifest = "python/Cargo.toml";
    let maturin = ["-m", "maturin", "build", "--release", "--zig", "--compatibility", "manylinux_2_28"];
    steps.run("wheel", &python, &[&maturin[..], &["--manifest-path", manifest, "--out", &out_arg]].concat(), &env)?;
    let files = std::fs::read_dir(&out).map_err(|e| Failed(format!("{out_arg}: {e}")))?;
    let wheel = files.flatten().map(|file| file.path()).find(|path| path.extension().is_some_and(|e| e == "whl"));
    let wheel = wheel.ok_or_else(|| Failed(format!("no wheel in {out_arg}")))?;
    try_wheel(steps, &wheel)?;
    println!("{}", wheel.display());
    Ok(())
}

/// Installs a wheel as its users do, and runs what it brings.
fn try_wheel(steps: &mut Steps, wheel: &Path) -> Result<(), Failed> {
    let folder = prepare::target_folder().join("wheel-user");
    let python = folder.join("bin/python").display().to_string();
    steps.run("user's environment", "python3", &["-m", "venv", "--clear", &folder.display().to_string()], &[])?;
    steps.run("installation", &python, &["-m", "pip", "install", "--quiet", &wheel.display().to_string()], &[])?;
    let path = with_first(&folder.join("bin"));
    let env = [("PATH", path.as_str()), ("PYTHONDONTWRITEBYTECODE", "1")];
    let run = folder.join("run").display().to_string();
    steps.run("demo", "stepscope", &["demo", "--headless", "--steps", "200", "--logdir", &run], &env)?;
    steps.run("pytest", &python, &["-m", "pip", "install", "--quiet", "pytest", "numpy"], &[])?;
    steps.run("tests of the wheel", &python, PYTEST, &env)
}

/// `PATH` with a folder before all others.
fn with_first(folder: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    let folders: Vec<PathBuf> = folders.collect();
    std::env::join_paths(folders).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

const PYTEST: &[&str] = &["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "python/tests"];

/// Runs the package's tests with the python that `environment` gives; those for which it lacks a library are skipped.
pub fn test(
    steps: &mut Steps,
    environment: fn(&mut Steps) -> Result<String, Failed>,
    binary: &str,
    list: &List,
) -> Result<(), Failed> {
    let python = match environment(steps) {
        Ok(python) => python,
        Err(Failed(why)) => {
            list.add("python/tests", &format!("the Python package: {why} failed"));
            return Ok(());
        }
    };
    let folder = package(steps)?;
    let env = [("PYTHONPATH", folder.as_str()), ("PYTHONDONTWRITEBYTECODE", "1"), ("STEPSCOPE_PROGRAM", binary)];
    steps.run("tests of the Python package", &python, PYTEST, &env)
}

/// Builds the package next to the target folder; gives the folder to import it from.
pub fn package(steps: &mut Steps) -> Result<String, Failed> {
    steps.cargo("extension module", &["build", "--release", "--package", "stepscope-python"], &[])?;
    let built = prepare::target_folder().join("release/lib_native.so").display().to_string();
    let folder = prepare::target_folder().join("python-package").display().to_string();
    steps.run("folder of an earlier run", "rm", &["-rf", &folder], &[])?;
    steps.run("folder", "mkdir", &["-p", &folder], &[])?;
    steps.run("package", "cp", &["-r", "python/stepscope", &folder], &[])?;
    steps.run("extension module", "cp", &[&built, &format!("{folder}/stepscope/_native.abi3.so")], &[])?;
    Ok(folder)
}
