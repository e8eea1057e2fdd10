//! A step prepared for repeated runs.

use std::sync::Arc;

use super::{RunError, RunOptions, Session};
use crate::plan::Plan;
use crate::tensor::Tensor;

/// A compiled step of a session: running it looks nothing up.
pub struct Callable<'s> {
    session: &'s Session,
    plan: Arc<Plan>,
}

impl<'s> Callable<'s> {
    pub(super) fn new(session: &'s Session, plan: Arc<Plan>) -> Callable<'s> {
        Callable { session, plan }
    }

    /// Runs the step with the feeds' values in the order in which they were prepared.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self, feeds: &[Tensor]) -> Result<Vec<Tensor>, RunError> {
        self.run_step(&RunOptions::default(), feeds)
    }

    /// As [`Callable::run`], with options.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_step(&self, options: &RunOptions<'_>, feeds: &[Tensor]) -> Result<Vec<Tensor>, RunError> {
        self.session.execute(&self.plan, options, feeds, None)
    }

    /// How many nodes one run executes.
    pub fn n_nodes(&self) -> usize {
        self.plan.n_nodes() as usize
    }
}
