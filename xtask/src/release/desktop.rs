//! What a desktop reads about the program, checked by the desktop's own tools.

use std::path::Path;

use crate::command::{output, text};
use crate::left_out::List;
use crate::prepare::on_path;
use crate::steps::{Failed, Steps};

/// Files that other tools wrote, and their types.
const TYPES: [(&str, &str); 7] = [
    ("tests/fixtures/clients/tf1_summary/events.out.tfevents.1795457373.vm", "application/x-tfevents"),
    ("profiler/formats/tests/fixtures/packets.pftrace", "application/x-perfetto-trace"),
    ("profiler/formats/tests/fixtures/tensorflow.xplane.pb", "application/x-xplane"),
    ("profiler/formats/tests/fixtures/run_metadata.pb", "application/x-tensorflow-graph"),
    ("tests/fixtures/clients/torch/projector_config.pbtxt", "application/x-tensorflow-graph-text"),
    // Any program's database.
    ("profiler/formats/tests/fixtures/nsys.sqlite", "application/vnd.sqlite3"),
    (
        "tests/fixtures/clients/torch_profiler/worker0.1795458192482514088.pt.trace.json.gz",
        "application/x-chrome-trace-gzip",
    ),
];

/// Checks the files of a desktop under `prefix`, as far as this machine has what checks them, with the folder `home` as a user's.
pub fn check(steps: &mut Steps, list: &List, prefix: &Path, home: &Path) -> Result<(), Failed> {
    let share = prefix.join("share");
    let has = |tool: &str, package: &str, what: &str| {
        if !on_path(tool) {
            list.add(file!(), &format!("the check of {what}: there is no {tool} (package {package})"));
        }
        on_path(tool)
    };
    if has("desktop-file-validate", "desktop-file-utils", "the desktop file") {
        let file = text(&share.join("applications/stepscope.desktop"));
        steps.run("desktop file", "desktop-file-validate", &[&file], &[])?;
    }
    if has("appstreamcli", "appstream", "the description for software centres") {
        let file = text(&share.join("metainfo/stepscope.metainfo.xml"));
        // An id is a domain's name, and the project has none.
        let validate = ["validate", "--no-net", "--override=cid-desktopapp-is-not-rdns=info", &file];
        steps.run("metainfo", "appstreamcli", &validate, &[])?;
    }
    let has_types = has("update-mime-database", "shared-mime-info", "the file types");
    if has_types && has("gio", "libglib2.0-bin", "the file types") {
        types(steps, &share.join("mime"), home)?;
    }
    Ok(())
}

/// Checks which types the files get where the types of `mime` are installed for one user.
fn types(steps: &mut Steps, mime: &Path, home: &Path) -> Result<(), Failed> {
    let at_home = text(home);
    let ask = format!("XDG_DATA_HOME={at_home}");
    steps.run("folder", "mkdir", &["-p", &at_home], &[])?;
    steps.run("file types", "cp", &["-r", &text(mime), &at_home], &[])?;
    steps.run("file types", "env", &[&ask, "update-mime-database", &text(&home.join("mime"))], &[])?;
    for (file, expected) in TYPES {
        let given = output("env", &[&ask, "gio", "info", "-a", "standard::content-type", file])?;
        if !given.contains(&format!("standard::content-type: {expected}\n")) {
            return Err(Failed(format!("file type of {file}, which is not {expected}: {given}")));
        }
    }
    Ok(())
}
