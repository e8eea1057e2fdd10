//! What runs steps, wherever the graph is.

use super::client::Session;
use super::error::RunError;
use super::options::RunOptions;
use engine_core::tensor::Tensor;

/// Runs steps of a graph: a [`Session`] of this process, one on the devices of a cluster, or one of a master in another process.
pub trait Steps {
    /// Why a step did not run, or failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Runs a step: computes `fetches` and runs `targets`, given `feeds`. Names are `node` or `node:port`. Gives the
    /// fetches' values in order.
    ///
    /// # Errors
    /// A name is unknown, what is asked cannot be planned, or the step failed.
    fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>, Self::Error>;

    /// As [`Steps::run_step`], with default options.
    ///
    /// # Errors
    /// As [`Steps::run_step`].
    fn run(&self, feeds: &[(&str, Tensor)], fetches: &[&str], targets: &[&str]) -> Result<Vec<Tensor>, Self::Error> {
        self.run_step(&RunOptions::default(), feeds, fetches, targets)
    }
}

impl Steps for Session {
    type Error = RunError;

    fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>, RunError> {
        Session::run_step(self, options, feeds, fetches, targets)
    }
}
