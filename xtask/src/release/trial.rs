//! Tries what is packed as its users do: the archive in an empty folder, the Debian package in a root folder that has nothing but
//! the libraries that the package depends on.

use std::path::{Path, PathBuf};

use crate::command::{at, output, paths_below, text};
use crate::left_out::List;
use crate::steps::{Failed, Steps};

/// Some of the package's files, one of each kind.
const EXPECTED: [&str; 14] = [
    "usr/bin/stepscope",
    "usr/lib/stepscope/libstepscope_inject.so",
    "usr/share/applications/stepscope.desktop",
    "usr/share/mime/packages/stepscope.xml",
    "usr/share/icons/hicolor/scalable/apps/stepscope.svg",
    "usr/share/metainfo/stepscope.metainfo.xml",
    "usr/share/man/man1/stepscope.1.gz",
    "usr/share/man/man1/stepscope-view.1.gz",
    "usr/share/bash-completion/completions/stepscope",
    "usr/share/zsh/vendor-completions/_stepscope",
    "usr/share/fish/vendor_completions.d/stepscope.fish",
    "usr/share/doc/stepscope/copyright",
    "usr/share/doc/stepscope/changelog.gz",
    "usr/share/doc/stepscope/changelog.Debian.gz",
];

/// Runs a command with the root folder `$0` as its root, and this system's processes: the program finds itself by them.
const IN_ROOT: &str = "mount --rbind /proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";

/// Unpacks the archive in the folder `folder`, which is new, and runs its program.
pub fn archive(steps: &mut Steps, archive: &Path, name: &str, folder: &Path) -> Result<(), Failed> {
    steps.run("folder", "mkdir", &["-p", &text(folder)], &[])?;
    steps.run("unpacked", "tar", &["-xzf", &text(archive), "-C", &text(folder)], &[])?;
    let program = text(&folder.join(name).join("bin/stepscope"));
    steps.run("version", &program, &["--version"], &[])?;
    let run = text(&folder.join("run"));
    steps.run("demo", &program, &["demo", "--headless", "--steps", "50", "--logdir", &run], &[])?;
    let trace = text(&folder.join("record"));
    let is_found = "case \"$CUDA_INJECTION64_PATH\" in */lib/stepscope/libstepscope_inject.so) ;; *) exit 1;; esac";
    let without = ["-u", "CUDA_INJECTION64_PATH", "-u", "STEPSCOPE_INJECTION"];
    let record = [&program, "record", "-o", &trace, "--", "sh", "-c", is_found];
    steps.run("library is found", "env", &[&without[..], &record].concat(), &[])
}

/// Installs the package in the folder `root`, which is new, runs it there, removes it, and checks that nothing is left.
pub fn package(steps: &mut Steps, list: &List, deb: &Path, root: &Path) -> Result<(), Failed> {
    let Some(shell) = Root::new(list)? else { return Ok(()) };
    depended(steps, deb, root)?;
    let before = paths_below(root)?;
    shell.dpkg(steps, "installation", root, &["-i", &text(deb)])?;
    let missing: Vec<&str> = EXPECTED.into_iter().filter(|path| !root.join(path).exists()).collect();
    if !missing.is_empty() {
        return Err(Failed(format!("installation, which lacks {}", missing.join(", "))));
    }
    shell.run(steps, "version", root, &["--version"])?;
    shell.run(steps, "demo", root, &["demo", "--headless", "--steps", "50", "--logdir", "/tmp/run"])?;
    shell.run(steps, "analyze", root, &["analyze", "/tmp/run"])?;
    shell.run(steps, "doctor", root, &["doctor"])?;
    shell.dpkg(steps, "removal", root, &["-P", "stepscope"])?;
    let after = paths_below(root)?;
    let is_new = |path: &&String| {
        let is_of_dpkg_or_run = ["var/lib/dpkg", "tmp/"].iter().any(|folder| path.starts_with(folder));
        !is_of_dpkg_or_run && before.binary_search(path).is_err()
    };
    let left: Vec<&str> = after.iter().filter(is_new).map(String::as_str).collect();
    if !left.is_empty() {
        return Err(Failed(format!("removal, which leaves {}", left.join(", "))));
    }
    Ok(())
}

