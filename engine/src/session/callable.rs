//! A step prepared for repeated runs.

use std::sync::Arc;

use super::client::Session;
use super::error::RunError;
use super::options::RunOptions;
use crate::compile::{CompileError, Signature};
use crate::run::executor::Executable;
use engine_core::tensor::Tensor;

/// A compiled step of a session: running it looks nothing up.
pub struct Callable<'s> {
    session: &'s Session,
    executable: Arc<Executable>,
}

impl Callable<'_> {
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
        self.session.execute(&self.executable, options, feeds, None)
    }

    /// How many nodes one run executes.
    pub fn n_nodes(&self) -> usize {
        self.executable.plan.n_nodes() as usize
    }
}

impl Session {
    /// Compiles a step for repeated runs: feeds are then given in this order, without names.
    ///
    /// # Errors
    /// A name is unknown, or what is asked cannot be planned.
    pub fn prepare(&self, feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Result<Callable<'_>, RunError> {
        Ok(self.callable(self.signature(feeds, fetches, targets)?)?)
    }

    pub(super) fn callable(&self, signature: Signature) -> Result<Callable<'_>, CompileError> {
        Ok(Callable { session: self, executable: self.plan(signature)? })
    }
}
