//! `--cluster mpi` in a program that was built without MPI.

use std::path::Path;

use distributed::{Cluster, TaskName, Worker};
use net::{Address, Security};

use crate::error::{Result, TrainError};

/// Whether the value of `--cluster` is `mpi`.
pub fn is_requested(cluster: &Path) -> bool {
    cluster.as_os_str() == "mpi"
}

fn no_mpi_error() -> TrainError {
    TrainError::wrong_use(
        "this program was built without MPI: cargo build --release --features mpi (needs mpicc and libclang)",
    )
}

/// Fails, because this program was built without MPI.
///
/// # Errors
/// Always.
pub fn run_in_cluster<E: From<TrainError>>(
    _: impl FnOnce(&Path) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    Err(no_mpi_error().into())
}

/// A worker's membership in an MPI job. It has no values, because this program was built without MPI.
pub(crate) enum Membership {}

impl Membership {
    pub fn join() -> Result<Membership> {
        Err(no_mpi_error())
    }

    pub fn task(&self) -> Result<(String, TaskName, Address, Option<Security>)> {
        match *self {}
    }

    pub fn cluster(&self, _: &Worker) -> Result<Cluster> {
        match *self {}
    }

    pub fn on_client_end(&self, _: impl Fn() + Send + 'static) -> anyhow::Result<()> {
        match *self {}
    }
}
