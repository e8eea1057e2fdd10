//! The input of a training run: its batches, and where they begin when a run continues.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use engine::tasks::NextBatch;
use engine::{RunOptions, Session, Tensor};

use crate::backend::{Backend, StepRunner};
use crate::feeder::Feeder;
use crate::named_graph::NamedGraph;

/// The batches of a run.
pub(crate) struct Input(Mutex<NextBatch>);

impl Input {
    /// The batches of a task.
    pub fn new(next_batch: NextBatch) -> Input {
        Input(Mutex::new(next_batch))
    }

    /// The next `n` batches, one after the other.
    pub fn batches(&self, n: usize) -> Vec<Tensor> {
        let mut next_batch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..n).flat_map(|_| next_batch()).collect()
    }

    /// Continues after so many steps: skips what they took, or has the tasks of a cluster skip it.
    pub fn continue_after(&mut self, step: Option<u64>, runner: &StepRunner, graph: &NamedGraph) -> anyhow::Result<()> {
        match (&runner.backend, step) {
            (Backend::Local(session), Some(step)) => self.skip(step, session, graph),
            (Backend::Local(_), None) => Ok(()),
            (Backend::Cluster(_), step) => send_positions(step.unwrap_or(0), runner, graph),
        }
    }

    /// Drops the batches that the steps before took, and those that wait in the queue.
    fn skip(&mut self, step: u64, session: &Session, graph: &NamedGraph) -> anyhow::Result<()> {
        let size = |name: &str| session.run(&[], &[name], &[])?[0].item::<i32>().map_err(anyhow::Error::from);
        let queued = graph.enqueues.first().map(|queue| size(graph.name(queue.size)));
        let queued = queued.transpose().context("reading the size of the input queue")?.unwrap_or(0);
        let towers = graph.feeds.len() / graph.train_ops.len();
        let used = step * towers as u64 + u64::try_from(queued).unwrap_or(0);
        let next_batch = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        (0..used).for_each(|_| drop(next_batch()));
        Ok(())
    }

    /// Starts to fill the queue, where there is one in this process.
    pub fn start_feeder(&mut self, backend: &Backend, graph: &NamedGraph) -> anyhow::Result<Option<Feeder>> {
        // The tasks of a cluster fill their queues themselves.
        let (Some(queue), Backend::Local(session)) = (graph.enqueues.first(), backend) else { return Ok(None) };
        let unused: NextBatch = Box::new(Vec::new);
        let next_batch = std::mem::replace(self.0.get_mut().unwrap_or_else(PoisonError::into_inner), unused);
        Feeder::start(Arc::clone(session), graph.names(), queue, |_, _| Ok(Some(next_batch))).map(Some)
    }
}

/// Sends each task where its input begins.
fn send_positions(step: u64, runner: &StepRunner, graph: &NamedGraph) -> anyhow::Result<()> {
    if graph.saving.is_none() {
        return Ok(());
    }
    let n = graph.train_ops.len() as u64;
    let position = |tower: usize| Tensor::scalar(batches_taken(step, n, tower as u64) as i64);
    let positions = graph.positions.iter().enumerate();
    let feeds: Vec<(&str, Tensor)> = positions.map(|(tower, p)| (graph.name(p.feed), position(tower))).collect();
    let send: Vec<&str> = graph.positions.iter().map(|position| graph.name(position.send)).collect();
    let options = RunOptions { label: "input", ..RunOptions::default() };
    runner.run_step(&options, &feeds, &[], &send).context("sending the tasks where their input begins")?;
    Ok(())
}

/// The number of batches that a tower took in `step` steps, which follows from their number: asynchronous towers share the steps.
fn batches_taken(step: u64, n_train_ops: u64, tower: u64) -> u64 {
    step / n_train_ops + u64::from(tower < step % n_train_ops)
}

/// A string tensor with a path.
pub(crate) fn path_tensor(path: &Path) -> Tensor {
    Tensor::string(path.to_string_lossy().into_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Batches of one number each: 0, 1, 2 ...
    pub(crate) fn numbers() -> NextBatch {
        let mut next = 0i32;
        Box::new(move || {
            next += 1;
            vec![Tensor::scalar(next - 1)]
        })
    }

    #[test]
    fn batches_come_in_order() {
        let input = Input::new(numbers());
        let mut taken = input.batches(2);
        taken.extend(input.batches(1));
        let taken: Vec<i32> = taken.iter().map(|batch| batch.item::<i32>().unwrap()).collect();
        assert_eq!(taken, [0, 1, 2]);
    }

    #[test]
    fn towers_that_share_the_steps_took_all_batches() {
        for (step, n) in [(0, 1), (7, 1), (7, 3), (9, 3), (2, 5)] {
            let taken: u64 = (0..n).map(|tower| batches_taken(step, n, tower)).sum();
            assert_eq!(taken, step, "of {n}");
        }
        assert_eq!([0, 1, 2].map(|tower| batches_taken(7, 3, tower)), [3, 2, 2]);
        assert_eq!(batches_taken(7, 1, 3), 7, "synchronous towers take part in each step");
    }
}
