//! The wheel with SQL, `stepscope-sql`: the program with everything in it, which runs in place of the smaller one of the
//! wheel `stepscope` where both are installed (`pip install stepscope[sql]`).

use std::path::{Path, PathBuf};

use crate::command::{at, output, text};
use crate::portable;
use crate::prepare;
use crate::steps::{Failed, Steps};
use crate::third_party;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Packs the program in `built`, made for `target`, into a wheel in the folder `out`.
pub fn pack(
    steps: &mut Steps,
    python: &str,
    built: &Path,
    (machine, target): (&str, &str),
    out: &Path,
) -> Result<PathBuf, Failed> {
    let root = prepare::target_folder().join("wheel-sql");
    steps.run("folder of an earlier run", "rm", &["-rf", &text(&root)], &[])?;
    let info = root.join(format!("stepscope_sql-{VERSION}.dist-info"));
    let (data, licenses) = (root.join(format!("stepscope_sql-{VERSION}.data")), info.join("licenses"));
    at(&licenses, std::fs::create_dir_all(&licenses))?;
    let program = text(&data.join("scripts/stepscope-sql"));
    steps.run("program", "install", &["-D", "-m", "755", &text(&built.join("stepscope")), &program], &[])?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        at(&licenses, std::fs::copy(file, licenses.join(file)))?;
    }
    third_party::write(target, &[portable::FEATURES], &licenses)?;
    let tag = format!("py3-none-manylinux_{}_{machine}", portable::GLIBC.replace('.', "_"));
    for (name, content) in [("METADATA", metadata()), ("WHEEL", wheel_file(&tag))] {
        at(&info, std::fs::write(info.join(name), content))?;
    }
    steps.run("wheel", python, &["-m", "wheel", "pack", "--dest-dir", &text(out), &text(&root)], &[])?;
    Ok(out.join(format!("stepscope_sql-{VERSION}-{tag}.whl")))
}

fn metadata() -> String {
    format!(
        "Metadata-Version: 2.4\nName: stepscope-sql\nVersion: {VERSION}\n\
         Summary: SQL, clusters and buckets for stepscope\nLicense-Expression: MIT OR Apache-2.0\n\
         License-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\nLicense-File: third-party-licenses.txt\n\
         Requires-Dist: stepscope=={VERSION}\n\nInstalled by `pip install stepscope[sql]`.\n"
    )
}

fn wheel_file(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: xtask ({VERSION})\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

/// Installs both wheels into the environment of `python` by the extra's name, from the folder that has them, and asks for a query.
pub fn try_it(steps: &mut Steps, python: &str, folder: &Path) -> Result<(), Failed> {
    let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links", &text(folder), "stepscope[sql]"];
    steps.run("installation with SQL", python, &pip, &[])?;
    let program = text(&Path::new(python).with_file_name("stepscope"));
    let query = ["query", "profiler/formats/tests/fixtures/packets.pftrace", "select 6 * 7 as answer"];
    let answer = output(&program, &query)?;
    if answer.contains("42") { Ok(()) } else { Err(Failed(format!("query, which answered {answer},"))) }
}
