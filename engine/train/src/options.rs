//! Options of a training run, checked and turned into the engine's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::tasks::Task;
use engine::training::{InputMode, Parallelism, TrainingOptions};
use engine::{Numerics, SessionOptions};

use crate::devices::{self, DeviceSpec};
use crate::error::{Result, TrainError};

/// The most batches that an input queue holds.
pub(crate) const QUEUE_CAPACITY: usize = 8;
/// Steps between histograms, and between tests, where `TrainOptions::summary_every` is not set.
const DEFAULT_HISTOGRAMS_EVERY: u64 = 100;

/// The destination of a run's trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TraceTarget {
    /// Into the folder `trace` of the run's folder.
    #[default]
    RunFolder,
    /// Nowhere: nothing is recorded.
    Off,
    /// Into this folder.
    Folder(PathBuf),
}

/// Options of a training run.
#[derive(Clone, Debug, Default)]
pub struct TrainOptions {
    /// The number of training steps, instead of the task's.
    pub steps: Option<u64>,
    /// Learning rate, instead of the task's.
    pub learning_rate: Option<f32>,
    /// Bytes that the tensors of this process may take.
    pub memory_limit: Option<usize>,
    /// Worker threads.
    pub threads: Option<usize>,
    /// CPU devices, each with a copy of the model.
    pub n_devices: Option<usize>,
    /// Devices by name, instead of `n_devices`.
    pub devices: Vec<DeviceSpec>,
    /// How the copies of the model exchange gradients, instead of the task's default.
    pub parallelism: Option<Parallelism>,
    /// A folder of checkpoints, or `s3://BUCKET/PREFIX`.
    pub checkpoint_dir: Option<PathBuf>,
    /// Steps between checkpoints.
    pub checkpoint_every: Option<u64>,
    /// Steps between histograms, images and tests.
    pub summary_every: Option<u64>,
    /// The run's folder, instead of a new one in `runs`.
    pub logdir: Option<PathBuf>,
    /// The destination of the trace.
    pub trace: TraceTarget,
    /// An empty folder that receives every graph that is run.
    pub dump_graphs: Option<PathBuf>,
    /// How the session treats results that are not finite.
    pub numerics: Numerics,
}

impl TrainOptions {
    /// Steps between histograms, images and tests.
    pub(crate) fn histograms_every(&self) -> u64 {
        self.summary_every.unwrap_or(DEFAULT_HISTOGRAMS_EVERY)
    }

    /// The engine's options for a task.
    pub(crate) fn training_options(&self, task: &Task) -> TrainingOptions {
        let mut options = task.training.clone();
        options.learning_rate = self.learning_rate.unwrap_or(options.learning_rate);
        options.towers = self.n_devices.unwrap_or(options.towers);
        options.devices = self.devices.iter().map(DeviceSpec::name).collect();
        options.parallelism = self.parallelism.unwrap_or(options.parallelism);
        // In these modes each tower has a thread that runs steps: they take their batches from one queue.
        let is_threaded = matches!(self.parallelism, Some(Parallelism::Asynchronous | Parallelism::Backup { .. }));
        if is_threaded && options.input == InputMode::Fed {
            options.input = InputMode::Queue { capacity: QUEUE_CAPACITY };
        }
        options
    }

    /// The options of a session in this process.
    ///
    /// # Errors
    /// A device is missing, or the folder for graphs is in use.
    pub(crate) fn session_options(&self, n_towers: usize) -> Result<SessionOptions> {
        let devices = match self.devices.is_empty() {
            true => SessionOptions::devices(n_towers.max(1)),
            false => devices::session_options(&self.devices)?,
        };
        let dump_graphs = self.dump_graphs.clone();
        Ok(SessionOptions { threads: self.threads, dump_graphs, numerics: self.numerics, ..devices })
    }

    /// Checks the options that can be checked before anything is written.
    ///
    /// # Errors
    /// `TrainError::Usage`: a device is missing, or the folder for graphs is in use.
    pub(crate) fn check(&self) -> Result<()> {
        self.dump_graphs.as_deref().map(refuse_used_dump_folder).transpose()?;
        devices::check(&self.devices)
    }
}