/// Makes of `root` a system that has just the packages that `deb` depends on: dpkg's account of them as on this system, so that it
/// compares the versions, and of their files the libraries that the program needs.
fn depended(steps: &mut Steps, deb: &Path, root: &Path) -> Result<(), Failed> {
    let database = root.join("var/lib/dpkg");
    let folders = ["info", "updates", "triggers"].map(|folder| text(&database.join(folder)));
    let others = ["proc", "tmp"].map(|folder| text(&root.join(folder)));
    let made: Vec<&str> = ["-p"].into_iter().chain(folders.iter().chain(&others).map(String::as_str)).collect();
    steps.run("root", "mkdir", &made, &[])?;
    let depends = output("dpkg-deb", &["--field", &text(deb), "Depends"])?;
    let mut status = String::new();
    for package in depends.split(',').filter_map(|package| package.split_whitespace().next()) {
        status += &format!("{}\n", output("dpkg-query", &["--status", package])?.trim_end());
        status += "\n";
        // Where several architectures may be installed the name has that of this one.
        let name = output("dpkg-query", &["--show", "--showformat=${binary:Package}", package])?;
        let files = database.join("info").join(format!("{}.list", name.trim()));
        at(&files, std::fs::write(&files, ""))?;
    }
    at(&database, std::fs::write(database.join("info/format"), "1\n"))?;
    at(&database, std::fs::write(database.join("status"), status))?;
    let unpacked = text(&root.with_file_name("unpacked"));
    steps.run("files of the package", "dpkg-deb", &["--extract", &text(deb), &unpacked], &[])?;
    for library in libraries(&output("ldd", &[&format!("{unpacked}/usr/lib/stepscope/stepscope")])?) {
        let copy = text(&root.join(library.strip_prefix("/").unwrap_or(&library)));
        steps.run("library", "install", &["-D", "-m", "755", &text(&library), &copy], &[])?;
    }
    Ok(())
}

/// The files that `ldd` lists.
fn libraries(listed: &str) -> Vec<PathBuf> {
    let words = listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

/// How this user gets a root folder of its own.
enum Root {
    /// In a namespace in which the user is root and may mount; as root, in one of mounts only.
    Namespace(&'static [&'static str]),
    /// As root where mounting is forbidden, in many containers: the program runs with this system's libraries.
    Plain,
}

impl Root {
    /// What works here; `None`, and said in the list, if nothing does.
    fn new(list: &List) -> Result<Option<Root>, Failed> {
        let is_root = output("id", &["-u"])?.trim() == "0";
        let flags: &[&str] = if is_root { &["--mount"] } else { &["--map-root-user", "--mount"] };
        // Whether a namespace may be had only a try shows.
        let is_possible = output("unshare", &[flags, &["mount", "--rbind", "/proc", "/proc"]].concat()).is_ok();
        Ok(match (is_possible, is_root) {
            (true, _) => Some(Root::Namespace(flags)),
            (false, true) => {
                list.add(file!(), "a root folder of the package's own for the trial run: mounting is forbidden here");
                Some(Root::Plain)
            }
            (false, false) => {
                list.add(file!(), "the package's installation: this user may make no namespace (unshare)");
                None
            }
        })
    }

    /// Runs the package's program as it is installed in `root`.
    fn run(&self, steps: &mut Steps, name: &str, root: &Path, args: &[&str]) -> Result<(), Failed> {
        let at_root = text(root);
        match self {
            Root::Namespace(flags) => {
                let program = ["sh", "-c", IN_ROOT, &at_root, "/usr/bin/stepscope"];
                let env = [("PATH", SYSTEM_PATH), ("HOME", "/tmp"), ("TMPDIR", "/tmp")];
                steps.run(name, "unshare", &[flags, &program[..], args].concat(), &env)
            }
            Root::Plain => {
                let inside =
                    |arg: &&str| arg.strip_prefix('/').map_or((*arg).to_owned(), |rest| text(&root.join(rest)));
                let args: Vec<String> = args.iter().map(inside).collect();
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                steps.run(name, &text(&root.join("usr/bin/stepscope")), &args, &[])
            }
        }
    }

    /// Runs dpkg on the system in `root`.
    fn dpkg(&self, steps: &mut Steps, name: &str, root: &Path, args: &[&str]) -> Result<(), Failed> {
        let (at_root, log) = (format!("--root={}", text(root)), format!("--log={}", text(&root.with_extension("log"))));
        // Images of containers leave out documents.
        let dpkg = ["dpkg", &at_root, &log, "--path-include=*"];
        let env = [("PATH", SYSTEM_PATH)];
        match self {
            Root::Namespace(flags) => steps.run(name, "unshare", &[flags, &dpkg[..], args].concat(), &env),
            Root::Plain => steps.run(name, "dpkg", &[&dpkg[1..], args].concat(), &env),
        }
    }
}

/// With the folders of root's programs, which a user's may lack.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_ldds_text() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n\t\
                      /lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(libraries(listed), expected);
    }
}
