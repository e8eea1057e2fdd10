//! What is released: the program with all that belongs to it, as an archive and as a Debian package, each of them tried.

mod deb;
mod depends;
mod desktop;
mod tree;
mod trial;

use std::path::{Path, PathBuf};

use crate::command::{at, date, text};
use crate::left_out::List;
use crate::portable;
use crate::prepare::{self, target_folder};
use crate::steps::{Failed, Steps};

/// Documents in the archive's first folder.
const DOCUMENTS: [&str; 5] = ["README.md", "docs/use/install.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"];

/// Builds the released program, packs it as .tar.gz and .deb, and tries both. What this machine has no tool for is left out and
/// counted at the end; the archive is made anywhere.
pub fn release(steps: &mut Steps) -> Result<(), Failed> {
    let list = List::new()?;
    let built = build(steps, &list)?;
    let released = std::path::absolute(target_folder().join("released")).map_err(|error| Failed(error.to_string()))?;
    let result = pack(steps, &list, &built, &released);
    steps.close_with(list.report());
    for file in result? {
        println!("{}", file.display());
    }
    Ok(())
}

/// Builds the program, for old systems where zig's tools can be had; gives its folder.
fn build(steps: &mut Steps, list: &List) -> Result<PathBuf, Failed> {
    let built = match prepare::wheel_tools(steps) {
        Ok(python) => {
            let target = portable::target(std::env::consts::ARCH);
            let built = portable::program(steps, &python, &target, &[portable::FEATURES])?;
            if prepare::on_path("readelf") {
                depends::check_glibc(&built.join("stepscope"), portable::GLIBC)?;
            }
            built
        }
        Err(Failed(why)) => {
            let what = format!("a program for glibc {}; this one needs the glibc of this machine", portable::GLIBC);
            list.add(file!(), &format!("{what}: {why} failed"));
            steps.cargo("release build", &["build", "--release", portable::FEATURES], &[])?;
            target_folder().join("release")
        }
    };
    let query = ["query", "profiler/formats/tests/fixtures/packets.pftrace", "select count(*) from slices"];
    steps.run("it has SQL", &text(&built.join("stepscope")), &query, &[])?;
    Ok(built)
}

/// Packs the program in the folder `built` into files of the folder `released`, and tries them.
fn pack(steps: &mut Steps, list: &List, built: &Path, released: &Path) -> Result<Vec<PathBuf>, Failed> {
    let name = format!("stepscope-{}-{}-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, std::env::consts::OS);
    let tree = released.join(&name);
    let work = released.join("work");
    steps.run("release of an earlier run", "rm", &["-rf", "--one-file-system", &text(&tree), &text(&work)], &[])?;
    at(&tree, std::fs::create_dir_all(&tree))?;
    tree::fill(steps, list, built, &tree)?;
    desktop::check(steps, list, &tree, &work.join("home"))?;
    let at_tree = text(&tree);
    steps.run("documents", "install", &[&["-m", "644", "-t", &at_tree], &DOCUMENTS[..]].concat(), &[])?;
    let archive = released.join(format!("{name}.tar.gz"));
    let (seconds, _) = date()?;
    let mtime = format!("--mtime=@{seconds}");
    let tar = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &mtime, "-czf", &text(&archive)];
    steps.run("archive", "tar", &[&tar[..], &["-C", &text(released), &name]].concat(), &[])?;
    trial::archive(steps, &archive, &name, &work.join("archive"))?;
    let mut files = vec![archive];
    if deb::can_be_made(list) {
        let deb = deb::make(steps, list, &tree, &work, released)?;
        trial::package(steps, list, &deb, &work.join("root"))?;
        files.push(deb);
    }
    steps.run("what was tried", "rm", &["-rf", "--one-file-system", &text(&work)], &[])?;
    Ok(files)
}
