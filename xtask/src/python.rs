//! The Python package: built into a folder, and tested there.

use super::left_out::List;
use super::prepare;
use super::steps::{Failed, Steps};

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
    let pytest = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "python/tests"];
    steps.run("tests of the Python package", &python, &pytest, &env)
}

/// Builds the package next to the target folder; gives the folder to import it from.
fn package(steps: &mut Steps) -> Result<String, Failed> {
    steps.cargo("extension module", &["build", "--release", "--package", "stepscope-python"], &[])?;
    let built = prepare::target_folder().join("release/lib_native.so").display().to_string();
    let folder = prepare::target_folder().join("python-package").display().to_string();
    steps.run("folder", "mkdir", &["-p", &folder], &[])?;
    steps.run("package", "cp", &["-r", "python/stepscope", &folder], &[])?;
    steps.run("extension module", "cp", &[&built, &format!("{folder}/stepscope/_native.abi3.so")], &[])?;
    Ok(folder)
}
