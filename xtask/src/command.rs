//! Commands whose output is read, and errors of files with their paths.

use std::path::Path;
use std::process::Command;

use crate::steps::Failed;

/// The standard output of a command that succeeds.
pub fn output(program: &str, args: &[&str]) -> Result<String, Failed> {
    let failed = |why: String| Failed(format!("{program} {} ({why})", args.join(" ")));
    let ran = Command::new(program).args(args).env("LC_ALL", "C").output().map_err(|e| failed(e.to_string()))?;
    if !ran.status.success() {
        return Err(failed(String::from_utf8_lossy(&ran.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Names the file that an error is of.
pub fn at<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Failed> {
    result.map_err(|error| Failed(format!("{}: {error}", path.display())))
}

/// A path as an argument of a command.
pub fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The files, links and folders below `folder`, relative to it and sorted.
pub fn paths_below(folder: &Path) -> Result<Vec<String>, Failed> {
    let listed = output("find", &[&text(folder), "-mindepth", "1", "-printf", "%P\\n"])?;
    let mut paths: Vec<String> = listed.lines().map(str::to_owned).collect();
    paths.sort();
    Ok(paths)
}

/// The time of the newest commit, in seconds of Unix, and as e-mails have it; now, where there is no git. It is the date of all that is
/// packed, so that the same commit makes the same files.
pub fn date() -> Result<(String, String), Failed> {
    let commit = output("git", &["log", "-1", "--format=%ct"]);
    let seconds = commit.or_else(|_| output("date", &["+%s"]))?.trim().to_owned();
    let shown = output("date", &["--utc", "-R", "-d", &format!("@{seconds}")])?.trim().to_owned();
    Ok((seconds, shown))
}