/// Refuses as many backup workers as there are towers: a step needs the gradients of at least one tower.
pub(crate) fn check_backups(options: &TrainingOptions) -> Result<()> {
    let n_towers = if options.devices.is_empty() { options.towers.max(1) } else { options.devices.len() };
    match options.parallelism {
        Parallelism::Backup { spare } if spare >= n_towers => Err(TrainError::wrong_use(format_args!(
            "--backup-workers {spare}: there are {n_towers} in all, and a step needs the gradients of at least one; \
             give more with --workers or --devices"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a folder for dumped graphs that has files in it: the graphs of several runs would mix.
///
/// # Errors
/// `TrainError::Usage` when it is in use or cannot be read.
pub fn refuse_used_dump_folder(path: &Path) -> Result<()> {
    let reason = match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => return Ok(()),
        Ok(false) => "is not empty; graphs are dumped into a folder of their own".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(TrainError::wrong_use(format_args!("{}: {reason}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Model, TaskSpec};

    fn task() -> Task {
        TaskSpec { model: Model::Mlp, data: None, seed: 1 }.load().unwrap()
    }

    #[test]
    fn without_options_a_task_is_trained_its_own_way() {
        let task = task();
        let options = TrainOptions::default().training_options(&task);
        assert_eq!(options.learning_rate, task.training.learning_rate);
        assert_eq!((options.towers, options.parallelism), (task.training.towers, task.training.parallelism));
        assert!(options.devices.is_empty());
        assert_eq!(TrainOptions::default().histograms_every(), DEFAULT_HISTOGRAMS_EVERY);
    }

    #[test]
    fn options_override_the_tasks_way() {
        let options = TrainOptions {
            learning_rate: Some(0.5),
            n_devices: Some(3),
            parallelism: Some(Parallelism::AllReduce),
            ..TrainOptions::default()
        };
        let options = options.training_options(&task());
        assert_eq!((options.learning_rate, options.towers), (0.5, 3));
        assert_eq!(options.parallelism, Parallelism::AllReduce);
        assert_eq!(options.input, InputMode::Fed, "one thread of steps feeds its batches");
    }

    #[test]
    fn towers_with_threads_of_their_own_share_a_queue() {
        for parallelism in [Parallelism::Asynchronous, Parallelism::Backup { spare: 1 }] {
            let options = TrainOptions { parallelism: Some(parallelism), ..TrainOptions::default() };
            assert_eq!(options.training_options(&task()).input, InputMode::Queue { capacity: QUEUE_CAPACITY });
        }
    }

    #[test]
    fn a_step_needs_one_worker_that_is_no_backup() {
        let check = |n_devices, spare| {
            let parallelism = Some(Parallelism::Backup { spare });
            let options = TrainOptions { n_devices: Some(n_devices), parallelism, ..TrainOptions::default() };
            check_backups(&options.training_options(&task()))
        };
        assert!(check(4, 3).is_ok());
        let Err(TrainError::Usage(error)) = check(4, 4) else { panic!("no worker is left") };
        assert!(error.to_string().starts_with("--backup-workers 4: there are 4 in all"), "{error}");
        assert!(check(0, 1).is_err(), "there is always one tower");
    }

    #[test]
    fn graphs_are_dumped_into_an_empty_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refuse_used_dump_folder(dir.path()).is_ok());
        assert!(refuse_used_dump_folder(&dir.path().join("new")).is_ok());
        fs::write(dir.path().join("old.pb"), "x").unwrap();
        assert!(matches!(refuse_used_dump_folder(dir.path()), Err(TrainError::Usage(_))));
        assert!(matches!(refuse_used_dump_folder(&dir.path().join("old.pb")), Err(TrainError::Usage(_))));
        let options = TrainOptions { dump_graphs: Some(dir.path().into()), ..TrainOptions::default() };
        assert!(matches!(options.check(), Err(TrainError::Usage(_))), "before anything is begun");
    }
}
