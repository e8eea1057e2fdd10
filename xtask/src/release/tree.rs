//! The files of an installation, under a prefix such as `/usr` or `~/.local`.

use std::path::Path;

use crate::command::{at, text};
use crate::left_out::List;
use crate::prepare::on_path;
use crate::steps::{Failed, Steps};
use crate::{portable, third_party};

/// Files of the folder `packaging`, and where they are under the prefix.
const DESKTOP: [(&str, &str); 4] = [
    ("packaging/stepscope.desktop", "share/applications/stepscope.desktop"),
    ("packaging/stepscope.xml", "share/mime/packages/stepscope.xml"),
    ("packaging/stepscope.svg", "share/icons/hicolor/scalable/apps/stepscope.svg"),
    ("packaging/metainfo.xml", "share/metainfo/stepscope.metainfo.xml"),
];

/// Shells, the name of each one's file of completions, and where the shell looks for it; the last two have no such folder.
const COMPLETIONS: [(&str, &str, &str); 5] = [
    ("bash", "stepscope.bash", "share/bash-completion/completions/stepscope"),
    ("zsh", "_stepscope", "share/zsh/site-functions/_stepscope"),
    ("fish", "stepscope.fish", "share/fish/vendor_completions.d/stepscope.fish"),
    ("elvish", "stepscope.elv", "share/stepscope/completions/stepscope.elv"),
    ("powershell", "_stepscope.ps1", "share/stepscope/completions/_stepscope.ps1"),
];

/// Puts the program in the folder `built` under `prefix`, with all that belongs to it.
pub fn fill(steps: &mut Steps, list: &List, built: &Path, prefix: &Path) -> Result<(), Failed> {
    // The library is found next to the program, wherever the link to that is.
    let library = text(&prefix.join("lib/stepscope"));
    let program = text(&built.join("stepscope"));
    let inject = text(&built.join("libstepscope_inject.so"));
    steps.run("program", "install", &["-D", "-m", "755", "-t", &library, &program], &[])?;
    steps.run("library for programs with CUDA", "install", &["-D", "-m", "644", "-t", &library, &inject], &[])?;
    if on_path("strip") {
        let files = [format!("{library}/stepscope"), format!("{library}/libstepscope_inject.so")];
        steps.run("strip", "strip", &["--strip-unneeded", "--remove-section=.comment", &files[0], &files[1]], &[])?;
    }
    steps.run("folder", "mkdir", &["-p", &text(&prefix.join("bin"))], &[])?;
    let link = text(&prefix.join("bin/stepscope"));
    steps.run("link", "ln", &["-s", "../lib/stepscope/stepscope", &link], &[])?;
    for (source, place) in DESKTOP {
        steps.run("desktop", "install", &["-D", "-m", "644", source, &text(&prefix.join(place))], &[])?;
    }
    picture(steps, list, prefix)?;
    steps.run("manual", &link, &["man", "-o", &text(&prefix.join("share/man/man1"))], &[])?;
    completions(steps, &link, prefix)?;
    let documents = prefix.join("share/doc/stepscope");
    at(&documents, std::fs::create_dir_all(&documents))?;
    third_party::write(&portable::target(std::env::consts::ARCH), &[portable::FEATURES], &documents)?;
    steps.run("permissions", "chmod", &["-R", "u=rwX,go=rX", &text(prefix)], &[])
}

/// The icon for desktops that show no SVG, where something can draw it.
fn picture(steps: &mut Steps, list: &List, prefix: &Path) -> Result<(), Failed> {
    if !on_path("rsvg-convert") {
        list.add(file!(), "the icon as PNG: there is no rsvg-convert (package librsvg2-bin)");
        return Ok(());
    }
    let folder = prefix.join("share/icons/hicolor/256x256/apps");
    let file = text(&folder.join("stepscope.png"));
    steps.run("folder", "mkdir", &["-p", &text(&folder)], &[])?;
    steps.run("icon", "rsvg-convert", &["-w", "256", "-h", "256", "-o", &file, "packaging/stepscope.svg"], &[])
}

fn completions(steps: &mut Steps, program: &str, prefix: &Path) -> Result<(), Failed> {
    for (shell, name, place) in COMPLETIONS {
        let place = prefix.join(place);
        let folder = place.with_file_name("");
        steps.run("completions", program, &["completions", shell, "-o", &text(&folder)], &[])?;
        at(&place, std::fs::rename(folder.join(name), &place))?;
    }
    Ok(())
}
