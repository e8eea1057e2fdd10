//! Checkpoints of a training run: restored when it starts, saved as it goes and at its end.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use engine::checkpoint::{CheckpointError, Restored, Saver, SaverOptions};
use engine::training::Saving;
use engine::{RunOptions, Tensor};

use crate::backend::{Backend, StepRunner, path_tensor};
use crate::error::{Result, TrainError};
use crate::named_graph::NamedGraph;
use crate::options::TrainOptions;

/// Steps between checkpoints where `TrainOptions::checkpoint_every` is not set.
const DEFAULT_CHECKPOINT_EVERY: u64 = 100;

/// Whether the checkpoint folder of the options has checkpoints, from which the run would continue.
///
/// # Errors
/// `TrainError::Usage` when the checkpoint folder cannot be used.
pub fn has_checkpoints(options: &TrainOptions) -> Result<bool> {
    Ok(open_saver(options)?.is_some_and(|saver| !saver.checkpoints().is_empty()))
}

/// Opens the checkpoint folder of the options; `None` where they name no folder.
fn open_saver(options: &TrainOptions) -> Result<Option<Saver>> {
    let Some(path) = &options.checkpoint_dir else { return Ok(None) };
    let every_steps = Some(options.checkpoint_every.unwrap_or(DEFAULT_CHECKPOINT_EVERY));
    let saver_options = SaverOptions { every_steps, ..SaverOptions::default() };
    match path.to_str().filter(|text| text.starts_with("s3://")) {
        Some(url) => open_store_saver(url, saver_options).map(Some),
        None => {
            // Absolute: the tasks of a cluster may have other working folders.
            let path = std::path::absolute(path).map_err(TrainError::wrong_use)?;
            Saver::new(path, saver_options).map(Some).map_err(TrainError::wrong_use)
        }
    }
}

#[cfg(feature = "s3")]
fn open_store_saver(url: &str, options: SaverOptions) -> Result<Saver> {
    use std::sync::Arc;

    use engine::checkpoint::ObjectStoreFiles;

    let store = Arc::new(ObjectStoreFiles::open(url).map_err(TrainError::wrong_use)?);
    let (process, now) = (std::process::id(), events::clock::wall_now_ns());
    let folder = std::env::temp_dir().join(format!("stepscope-checkpoints-{process}-{now}"));
    Saver::in_store(store, folder, options).map_err(TrainError::wrong_use)
}

#[cfg(not(feature = "s3"))]
fn open_store_saver(url: &str, _: SaverOptions) -> Result<Saver> {
    Err(TrainError::wrong_use(format_args!("{url}: this build has no object stores: build it with --features s3")))
}

/// Saves and restores the checkpoints of a run; does nothing where the options name no checkpoint folder.
pub(crate) struct Checkpointer {
    saver: Option<Mutex<Saver>>,
    /// The last step of the checkpoint that the run continued from.
    restored_step: Option<u64>,
}

impl Checkpointer {
    /// Opens the checkpoint folder of the options.
    ///
    /// # Errors
    /// `TrainError::Usage` when the checkpoint folder cannot be used.
    pub fn new(options: &TrainOptions) -> Result<Checkpointer> {
        Ok(Checkpointer { saver: open_saver(options)?.map(Mutex::new), restored_step: None })
    }

    /// The last step of the checkpoint that the run continued from.
    pub fn restored_step(&self) -> Option<u64> {
        self.restored_step
    }

    /// Restores the newest complete checkpoint, if there is one: variables, queue and random state.
    ///
    /// # Errors
    /// `TrainError::Usage` where every checkpoint is damaged, or the newest sound one does not fit the graph: a
    /// variable has another shape or, on a cluster, is missing (in one process it retains its first value). `Work` if
    /// tasks fail.
    pub fn restore(&mut self, runner: &StepRunner, graph: &NamedGraph) -> Result<Option<Restored>> {
        let Some(saver) = &mut self.saver else { return Ok(None) };
        let saver = saver.get_mut().unwrap_or_else(PoisonError::into_inner);
        let restored = match (&runner.backend, &graph.saving) {
            (Backend::Cluster(session), Some(saving)) => {
                let run = |prefix: &Path| restore_remote(runner, graph, saving, prefix);
                saver.restore_by(session.graph(), run).map_err(RemoteError::into_train_error)?
            }
            (Backend::Local(session), _) => saver.restore(session).map_err(TrainError::wrong_use)?,
            (Backend::Cluster(_), None) => None,
        };
        if restored.is_none() {
            // The first call of `is_due` starts the interval: checkpoints are then due every so many steps from step 0.
            saver.is_due(0);
        }
        self.restored_step = restored.as_ref().map(|restored| restored.step);
        Ok(restored)
    }

