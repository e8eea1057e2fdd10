//! Connections as the processes of a job make them: between hosts, within one, and by MPI.

#![allow(clippy::unwrap_used, reason = "a test")]

mod channels;
#[cfg(feature = "mpi")]
mod mpi;
mod peers;
mod security;
