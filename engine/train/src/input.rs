//! The input of a training run: its batches, and the batch with which a continued run begins.

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

    /// The tensors of the next `n` batches, in order.
    pub fn batches(&self, n: usize) -> Vec<Tensor> {
        let mut next_batch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..n).flat_map(|_| next_batch()).collect()
    }

    /// Skips the batches that the steps up to `step` took. On a cluster the tasks skip their own batches; there `None`
    /// makes them begin with the first batch.
    pub fn continue_after(&mut self, step: Option<u64>, runner: &StepRunner, graph: &NamedGraph) -> anyhow::Result<()> {
        match (&runner.backend, step) {
            (Backend::Local(session), Some(step)) => self.skip_batches(step, session, graph),
            (Backend::Local(_), None) => Ok(()),
            (Backend::Cluster(_), step) => send_positions(step.unwrap_or(0), runner, graph),
        }
    }

    /// Skips the batches that the steps up to `step` took, and those that the restored queue holds.
    fn skip_batches(&mut self, step: u64, session: &Session, graph: &NamedGraph) -> anyhow::Result<()> {
        let read_size = |name: &str| session.run(&[], &[name], &[])?[0].item::<i32>().map_err(anyhow::Error::from);
        let n_queued = graph.enqueues.first().map(|queue| read_size(graph.name(queue.size)));
        let n_queued = n_queued.transpose().context("reading the size of the input queue")?.unwrap_or(0);
        let batches_per_step = graph.feeds.len() / graph.train_ops.len();
        let n_used = step * batches_per_step as u64 + u64::try_from(n_queued).unwrap_or(0);
        let next_batch = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        (0..n_used).for_each(|_| drop(next_batch()));
        Ok(())
    }

    /// Starts to fill the input queue; `None` where this process has none. The feeder takes all further batches.
    pub fn start_feeder(&mut self, backend: &Backend, graph: &NamedGraph) -> anyhow::Result<Option<Feeder>> {
        // The tasks of a cluster fill their queues themselves.
        let (Some(queue), Backend::Local(session)) = (graph.enqueues.first(), backend) else { return Ok(None) };
        let no_batches: NextBatch = Box::new(Vec::new);
        let next_batch = std::mem::replace(self.0.get_mut().unwrap_or_else(PoisonError::into_inner), no_batches);
        Feeder::start(Arc::clone(session), graph.names(), queue, |_, _| Ok(Some(next_batch))).map(Some)
    }
}

/// Sends each task of a cluster the number of batches that its tower took in `step` steps.
fn send_positions(step: u64, runner: &StepRunner, graph: &NamedGraph) -> anyhow::Result<()> {
    // Only graphs over a cluster's devices have nodes that save, and positions to send.
    if graph.saving.is_none() {
        return Ok(());
    }
    let n_train_ops = graph.train_ops.len() as u64;
    let position_tensor = |tower: usize| Tensor::scalar(n_batches_taken(step, n_train_ops, tower as u64) as i64);
    let positions = graph.positions.iter().enumerate();
    let feeds: Vec<(&str, Tensor)> =
        positions.map(|(tower, position)| (graph.name(position.feed), position_tensor(tower))).collect();
    let targets: Vec<&str> = graph.positions.iter().map(|position| graph.name(position.send)).collect();
    let options = RunOptions { label: "input", ..RunOptions::default() };
    runner.run_step(&options, &feeds, &[], &targets).context("sending the tasks where their input begins")?;
    Ok(())
}

/// The number of batches that a tower took in `step` steps. Synchronous towers share one train op and take a batch each
/// in every step; asynchronous towers have a train op each and share the steps evenly.
fn n_batches_taken(step: u64, n_train_ops: u64, tower: u64) -> u64 {
    step / n_train_ops + u64::from(tower < step % n_train_ops)
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
            let taken: u64 = (0..n).map(|tower| n_batches_taken(step, n, tower)).sum();
            assert_eq!(taken, step, "of {n}");
        }
        assert_eq!([0, 1, 2].map(|tower| n_batches_taken(7, 3, tower)), [3, 2, 2]);
        assert_eq!(n_batches_taken(7, 1, 3), 7, "synchronous towers take part in each step");
    }
}