    /// Saves a checkpoint if one is due after `step`; calls `flush` first.
    ///
    /// # Errors
    /// The checkpoint cannot be written.
    pub fn save(&self, runner: &StepRunner, graph: &NamedGraph, step: u64, flush: impl FnOnce()) -> anyhow::Result<()> {
        let Some(saver) = &self.saver else { return Ok(()) };
        let mut saver = saver.lock().unwrap_or_else(PoisonError::into_inner);
        if !saver.is_due(step) {
            return Ok(());
        }
        flush();
        match &runner.backend {
            Backend::Local(session) => saver.save_in_background(session, step).map(drop).context("saving a checkpoint"),
            Backend::Cluster(_) => save_remote(&mut saver, runner, graph, step),
        }
    }

    /// Saves a checkpoint after the last step of the run, unless that step has one.
    pub fn save_last(&self, runner: &StepRunner, graph: &NamedGraph, step: u64) -> anyhow::Result<()> {
        let Some(saver) = &self.saver else { return Ok(()) };
        // A run that found all its steps done has changed nothing since that checkpoint.
        if self.restored_step == Some(step) {
            return Ok(());
        }
        let mut saver = saver.lock().unwrap_or_else(PoisonError::into_inner);
        match &runner.backend {
            Backend::Local(session) => saver.save(session, step).map(drop).context("saving a checkpoint"),
            // `save` has written this step's checkpoint where one was due.
            Backend::Cluster(_) if saver.last_step() == Some(step) => Ok(()),
            Backend::Cluster(_) => save_remote(&mut saver, runner, graph, step),
        }
    }
}

/// Saves a checkpoint of a cluster: each task writes its part of the state.
fn save_remote(saver: &mut Saver, runner: &StepRunner, graph: &NamedGraph, step: u64) -> anyhow::Result<()> {
    let Some(saving) = &graph.saving else { return Ok(()) };
    let write = |prefix: &Path| {
        let parts = saving.parts.iter().enumerate();
        let part_path = |i| path_tensor(&Saver::part(prefix, i));
        let mut feeds: Vec<(&str, Tensor)> = parts.map(|(i, feed)| (graph.name(*feed), part_path(i))).collect();
        feeds.push((graph.name(saving.prefix), path_tensor(prefix)));
        let options = RunOptions { label: "save", ..RunOptions::default() };
        runner.run_step(&options, &feeds, &[], &[graph.name(saving.save)]).map(drop).map_err(RemoteError::Step)
    };
    saver.save_by(step, write).map(drop).map_err(RemoteError::into_error).context("saving a checkpoint")
}

/// Restores a checkpoint on a cluster: each task reads its part of the state.
fn restore_remote(
    runner: &StepRunner,
    graph: &NamedGraph,
    saving: &Saving,
    prefix: &Path,
) -> std::result::Result<(), RemoteError> {
    let options = RunOptions { label: "restore", ..RunOptions::default() };
    let feeds = [(graph.name(saving.prefix), path_tensor(prefix))];
    runner.run_step(&options, &feeds, &[], &[graph.name(saving.restore)]).map(drop).map_err(RemoteError::Step)
}

/// The error of tasks that could not save or restore.
enum RemoteError {
    Checkpoint(CheckpointError),
    Step(anyhow::Error),
}

impl From<CheckpointError> for RemoteError {
    fn from(error: CheckpointError) -> RemoteError {
        RemoteError::Checkpoint(error)
    }
}

impl RemoteError {
    fn into_error(self) -> anyhow::Error {
        match self {
            RemoteError::Checkpoint(error) => error.into(),
            RemoteError::Step(error) => error,
        }
    }

