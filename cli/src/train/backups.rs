//! Synchronous training with backup workers: each tower has a thread that gives gradients, and the training step takes those that
//! come first.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use engine::session::CancelToken;
use engine::{RunOptions, Tensor};

use super::names::PushNames;
use super::progress::Shared;
use super::steps::SCALARS_EVERY;
use super::towers::{Pauses, Telling};
use super::trainer::Trainer;

/// Which training step is under way: towers begin only for that one.
#[derive(Default)]
pub(super) struct Pace {
    state: Mutex<State>,
    changed: Condvar,
    /// Ends the training step, which waits for gradients, where a tower failed.
    step: CancelToken,
    /// Ends what towers still compute when training is over.
    towers: CancelToken,
}

#[derive(Default)]
struct State {
    step: u64,
    is_over: bool,
    /// Of the first tower that failed.
    error: Option<anyhow::Error>,
}

impl Pace {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A training step begins; gives what ends it early.
    pub fn begin(&self, step: u64) -> &CancelToken {
        self.state().step = step;
        self.changed.notify_all();
        &self.step
    }

    /// The training step that is under way, when it is no more the one after `done` steps; `None` when training is over.
    fn next(&self, last: u64) -> Option<u64> {
        let waiting = |state: &mut State| !state.is_over && state.step <= last;
        let state = self.changed.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner);
        (!state.is_over).then_some(state.step)
    }

    /// A tower failed. After the end it was told to.
    fn fail(&self, error: anyhow::Error) {
        let mut state = self.state();
        if !state.is_over {
            state.error.get_or_insert(error);
            drop(state);
            self.step.cancel();
        }
    }

    /// Training is over; gives why a tower failed.
    fn end(&self) -> Option<anyhow::Error> {
        let mut state = self.state();
        state.is_over = true;
        let error = state.error.take();
        drop(state);
        self.changed.notify_all();
        self.towers.cancel();
        error
    }
}

impl Trainer {
    /// All steps; gives how many were done and the last loss.
    pub(super) fn with_backups(&self, names: &PushNames, shared: &Shared) -> anyhow::Result<(u64, f32)> {
        let done = Tensor::scalar(self.restored.unwrap_or(0) as i64);
        let options = RunOptions { label: "begin", ..RunOptions::default() };
        let begun = self.runner.run_step(&options, &[(&names.done, done)], &[], &[&names.begin]);
        begun.context("preparing the accumulators")?;
        let pace = Pace::default();
        std::thread::scope(|scope| {
            let mut result = Ok(());
            for tower in 0..names.ops.len() {
                let pace = &pace;
                let body = move || self.tower(names, tower, pace);
                let started = std::thread::Builder::new().name(format!("tower{tower}")).spawn_scoped(scope, body);
                result = result.and(started.map(drop).context("starting a tower's thread"));
            }
            let trained = result.and_then(|()| self.one_after_the_other(shared, Some(&pace)));
            // A tower's failure is why the step ended that waited for it.
            match pace.end() {
                Some(error) => Err(error),
                None => trained,
            }
        })
    }

    /// Gives a tower's gradients for each training step that it is in time for.
    fn tower(&self, names: &PushNames, tower: usize, pace: &Pace) {
        let (mut last, mut pauses) = (0, Pauses::default());
        while let Some(step) = pace.next(last) {
            last = step;
            let (scalars, histograms) = pauses.end(step, SCALARS_EVERY, self.histograms_every());
            let telling = self.towers.telling(tower..tower + 1, step, scalars, histograms);
            if let Err(error) = self.push(names, tower, step, pace, telling) {
                return pace.fail(error.context(format!("the gradients of step {step}")));
            }
        }
    }

    fn push(
        &self,
        names: &PushNames,
        tower: usize,
        step: u64,
        pace: &Pace,
        telling: Telling<'_>,
    ) -> anyhow::Result<()> {
        let options = RunOptions {
            label: "gradients",
            summary_step: Some(step as i64),
            cancel: Some(&pace.towers),
            ..RunOptions::default()
        };
        // The training step computes no tower: pictures are the first one's.
        let images = self.names.images.as_deref().filter(|_| tower == 0 && self.is_for_histograms(step));
        let Telling { mut feeds, mut targets } = telling;
        feeds.push((names.done.as_str(), Tensor::scalar(step as i64 - 1)));
        targets.push(&names.ops[tower]);
        let fetched = self.runner.run_step(&options, &feeds, images.as_slice(), &targets)?;
        fetched.iter().try_for_each(|summary| self.write(summary, step))
    }
}
