//! `--cluster mpi` in a program that was built without MPI.

use std::path::Path;

use distributed::{Cluster, TaskName, Worker};
use net::{Address, Security};

use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};

/// Whether this is what `--cluster` says.
pub(super) fn is_meant(cluster: &Path) -> bool {
    cluster.as_os_str() == "mpi"
}

fn missing() -> Failure {
    Failure::wrong_use(
        "this program was built without MPI: cargo build --release --features mpi (needs mpicc and libclang)",
    )
}

pub(super) fn train(_: &args::Train, _: Verbosity) -> Outcome {
    Err(missing())
}

/// A worker's place among MPI's processes: there is none.
pub(super) enum Place {}

impl Place {
    pub fn join() -> Result<Place, Failure> {
        Err(missing())
    }

    pub fn task(&self) -> Result<(String, TaskName, Address, Option<Security>), Failure> {
        match *self {}
    }

    pub fn cluster(&self, _: &Worker) -> Result<Cluster, Failure> {
        match *self {}
    }

    pub fn at_end(&self, _: impl Fn() + Send + 'static) -> anyhow::Result<()> {
        match *self {}
    }
}
