//! Training in several processes: the workers that `train --workers` starts and ends, and where steps run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use distributed::{Cluster, Master, MasterOptions};
use engine::{Graph, RunOptions, Session, Tensor};

use crate::args;
use crate::outcome::Failure;

/// How long a worker that was told to end may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The job whose tasks train.
pub(super) const JOB: &str = "worker";

/// Where training runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// In this process.
    Here,
    /// In workers that are started for it.
    Workers {
        /// How many.
        n: u16,
        /// What each fills its queue with.
        input: Input,
    },
    /// In the workers that a cluster's file names.
    Cluster(PathBuf),
}

/// What workers fill their queues with: the options of `stepscope worker` that tell it.
#[derive(Debug, Clone)]
pub struct Input(Vec<std::ffi::OsString>);

impl Input {
    /// The share of what `train` would learn from.
    pub fn of(args: &args::Train) -> Input {
        let mut options = vec!["--input".into(), args.name.name().into()];
        options.extend(["--seed".into(), args.training.seed.to_string().into()]);
        if let Some(data) = &args.data {
            options.extend(["--data".into(), data.into()]);
        }
        if let Some(threads) = args.training.threads {
            options.extend(["--threads".into(), threads.to_string().into()]);
        }
        Input(options)
    }
}

/// Where steps run.
pub(super) enum Runner {
    /// In this process.
    Here(Arc<Session>),
    /// On the tasks of a cluster.
    Cluster { session: Box<distributed::Session>, workers: Option<Workers> },
}

impl Runner {
    /// Runs a step, here or there.
    pub fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> anyhow::Result<Vec<Tensor>> {
        Ok(match self {
            Runner::Here(session) => session.run_step(options, feeds, fetches, targets)?,
            Runner::Cluster { session, .. } => session.run_step(options, feeds, fetches, targets)?,
        })
    }

    /// Ends the workers that were started for the run.
    pub fn end(&mut self, warnings: &mut Vec<String>) {
        if let Runner::Cluster { session, workers } = self {
            session.close();
            if let Some(workers) = workers.take() {
                workers.end(warnings);
            }
        }
    }
}

/// A cluster that is there.
pub(super) struct Launched {
    master: Master,
    workers: Option<Workers>,
}

impl Launched {
    /// The cluster of a place; `None` where that is this process. Workers that are started record into `trace`.
    pub fn at(place: &Place, trace: Option<&Path>) -> Result<Option<Launched>, Failure> {
        let (cluster, workers) = match place {
            Place::Here => return Ok(None),
            Place::Cluster(file) => (Cluster::read(file).map_err(Failure::wrong_use)?, None),
            Place::Workers { n, input } => {
                let (cluster, workers) = Workers::start(*n, input, trace)?;
                (cluster, Some(workers))
            }
        };
        let security = cluster.security(cluster.master.as_ref()).map_err(Failure::wrong_use)?;
        let master = Master::new(cluster, MasterOptions { security, ..MasterOptions::default() });
        Ok(Some(Launched { master, workers }))
    }

    /// A device for each tower: the first of each task of the job that trains.
    pub fn devices(&self) -> Result<Vec<String>, Failure> {
        let tasks = self.master.cluster().tasks.keys().filter(|task| task.job == JOB);
        let devices: Vec<String> = tasks.map(|task| format!("{task}/device:CPU:0")).collect();
        match devices.is_empty() {
            true => Err(Failure::wrong_use(format_args!("the cluster has no job {JOB}, whose tasks train"))),
            false => Ok(devices),
        }
    }

    /// A session on the cluster.
    pub fn session(self, graph: &Graph) -> Result<Runner, Failure> {
        let session = self.master.session(graph).context("reaching the workers")?;
        Ok(Runner::Cluster { session: Box::new(session), workers: self.workers })
    }
}

/// Worker processes and the folder of their sockets. They end with this, and with this process.
pub(super) struct Workers {
    children: Vec<Child>,
    folder: PathBuf,
}

impl Workers {
    fn start(n: u16, input: &Input, trace: Option<&Path>) -> anyhow::Result<(Cluster, Workers)> {
        let (process, now) = (std::process::id(), events::clock::wall_now_ns());
        // Short: a socket's path has at most about 100 bytes.
        let folder = std::env::temp_dir().join(format!("stepscope-{process}-{now}"));
        // Nobody else reaches the sockets.
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&folder)
            .with_context(|| format!("making {}", folder.display()))?;
        let mut workers = Workers { children: Vec::new(), folder };
        let sockets: Vec<String> =
            (0..n).map(|task| format!("{:?}", format!("unix:{}/{task}", workers.folder.display()))).collect();
        let text = format!("id = \"train-{process}-{now}\"\n[jobs]\n{JOB} = [{}]\n", sockets.join(", "));
        let file = workers.folder.join("cluster.toml");
        std::fs::write(&file, &text).with_context(|| format!("writing {}", file.display()))?;
        let cluster = Cluster::parse(&text)?;
        for task in 0..n {
            workers.children.push(spawn(&file, task, input, trace).context("starting a worker")?);
        }
        for (task, child) in workers.children.iter_mut().enumerate() {
            listening(child).with_context(|| format!("starting /job:{JOB}/task:{task}"))?;
        }
        Ok((cluster, workers))
    }

    /// Lets them end, and waits for it.
    fn end(mut self, warnings: &mut Vec<String>) {
        self.children.iter_mut().for_each(|child| drop(child.stdin.take()));
        let deadline = events::clock::mono_now() + PATIENCE.as_nanos() as i64;
        for (task, child) in self.children.iter_mut().enumerate() {
            let name = format!("/job:{JOB}/task:{task}");
            match wait_until(child, deadline) {
                Some(status) if status.success() => {}
                Some(status) => warnings.push(format!("{name} ended with {status}")),
                None => warnings.push(format!("{name} did not end within {} s and was killed", PATIENCE.as_secs())),
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Those that ended already cannot be killed, and are waited for all the same.
            let _ = child.kill();
            let _ = child.wait();
        }
        // A folder in the temporary folder; a leftover there harms nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn spawn(cluster: &Path, task: u16, input: &Input, trace: Option<&Path>) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["worker", "--quiet", "--json", "--until-stdin-ends", "--job", JOB, "--task", &task.to_string()]);
    command.arg("--cluster").arg(cluster).args(&input.0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    match trace {
        // The collector of this process drains the rings of all that record into the folder.
        Some(folder) => command.env(events::control::ENV, std::path::absolute(folder)?),
        None => command.env_remove(events::control::ENV),
    };
    // Ctrl-C is for this process, which ends the others when the step is over.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Waits until a worker says where it listens.
fn listening(child: &mut Child) -> anyhow::Result<()> {
    let stdout = child.stdout.take().context("its output is a pipe")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if line.is_empty() {
        let status = child.wait()?;
        return Err(anyhow!("it ended at once, with {status}"));
    }
    Ok(())
}

fn wait_until(child: &mut Child, deadline: i64) -> Option<std::process::ExitStatus> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if events::clock::mono_now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
