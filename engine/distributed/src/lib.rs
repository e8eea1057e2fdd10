//! The distributed implementation (white paper section 3, figure 3): a client asks a master, the master divides the graph among
//! the tasks of a cluster, their workers run the parts.
//!
//! The map: the tasks and where they are ([`cluster`]); what they say to each other ([`protocol`], [`wire`]); a task's side
//! ([`worker`]), the other one ([`master`]), streams next to their messages ([`side`]), and how clients in other processes reach it
//! ([`grpc`]). Everything below a task (placement, partition, plans, executor, rendezvous) is the engine's, the same code as for the
//! devices of one process.
//!
//! One step:
//!
//! 1. A [`master::Session`] looks the signature up. A new one is divided (`engine::Session::divide`) and each part registered with its
//!    worker, once.
//! 2. The master sends one message per worker, with the feeds. A worker runs its part; a `_Send` to another task pushes its
//!    value there ([`worker`]'s rendezvous), where it meets the `_Recv`, whichever comes first. Dead values go as such.
//! 3. The master takes the fetches, or the first error that does not only follow from another one, and then ends the step
//!    everywhere.

mod arrows;
pub mod cluster;
mod environment;
mod error;
pub mod grpc;
pub mod master;
#[cfg(feature = "mpi")]
mod member;
mod protocol;
mod runners;
pub mod side;
mod wire;
pub mod worker;

pub use cluster::{Cluster, ClusterError, TaskName};
pub use error::DistributedError;
pub use grpc::{ClientSession, Server};
pub use master::{Master, MasterOptions, Session};
#[cfg(feature = "mpi")]
pub use member::Member;
pub use side::{StreamTaker, open_stream};
pub use worker::{ResetWatcher, Worker, WorkerOptions};
