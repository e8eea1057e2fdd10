//! Synchronous training with backup workers: each tower has a thread that computes gradients, and the training step
//! takes the gradients that come first.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use engine::session::CancelToken;

/// Announces each training step to the towers, which compute gradients only for the step under way.
#[derive(Default)]
pub(crate) struct StepSignal {
    state: Mutex<State>,
    changed: Condvar,
    /// Cancels the training step, which waits for gradients, when a tower has failed.
    step_cancel: CancelToken,
    /// Cancels the towers' steps when training is over.
    tower_cancel: CancelToken,
}

#[derive(Default)]
struct State {
    step: u64,
    is_over: bool,
    /// The error of the first tower that failed.
    error: Option<anyhow::Error>,
}

impl StepSignal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a training step; returns the token that cancels it.
    pub fn begin(&self, step: u64) -> &CancelToken {
        self.state().step = step;
        self.changed.notify_all();
        &self.step_cancel
    }

    /// Waits for a training step after `last`; `None` when training is over.
    fn wait_after(&self, last: u64) -> Option<u64> {
        let waiting = |state: &mut State| !state.is_over && state.step <= last;
        let state = self.changed.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner);
        (!state.is_over).then_some(state.step)
    }

    /// Records that a tower failed, and cancels the training step. A failure after the end is ignored: it is the
    /// cancellation.
    fn fail(&self, error: anyhow::Error) {
        let mut state = self.state();
        if !state.is_over {
            state.error.get_or_insert(error);
            drop(state);
            self.step_cancel.cancel();
        }
    }

    /// Ends training; returns the error of the first tower that failed.
    fn end(&self) -> Option<anyhow::Error> {
        let mut state = self.state();
        state.is_over = true;
        let error = state.error.take();
        drop(state);
        self.changed.notify_all();
        self.tower_cancel.cancel();
        error
    }
}

/// Trains with `train`, while a thread for each tower calls `push(tower, step, cancel)`. A tower that is late skips to
/// the current step.
pub(crate) fn train_with_towers<T>(
    n_towers: usize,
    push: impl Fn(usize, u64, &CancelToken) -> anyhow::Result<()> + Sync,
    train: impl FnOnce(&StepSignal) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let signal = StepSignal::default();
    let run_tower = |tower: usize| {
        let mut last = 0;
        while let Some(step) = signal.wait_after(last) {
            last = step;
            if let Err(error) = push(tower, step, &signal.tower_cancel) {
                return signal.fail(error.context(format!("the gradients of step {step}")));
            }
        }
    };
    let run_tower = &run_tower;
    std::thread::scope(|scope| {
        let mut started = Ok(());
        for tower in 0..n_towers {
            let thread = std::thread::Builder::new().name(format!("tower{tower}"));
            let spawned = thread.spawn_scoped(scope, move || run_tower(tower));
            started = started.and(spawned.map(drop).context("starting a tower's thread"));
        }
        let trained = started.and_then(|()| train(&signal));
        // A tower's error comes first: it is the reason why the training step was cancelled.
        signal.end().map_or(trained, Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::mpsc;

    #[test]
    fn every_tower_pushes_for_the_step_under_way() {
        let (sender, pushes) = mpsc::channel();
        let push = |tower: usize, step: u64, _: &CancelToken| Ok(sender.send((tower, step))?);
        let pushed = train_with_towers(2, push, |signal| {
            let mut pushed = BTreeSet::new();
            for step in 1..=3 {
                signal.begin(step);
                pushed.extend([pushes.recv()?, pushes.recv()?]);
            }
            Ok(pushed)
        });
        let expected: BTreeSet<_> = (1..=3).flat_map(|step| [(0, step), (1, step)]).collect();
        assert_eq!(pushed.unwrap(), expected);
    }

    #[test]
    fn a_towers_failure_cancels_the_step_and_is_the_reason() {
        let push = |_: usize, _: u64, _: &CancelToken| Err(anyhow::anyhow!("no memory"));
        let trained: anyhow::Result<()> = train_with_towers(1, push, |signal| {
            let cancel = signal.begin(5);
            while !cancel.is_cancelled() {
                std::thread::yield_now();
            }
            anyhow::bail!("cancelled")
        });
        assert_eq!(format!("{:#}", trained.unwrap_err()), "the gradients of step 5: no memory");
    }

    #[test]
    fn the_end_of_training_cancels_towers() {
        let (sender, begins) = mpsc::channel();
        let push = |_: usize, _: u64, cancel: &CancelToken| {
            sender.send(())?;
            while !cancel.is_cancelled() {
                std::thread::yield_now();
            }
            anyhow::bail!("cancelled")
        };
        let trained = train_with_towers(1, push, |signal| {
            signal.begin(1);
            begins.recv()?;
            Ok(7)
        });
        assert_eq!(trained.unwrap(), 7, "a tower that ends late is no failure");
    }
}
