//! A run's folder: made new, never over another run's files; `run.json` and `graph.pb` in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use prost::Message;
use serde::Serialize;

use crate::error::{Result, TrainError};
use crate::options::TraceTarget;

/// The folder that one training run writes.
pub struct RunFolder {
    path: PathBuf,
    trace: Option<PathBuf>,
}

/// The file that describes the run, a [`RunInfo`].
const INFO_FILE: &str = "run.json";

/// The content of `run.json`.
#[derive(Serialize)]
struct RunInfo<'a> {
    id: String,
    name: &'a str,
    command: Vec<String>,
    host: String,
    pid: u32,
    /// The start time of the process: with `pid` it identifies the process.
    born: u64,
    start: String,
    version: &'static str,
}

impl RunFolder {
    /// Creates the folder (`logdir`, else `runs/NAME-DATE`) and writes `run.json`. A run that `continues` an
    /// interrupted run may write into the folder of that run.
    ///
    /// # Errors
    /// `TrainError::Usage` when the folder holds a run already, `TrainError::Work` when it cannot be written.
    pub fn create(name: &str, logdir: Option<&Path>, trace: &TraceTarget, continues: bool) -> Result<RunFolder> {
        let start = local_time();
        let path = match logdir {
            Some(path) => {
                if !(continues && path.join(INFO_FILE).is_file()) {
                    refuse_if_used(path)?;
                }
                fs::create_dir_all(path).with_context(|| format!("making the run's folder {}", path.display()))?;
                path.to_path_buf()
            }
            None => create_unique_folder(name, &start.strftime("%Y%m%d-%H%M%S").to_string())?,
        };
        let trace = match trace {
            TraceTarget::Off => None,
            TraceTarget::Folder(folder) => {
                if !continues {
                    refuse_if_used(folder)?;
                }
                Some(folder.clone())
            }
            TraceTarget::RunFolder => Some(path.join("trace")),
        };
        let folder = RunFolder { path, trace };
        folder.write_info(name, &start.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())?;
        Ok(folder)
    }

    /// The folder of a run that another process began and traces.
    pub fn join(path: &Path) -> RunFolder {
        RunFolder { path: path.to_path_buf(), trace: None }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The trace's folder; `None` when tracing is off.
    pub fn trace(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// Writes the graph as `graph.pb`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_graph(&self, graph: &formats::proto::GraphDef) -> anyhow::Result<()> {
        let path = self.path.join("graph.pb");
        fs::write(&path, graph.encode_to_vec()).with_context(|| format!("writing {}", path.display()))
    }

    fn write_info(&self, name: &str, start: &str) -> anyhow::Result<()> {
        let id = self.path.file_name().map_or_else(|| name.to_owned(), |last| last.to_string_lossy().into_owned());
        let info = RunInfo {
            id,
            name,
            command: std::env::args().collect(),
            host: host_name(),
            pid: std::process::id(),
            born: events::session::born(std::process::id()),
            start: start.to_owned(),
            version: env!("CARGO_PKG_VERSION"),
        };
        let path = self.path.join(INFO_FILE);
        let text = serde_json::to_string_pretty(&info).context("encoding run.json")?;
        fs::write(&path, text + "\n").with_context(|| format!("writing {}", path.display()))
    }
}

/// Whether the process that wrote a run's folder has ended; `None` where that is unknown, because the folder holds no
/// run or a run of another host.
pub fn is_over(folder: &Path) -> Option<bool> {
    let info: serde_json::Value = serde_json::from_slice(&fs::read(folder.join(INFO_FILE)).ok()?).ok()?;
    let pid = u32::try_from(info["pid"].as_u64()?).ok()?;
    let born = info["born"].as_u64()?;
    let is_same_host = info["host"].as_str() == Some(host_name().as_str());
    is_same_host.then(|| events::session::born(pid) != born || is_zombie(pid))
}

/// Whether a process has ended but its parent has not waited for it.
fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, after_name)| after_name.starts_with(['Z', 'X']))
}

/// Refuses a folder that has anything in it, so that nothing is overwritten.
///
/// # Errors
/// `TrainError::Usage` when the path is a file or a folder in use.
pub fn refuse_if_used(path: &Path) -> Result<()> {
    if path.exists() && !path.is_dir() {
        return Err(TrainError::wrong_use(format_args!("{} is a file; give a folder", path.display())));
    }
    let is_used = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        let path = path.display();
        return Err(TrainError::wrong_use(format_args!("{path} is not empty; give a new folder, or remove it first")));
    }
    Ok(())
}

