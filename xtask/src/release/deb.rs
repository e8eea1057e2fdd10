//! The Debian package: the tree under `/usr`, with what Debian's policy adds to it.

use std::path::{Path, PathBuf};

use super::depends;
use crate::command::{at, date, output, paths_below, text};
use crate::left_out::List;
use crate::prepare::on_path;
use crate::steps::{Failed, Steps};

/// Programs that make and look into packages. All but the first come with any compiler.
const TOOLS: [&str; 5] = ["dpkg-deb", "dpkg", "readelf", "gzip", "md5sum"];

/// Debian's version: that of the program, packed for the first time.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// The address of whoever packs it. Nobody reads mail for the project; `invalid` says so (RFC 2606).
const MAINTAINER: &str = "The stepscope authors <stepscope@stepscope.invalid>";

/// Libraries that the window loads at run time: without them everything else works, on a server, say.
const RECOMMENDS: &str = "libegl1, libgl1, libwayland-client0, libwayland-egl1, libx11-6, libx11-xcb1, libxcb1, libxcursor1, \
                          libxi6, libxkbcommon0, libxkbcommon-x11-0, libxrandr2, libxrender1";

const DESCRIPTION: &str = "\
Description: traces, training logs and graphs of neural networks in one window
 For people who train neural networks and want to know why a step takes as
 long as it does. It opens traces of PyTorch, JAX, TensorFlow, Perfetto and
 Nsight Systems, logs of TensorBoard, Weights & Biases, MLflow and others, and
 graphs of TensorFlow and ONNX, and names the cause of each wait: which thread,
 GPU or rank.
 .
 The command line records any program, explains traces, queries them with SQL,
 and trains and runs TensorFlow graphs.
";

/// Whether a package can be made here; otherwise says so in the list.
pub fn can_be_made(list: &List) -> bool {
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| !on_path(tool)).collect();
    if !missing.is_empty() {
        list.add(file!(), &format!("the Debian package: this machine has no {}", missing.join(", no ")));
    }
    missing.is_empty()
}

/// Packs the tree under `prefix` into a package in the folder `out`, by way of the folder `work`.
pub fn make(steps: &mut Steps, list: &List, prefix: &Path, work: &Path, out: &Path) -> Result<PathBuf, Failed> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let name = format!("stepscope_{VERSION}_{architecture}");
    let (root, file) = (work.join(&name), out.join(format!("{name}.deb")));
    let (seconds, shown) = date()?;
    fill(steps, prefix, &root, &shown)?;
    let control = root.join("DEBIAN");
    at(&control, std::fs::create_dir_all(&control))?;
    at(&control, std::fs::write(control.join("control"), control_file(&root, architecture)?))?;
    let sums = "cd \"$0\" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums";
    steps.run("checksums", "sh", &["-c", sums, &text(&root)], &[])?;
    steps.run("permissions", "chmod", &["-R", "u=rwX,go=rX", &text(&root)], &[])?;
    // Ubuntu's default, zstd, is unknown to Debian 11 and older.
    let build = ["--root-owner-group", "-Zxz", "--build", &text(&root), &text(&file)];
    steps.run("package", "dpkg-deb", &build, &[("SOURCE_DATE_EPOCH", &seconds)])?;
    if on_path("lintian") {
        steps.run("lintian", "lintian", &["--fail-on", "error", &text(&file)], &[])?;
    } else {
        list.add(file!(), "the package's check by lintian: this machine has none");
    }
    Ok(file)
}

/// Puts the tree under `root/usr`, with the names and the documents that Debian wants.
fn fill(steps: &mut Steps, prefix: &Path, root: &Path, date: &str) -> Result<(), Failed> {
    let usr = root.join("usr");
    steps.run("folder", "mkdir", &["-p", &text(&usr)], &[])?;
    let folders = ["bin", "lib", "share"].map(|folder| text(&prefix.join(folder)));
    steps.run("copy", "cp", &["-a", &folders[0], &folders[1], &folders[2], &text(&usr)], &[])?;
    let zsh = usr.join("share/zsh");
    at(&zsh, std::fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions")))?;
    let manual = usr.join("share/man/man1");
    let pages: Vec<String> = paths_below(&manual)?.iter().map(|page| text(&manual.join(page))).collect();
    let pages = [vec!["-9n"], pages.iter().map(String::as_str).collect()].concat();
    steps.run("manual", "gzip", &pages, &[])?;
    let documents = usr.join("share/doc/stepscope");
    let folder = text(&documents);
    steps.run("copyright", "install", &["-D", "-m", "644", "-t", &folder, "packaging/copyright"], &[])?;
    let overrides = text(&usr.join("share/lintian/overrides/stepscope"));
    steps.run("lintian", "install", &["-D", "-m", "644", "packaging/lintian-overrides", &overrides], &[])?;
    let changes = format!(
        "stepscope ({VERSION}) unstable; urgency=medium\n\n  * Packed by cargo xtask release. What changed is in changelog.gz.\n\n \
         -- {MAINTAINER}  {date}\n"
    );
    at(&documents, std::fs::write(documents.join("changelog.Debian"), changes))?;
    at(&documents, std::fs::copy("CHANGELOG.md", documents.join("changelog")))?;
    let changes = ["changelog", "changelog.Debian"].map(|name| text(&documents.join(name)));
    steps.run("changes", "gzip", &["-9n", &changes[0], &changes[1]], &[])
}

fn control_file(root: &Path, architecture: &str) -> Result<String, Failed> {
    let library = root.join("usr/lib/stepscope");
    let depends = depends::of(&[&text(&library.join("stepscope")), &text(&library.join("libstepscope_inject.so"))])?;
    let size = output("du", &["-sk", "--apparent-size", &text(&root.join("usr"))])?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    Ok(format!(
        "Package: stepscope\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {size}\nDepends: {depends}\nRecommends: {RECOMMENDS}\nSection: science\nPriority: optional\n\
         {DESCRIPTION}"
    ))
}
