//! The worker processes of `train --workers`, and the folder of their sockets.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use gather::Scratch;

use super::cluster::JOB;
use crate::args;

/// How long a worker that was told to end may take.
const TO_END: Duration = Duration::from_secs(5);
/// How long a worker may take until it listens.
const TO_LISTEN: Duration = Duration::from_secs(30);

/// What workers fill their queues with: the options of `stepscope worker` that tell it.
pub(super) fn input_options(args: &args::Train) -> Vec<OsString> {
    let mut options = vec!["--input".into(), args.name.name().into()];
    options.extend(["--seed".into(), args.training.seed.to_string().into()]);
    if let Some(data) = &args.data {
        options.extend(["--data".into(), data.into()]);
    }
    if let Some(limit) = args.training.memory_limit {
        options.extend(["--memory-limit".into(), limit.to_string().into()]);
    }
    if let Some(threads) = args.training.threads {
        options.extend(["--threads".into(), threads.to_string().into()]);
    }
    options
}

/// A folder for sockets, which this user alone reaches. Its name is short: a socket's path has at most about 100 bytes.
pub(super) fn scratch() -> anyhow::Result<Scratch> {
    Ok(Scratch::new("stepscope-train-")?)
}

/// Why workers did not come to be.
pub(super) enum NotStarted {
    /// One was killed meanwhile: trying again may do.
    Lost(String),
    /// It says itself why it ended, or there is no process to be had.
    Failed(anyhow::Error),
}

/// Worker processes. They end with this, and with this process.
pub(super) struct Workers {
    children: Vec<Child>,
    /// The cluster that they are.
    pub file: PathBuf,
}

impl Workers {
    /// Starts `n` of them, with sockets in `folder`, which is made; they record into `trace`.
    pub fn start(folder: &Path, n: u16, input: &[OsString], trace: Option<&Path>) -> Result<Workers, NotStarted> {
        let file = folder.join("cluster.toml");
        write_cluster(folder, n, &file).map_err(NotStarted::Failed)?;
        let mut workers = Workers { children: Vec::new(), file };
        for task in 0..n {
            let child = spawn(&workers.file, task, input, trace).context("starting a worker");
            workers.children.push(child.map_err(NotStarted::Failed)?);
        }
        for (task, child) in workers.children.iter_mut().enumerate() {
            let name = name(task);
            if let Err(error) = listening(child) {
                return Err(match wait(child, TO_END) {
                    Some(status) if status.code().is_none() => NotStarted::Lost(was_lost(&name, status)),
                    Some(status) => NotStarted::Failed(anyhow!("{name} ended at once, with {status}")),
                    None => NotStarted::Failed(error.context(format!("starting {name}"))),
                });
            }
        }
        Ok(workers)
    }

    /// What is told of one that ended, if any did.
    pub fn lost(&mut self) -> Option<String> {
        let mut ended = self.children.iter_mut().enumerate();
        ended.find_map(|(task, child)| Some(was_lost(&name(task), child.try_wait().ok().flatten()?)))
    }

    /// Lets them end, and waits for it.
    pub fn end(mut self, warnings: &mut Vec<String>) {
        self.children.iter_mut().for_each(|child| drop(child.stdin.take()));
        let begin = events::clock::mono_now();
        for (task, child) in self.children.iter_mut().enumerate() {
            let waited = Duration::from_nanos((events::clock::mono_now() - begin).max(0) as u64);
            let name = name(task);
            match wait(child, TO_END.saturating_sub(waited)) {
                Some(status) if status.success() => {}
                Some(status) => warnings.push(format!("{name} ended with {status}")),
                None => warnings.push(format!("{name} did not end within {} s and was killed", TO_END.as_secs())),
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // All at once, so that none is told of another's end.
        for child in &mut self.children {
            // Those that ended already cannot be killed, and are waited for all the same.
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

fn name(task: usize) -> String {
    format!("/job:{JOB}/task:{task}")
}

fn was_lost(name: &str, status: ExitStatus) -> String {
    format!("{name} was lost: it ended with {status}")
}

fn write_cluster(folder: &Path, n: u16, file: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("making {}", folder.display()))?;
    let sockets: Vec<String> =
        (0..n).map(|task| format!("{:?}", format!("unix:{}/{task}", folder.display()))).collect();
    // Its own for each attempt: what an earlier one left would not be let in.
    let id = format!("train-{}-{}", std::process::id(), events::clock::wall_now_ns());
    let text = format!("id = \"{id}\"\n[jobs]\n{JOB} = [{}]\n", sockets.join(", "));
    fs::write(file, &text).with_context(|| format!("writing {}", file.display()))
}

fn spawn(cluster: &Path, task: u16, input: &[OsString], trace: Option<&Path>) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["worker", "--quiet", "--json", "--until-stdin-ends", "--job", JOB, "--task", &task.to_string()]);
    command.arg("--cluster").arg(cluster).args(input);
    as_child(&mut command, trace)?;
    Ok(command.spawn()?)
}

/// Has a process of the run talk through pipes, record into `trace`, and leave Ctrl-C to this one, which ends the others.
pub(super) fn as_child(command: &mut Command, trace: Option<&Path>) -> std::io::Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    match trace {
        // The collector of this process drains the rings of all that record into the folder.
        Some(folder) => command.env(events::control::ENV, std::path::absolute(folder)?),
        None => command.env_remove(events::control::ENV),
    };
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    Ok(())
}

/// Waits until a worker says where it listens.
fn listening(child: &mut Child) -> anyhow::Result<()> {
    let stdout = child.stdout.take().context("its output is a pipe")?;
    let (tell, told) = mpsc::channel();
    let read = move || {
        let mut line = String::new();
        let n = BufReader::<ChildStdout>::new(stdout).read_line(&mut line);
        // Nobody may wait any more.
        let _ = tell.send(n.is_ok_and(|n| n > 0));
    };
    std::thread::Builder::new().name("listening".into()).spawn(read)?;
    match told.recv_timeout(TO_LISTEN) {
        Ok(true) => Ok(()),
        Ok(false) => Err(anyhow!("it ended")),
        Err(_) => Err(anyhow!("it does not listen after {} s", TO_LISTEN.as_secs())),
    }
}

/// Waits for a process to end.
pub(super) fn wait(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let deadline = events::clock::mono_now().saturating_add(within.as_nanos() as i64);
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