/// Creates `runs/NAME-DATE`, with `-2`, `-3` ... when several runs start in the same second.
fn create_unique_folder(name: &str, date: &str) -> anyhow::Result<PathBuf> {
    let runs = Path::new("runs");
    fs::create_dir_all(runs).context("making the folder runs (give --logdir DIR to write elsewhere)")?;
    for n in 1..1000 {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let path = runs.join(format!("{name}-{date}{suffix}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("making the run's folder {}", path.display())),
        }
    }
    anyhow::bail!("a thousand runs of {name} started in this second");
}

fn local_time() -> jiff::Zoned {
    let ns = i128::from(events::clock::wall_now_ns());
    let now = jiff::Timestamp::from_nanosecond(ns).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.to_zoned(jiff::tz::TimeZone::system())
}

fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "unknown".into(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_files_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine.txt"), "x").unwrap();
        assert!(matches!(
            RunFolder::create("demo", Some(dir.path()), &TraceTarget::RunFolder, false),
            Err(TrainError::Usage(_))
        ));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was written");
    }

    #[test]
    fn a_run_that_continues_writes_into_its_own_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("run");
        let first = RunFolder::create("demo", Some(&at), &TraceTarget::RunFolder, false).unwrap();
        assert_eq!(first.trace(), Some(at.join("trace").as_path()));
        let again = RunFolder::create("demo", Some(&at), &TraceTarget::RunFolder, true).unwrap();
        assert_eq!(again.path(), at);
        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("mine.txt"), "x").unwrap();
        let refused = RunFolder::create("demo", Some(&other), &TraceTarget::RunFolder, true);
        assert!(matches!(refused, Err(TrainError::Usage(_))), "it holds no run");
    }

    #[test]
    fn a_trace_has_a_folder_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (run, trace) = (dir.path().join("run"), dir.path().join("trace"));
        fs::create_dir(&trace).unwrap();
        let target = TraceTarget::Folder(trace.clone());
        assert_eq!(RunFolder::create("demo", Some(&run), &target, false).unwrap().trace(), Some(trace.as_path()));
        fs::write(trace.join("control"), "x").unwrap();
        let run = dir.path().join("second");
        assert!(matches!(RunFolder::create("demo", Some(&run), &target, false), Err(TrainError::Usage(_))));
    }

    #[test]
    fn a_run_is_over_when_its_process_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(is_over(dir.path()), None, "no run's folder");
        let info = |pid: u32, born: u64, host: &str| {
            let text = serde_json::json!({ "pid": pid, "born": born, "host": host }).to_string();
            fs::write(dir.path().join(INFO_FILE), text).unwrap();
            is_over(dir.path())
        };
        let me = std::process::id();
        let born = events::session::born(me);
        assert_eq!(info(me, born, &host_name()), Some(false));
        assert_eq!(info(me, born + 1, &host_name()), Some(true), "another process has its number");
        assert_eq!(info(me, born, "elsewhere.example"), None);
        let mut child = std::process::Command::new("true").stdout(std::process::Stdio::piped()).spawn().unwrap();
        let (pid, born) = (child.id(), events::session::born(child.id()));
        // The pipe closes when the child ends; then the child is a zombie until it is waited for.
        std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
        while !is_zombie(pid) {
            std::thread::yield_now();
        }
        assert_eq!(info(pid, born, &host_name()), Some(true));
        child.wait().unwrap();
        assert_eq!(info(pid, born, &host_name()), Some(true));
    }

    #[test]
    fn a_new_folder_says_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("runs/a");
        let folder = RunFolder::create("demo", Some(&at), &TraceTarget::Off, false).unwrap();
        assert_eq!(folder.trace(), None);
        let info: serde_json::Value = serde_json::from_str(&fs::read_to_string(at.join("run.json")).unwrap()).unwrap();
        assert_eq!((info["id"].as_str(), info["name"].as_str()), (Some("a"), Some("demo")));
        assert!(
            RunFolder::create("demo", Some(&at), &TraceTarget::RunFolder, false).is_err(),
            "the second run does not overwrite the first"
        );
    }
}
