//! The Python package: a wheel with the program in it, built, installed and tested.

use std::path::{Path, PathBuf};

use super::left_out::List;
use super::portable::{self, with_first};
use super::prepare;
use super::sql_wheel;
use super::steps::{Failed, Steps};
use super::third_party;

/// Where Debian's packages for other machines have the libraries that QEMU loads (`libc6-arm64-cross`).
const AARCH64_LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// Builds a wheel with the program in it for old systems, too. That for this machine is installed into an environment that
/// has nothing else and tested there; of that for aarch64 the program runs under QEMU where there is one.
pub fn wheel(steps: &mut Steps, rest: &[String]) -> Result<(), Failed> {
    if let Some(other) = rest.iter().find(|flag| !["--aarch64", "--sql"].contains(&flag.as_str())) {
        return Err(Failed(format!("wheel takes --aarch64 and --sql, not {other}")));
    }
    let has = |flag: &str| rest.iter().any(|given| given == flag);
    let machine = if has("--aarch64") { "aarch64" } else { "x86_64" };
    let is_foreign = machine != std::env::consts::ARCH;
    let python = prepare::wheel_tools(steps)?;
    let target = portable::target(machine);
    // Without SQL, which would make 64 MB of 32.
    let built = portable::program(steps, &python, &target, &[])?;
    let options = ["--target", target.as_str(), "--zig", "--compatibility", "manylinux_2_28"];
    let wheel = pack(steps, &python, &built, &target, &options)?;
    steps.run("size", "du", &["-h", &wheel.display().to_string()], &[])?;
    if is_foreign {
        try_foreign(steps, &built)?;
    } else {
        try_wheel(steps, &wheel)?;
    }
    println!("{}", wheel.display());
    if has("--sql") {
        let built = portable::program(steps, &python, &target, &[portable::FEATURES])?;
        let folder = wheel.with_file_name("");
        let with_sql = sql_wheel::pack(steps, &python, &built, (machine, &target), &folder)?;
        steps.run("size", "du", &["-h", &with_sql.display().to_string()], &[])?;
        if !is_foreign {
            sql_wheel::try_it(steps, &user_folder().join("bin/python").display().to_string(), &folder)?;
        }
        println!("{}", with_sql.display());
    }
    Ok(())
}

/// The environment in which wheels are tried.
fn user_folder() -> PathBuf {
    prepare::target_folder().join("wheel-user")
}

/// Runs the program of another machine under QEMU, where there is one.
fn try_foreign(steps: &mut Steps, built: &Path) -> Result<(), Failed> {
    const QEMU: &str = "qemu-aarch64-static";
    if !prepare::on_path(QEMU) || !Path::new(AARCH64_LIBRARIES).is_dir() {
        eprintln!("not run: it takes the packages qemu-user-static and libc6-arm64-cross");
        return Ok(());
    }
    let program = built.join("stepscope").display().to_string();
    let run = prepare::target_folder().join("wheel-foreign-run").display().to_string();
    steps.run("run of an earlier test", "rm", &["-rf", &run], &[])?;
    let demo = ["-L", AARCH64_LIBRARIES, &program, "demo", "--headless", "--steps", "20", "--logdir", &run];
    steps.run("demo under QEMU", QEMU, &demo, &[])?;
    steps.run("analyze under QEMU", QEMU, &["-L", AARCH64_LIBRARIES, &program, "analyze", &run], &[])
}

/// Makes a wheel of the package and of the program in `built`, with the maturin of `python` and more options for it.
fn pack(steps: &mut Steps, python: &str, built: &Path, target: &str, options: &[&str]) -> Result<PathBuf, Failed> {
    let documents = Path::new("python/data/data/share/doc/stepscope");
    steps.run("folder", "mkdir", &["-p", &documents.display().to_string()], &[])?;
    third_party::write(target, &[], documents)?;
    for (file, folder) in [("stepscope", "python/data/scripts"), ("libstepscope_inject.so", "python/data/data/lib")] {
        steps.run("folder", "mkdir", &["-p", folder], &[])?;
        steps.run("copy", "cp", &[&built.join(file).display().to_string(), folder], &[])?;
        if !options.contains(&"--zig") {
            steps.run("strip", "strip", &[&format!("{folder}/{file}")], &[])?;
        }
    }
    let out = prepare::target_folder().join("wheel");
    let _ = std::fs::remove_dir_all(&out);
    let out_arg = out.display().to_string();
    let maturin = ["-m", "maturin", "build", "--release", "--manifest-path", "python/Cargo.toml", "--out", &out_arg];
    let path = with_first(&Path::new(python).with_file_name(""));
    steps.run("wheel", python, &[&maturin[..], options].concat(), &[("PATH", path.as_str())])?;
    let files = std::fs::read_dir(&out).map_err(|e| Failed(format!("{out_arg}: {e}")))?;
    let wheel = files.flatten().map(|file| file.path()).find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.ok_or_else(|| Failed(format!("no wheel in {out_arg}")))
}

/// Installs a wheel as its users do, and runs what it brings.
fn try_wheel(steps: &mut Steps, wheel: &Path) -> Result<(), Failed> {
    let folder = user_folder();
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

const PYTEST: &[&str] = &["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "python/tests"];

/// Runs the package's tests on a wheel of this system with the python that `environment` gives; those for which it lacks a
/// library are skipped.
pub fn test(
    steps: &mut Steps,
    environment: fn(&mut Steps) -> Result<String, Failed>,
    list: &List,
) -> Result<(), Failed> {
    let brought = environment(steps).and_then(|python| Ok((python, prepare::maturin(steps)?)));
    let (python, maturin) = match brought {
        Ok(brought) => brought,
        Err(Failed(why)) => {
            list.add("python/tests", &format!("the Python package: {why} failed"));
            return Ok(());
        }
    };
    let folder = install(steps, &maturin)?;
    let program = format!("{folder}/bin/stepscope");
    let env =
        [("PYTHONPATH", folder.as_str()), ("PYTHONDONTWRITEBYTECODE", "1"), ("STEPSCOPE_PROGRAM", program.as_str())];
    steps.run("tests of the Python package", &python, PYTEST, &env)
}

/// Makes a wheel of the program that was built last, with the maturin of a python, and installs it next to the target
/// folder; gives the folder to import it from.
pub fn install(steps: &mut Steps, maturin: &str) -> Result<String, Failed> {
    let built = prepare::target_folder().join("release");
    let target = portable::target(std::env::consts::ARCH);
    let wheel = pack(steps, maturin, &built, &target, &["--compatibility", "linux"])?;
    let folder = prepare::target_folder().join("python-package").display().to_string();
    steps.run("folder of an earlier run", "rm", &["-rf", &folder], &[])?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", &folder, &wheel.display().to_string()];
    steps.run("installation", maturin, &pip, &[])?;
    Ok(folder)
}