    fn into_train_error(self) -> TrainError {
        match self {
            RemoteError::Checkpoint(error) => TrainError::wrong_use(error),
            RemoteError::Step(error) => TrainError::Work(error.context("restoring the checkpoint")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Arc;

    use engine::training::build;
    use engine::{Graph, Session, SessionOptions};

    use crate::event::Event;
    use crate::stall::StallWatch;
    use crate::task::{Model, TaskSpec};

    /// A small model, initialised, in this process.
    fn model(model: Model) -> (StepRunner, NamedGraph) {
        let task = TaskSpec { model, data: None, seed: 1 }.load().unwrap();
        let graph = Graph::new();
        let built = build(&graph, task.network.as_ref(), &task.training).unwrap();
        let named = NamedGraph::new(&graph, built);
        let session = Session::new(&graph, SessionOptions::devices(1)).unwrap();
        session.run(&[], &[], &[named.name(named.init)]).unwrap();
        let watch = StallWatch::new(Arc::default(), Arc::new(|_: &Event<'_>| {}));
        (StepRunner { backend: Backend::Local(Arc::new(session)), watch }, named)
    }

    fn options(dir: &Path) -> TrainOptions {
        let checkpoint_dir = Some(dir.join("checkpoints"));
        TrainOptions { checkpoint_dir, checkpoint_every: Some(2), ..TrainOptions::default() }
    }

    fn steps(options: &TrainOptions) -> Vec<u64> {
        open_saver(options).unwrap().unwrap().checkpoints().into_iter().map(|(step, _)| step).collect()
    }

    #[test]
    fn the_newest_complete_checkpoint_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        assert!(!has_checkpoints(&options).unwrap());
        let (runner, graph) = model(Model::Embeddings);
        let mut checkpointer = Checkpointer::new(&options).unwrap();
        assert!(checkpointer.restore(&runner, &graph).unwrap().is_none());
        checkpointer.save_last(&runner, &graph, 3).unwrap();
        checkpointer.save_last(&runner, &graph, 5).unwrap();
        assert!(has_checkpoints(&options).unwrap());
        // The newest one is cut off in the middle.
        for file in fs::read_dir(dir.path().join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if name.contains("-5") {
                let len = fs::metadata(&file).unwrap().len();
                fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(len / 2).unwrap();
            }
        }
        let mut again = Checkpointer::new(&options).unwrap();
        let restored = again.restore(&runner, &graph).unwrap().unwrap();
        assert_eq!((restored.step, again.restored_step()), (3, Some(3)));
        assert!(!restored.warnings.is_empty(), "the damaged one is reported");
    }

    #[test]
    fn checkpoints_are_saved_when_they_are_due_after_a_flush() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        let (runner, graph) = model(Model::Embeddings);
        let mut checkpointer = Checkpointer::new(&options).unwrap();
        checkpointer.restore(&runner, &graph).unwrap();
        let mut flushed = Vec::new();
        for step in 1..=5 {
            checkpointer.save(&runner, &graph, step, || flushed.push(step)).unwrap();
            // A checkpoint that is due while another one is written is left out.
            checkpointer.saver.as_ref().unwrap().lock().unwrap().wait().unwrap();
        }
        checkpointer.save_last(&runner, &graph, 5).unwrap();
        assert_eq!(flushed, [2, 4]);
        let saved = steps(&options);
        assert_eq!(saved.last(), Some(&5), "{saved:?}");
    }

    #[test]
    fn a_restored_end_is_not_saved_again() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        let (runner, graph) = model(Model::Embeddings);
        Checkpointer::new(&options).unwrap().save_last(&runner, &graph, 5).unwrap();
        let mut again = Checkpointer::new(&options).unwrap();
        again.restore(&runner, &graph).unwrap();
        fs::remove_dir_all(dir.path().join("checkpoints")).unwrap();
        again.save_last(&runner, &graph, 5).unwrap();
        assert!(!dir.path().join("checkpoints").exists());
    }

    #[test]
    fn another_models_checkpoints_have_none_of_the_variables() {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        let (runner, graph) = model(Model::Embeddings);
        Checkpointer::new(&options).unwrap().save_last(&runner, &graph, 5).unwrap();
        let (runner, graph) = model(Model::Mlp);
        let restored = Checkpointer::new(&options).unwrap().restore(&runner, &graph).unwrap().unwrap();
        assert!(!restored.missing.is_empty(), "they keep what they were initialised with");
    }

    #[test]
    fn without_a_folder_nothing_is_saved() {
        let (runner, graph) = model(Model::Embeddings);
        let mut checkpointer = Checkpointer::new(&TrainOptions::default()).unwrap();
        assert!(checkpointer.restore(&runner, &graph).unwrap().is_none());
        checkpointer.save(&runner, &graph, 1, || panic!("nothing is due")).unwrap();
        checkpointer.save_last(&runner, &graph, 1).unwrap();
    }
}
