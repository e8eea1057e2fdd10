//! Worker processes that a launcher starts, and the folder of their sockets.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use gather::Scratch;

use crate::backend::JOB;

/// How long a worker may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a worker may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(30);

/// A folder for sockets, which this user alone reaches. Its name is short: a socket's path has at most about 100 bytes.
pub(crate) fn scratch_folder() -> anyhow::Result<Scratch> {
    Ok(Scratch::new("stepscope-train-")?)
}

/// Why workers did not start.
pub(crate) enum StartError {
    /// A worker was killed while it started: another attempt may succeed.
    Lost(String),
    /// A worker ended by itself and reported why, or no process can be started.
    Failed(anyhow::Error),
}

/// Worker processes, which are killed when this is dropped, and end when this process ends.
pub(crate) struct WorkerProcesses {
    children: Vec<Child>,
    /// The file of the cluster that the workers form.
    pub file: PathBuf,
}

impl WorkerProcesses {
    /// Starts `n` workers, which record into `trace`; creates `folder` for their sockets.
    pub fn start(
        folder: &Path,
        n: u16,
        command: impl Fn(&Path, u16) -> io::Result<Command>,
        trace: Option<&Path>,
    ) -> Result<WorkerProcesses, StartError> {
        let file = folder.join("cluster.toml");
        write_cluster(folder, n, &file).map_err(StartError::Failed)?;
        let mut workers = WorkerProcesses { children: Vec::new(), file };
        for task in 0..n {
            let spawned = command(&workers.file, task).and_then(|mut command| {
                configure_child(&mut command, trace)?;
                command.spawn()
            });
            let child = spawned.context("starting a worker");
            workers.children.push(child.map_err(StartError::Failed)?);
        }
        for (task, child) in workers.children.iter_mut().enumerate() {
            let name = task_name(task);
            if let Err(error) = wait_until_listening(child) {
                return Err(match wait_for_exit(child, END_TIMEOUT) {
                    Some(status) if status.code().is_none() => StartError::Lost(loss_text(&name, status)),
                    Some(status) => StartError::Failed(anyhow!("{name} ended at once, with {status}")),
                    None => StartError::Failed(error.context(format!("starting {name}"))),
                });
            }
        }
        Ok(workers)
    }

    /// Describes the loss of the first worker that has ended; `None` while all run.
    pub fn find_lost(&mut self) -> Option<String> {
        let mut ended = self.children.iter_mut().enumerate();
        ended.find_map(|(task, child)| Some(loss_text(&task_name(task), child.try_wait().ok().flatten()?)))
    }

    /// Closes the workers' standard input, at which they end, and waits for them; adds a warning for each that fails.
    pub fn end(mut self, warnings: &mut Vec<String>) {
        self.children.iter_mut().for_each(|child| drop(child.stdin.take()));
        let begin_ns = events::clock::mono_now();
        for (task, child) in self.children.iter_mut().enumerate() {
            let waited = Duration::from_nanos((events::clock::mono_now() - begin_ns).max(0) as u64);
            let name = task_name(task);
            match wait_for_exit(child, END_TIMEOUT.saturating_sub(waited)) {
                Some(status) if status.success() => {}
                Some(status) => warnings.push(format!("{name} ended with {status}")),
                None => warnings.push(format!("{name} did not end within {} s and was killed", END_TIMEOUT.as_secs())),
            }
        }
    }
}

impl Drop for WorkerProcesses {
    fn drop(&mut self) {
        // All are killed before the first wait, so that no worker reports the loss of another.
        for child in &mut self.children {
            // Killing fails if the process has ended; waiting is needed in either case.
            let _ = child.kill();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
        if let Some(folder) = self.file.parent() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn task_name(task: usize) -> String {
    format!("/job:{JOB}/task:{task}")
}

fn loss_text(name: &str, status: ExitStatus) -> String {
    format!("{name} was lost: it ended with {status}")
}

fn write_cluster(folder: &Path, n: u16, file: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("making {}", folder.display()))?;
    let sockets: Vec<String> =
        (0..n).map(|task| format!("{:?}", format!("unix:{}/{task}", folder.display()))).collect();
    // Each attempt has its own job id, so that processes of an earlier attempt are refused.
    let id = format!("train-{}-{}", std::process::id(), events::clock::wall_now_ns());
    let text = format!("id = \"{id}\"\n[jobs]\n{JOB} = [{}]\n", sockets.join(", "));
    fs::write(file, &text).with_context(|| format!("writing {}", file.display()))
}

/// Makes a process of the run communicate through pipes and record into `trace`. In a process group of its own it
/// receives no Ctrl-C: this process ends it.
pub(crate) fn configure_child(command: &mut Command, trace: Option<&Path>) -> io::Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    match trace {
        // The collector of this process drains the rings of every process that records into the folder.
        Some(folder) => command.env(events::control::ENV, std::path::absolute(folder)?),
        None => command.env_remove(events::control::ENV),
    };
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    Ok(())
}

/// Waits until a worker prints its address.
fn wait_until_listening(child: &mut Child) -> anyhow::Result<()> {
    let stdout = child.stdout.take().context("its output is a pipe")?;
    let (sender, first_line) = mpsc::channel();
    let read = move || {
        let mut line = String::new();
        let n = BufReader::<ChildStdout>::new(stdout).read_line(&mut line);
        // Sending fails after the timeout, when nobody waits any more.
        let _ = sender.send(n.is_ok_and(|n| n > 0));
    };
    std::thread::Builder::new().name("listening".into()).spawn(read)?;
    match first_line.recv_timeout(LISTEN_TIMEOUT) {
        Ok(true) => Ok(()),
        Ok(false) => Err(anyhow!("it ended")),
        Err(_) => Err(anyhow!("it does not listen after {} s", LISTEN_TIMEOUT.as_secs())),
    }
}

/// Waits for a process to end; `None` where it still runs after `timeout`.
pub(crate) fn wait_for_exit(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let deadline = events::clock::mono_now().saturating_add(timeout.as_nanos() as i64);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if events::clock::mono_now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use distributed::Cluster;

    #[test]
    fn the_clusters_file_names_a_socket_for_each_worker() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("0");
        let file = folder.join("cluster.toml");
        write_cluster(&folder, 3, &file).unwrap();
        let cluster = Cluster::read(&file).unwrap();
        let tasks: Vec<String> = cluster.tasks.keys().map(ToString::to_string).collect();
        assert_eq!(tasks, ["/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"]);
        assert!(cluster.id.starts_with(&format!("train-{}-", std::process::id())), "{}", cluster.id);
        assert!(write_cluster(&folder, 3, &file).is_err(), "each attempt has a folder of its own");
    }
}
