//! Executes plans: the ready nodes of a step, on the caller's thread and the pool's workers (white paper section 3.1).
//!
//! A node runs when everything it waits for has arrived; its completion delivers values into the input slots of its
//! consumers and counts their pending arrivals down. There are two ways to run a step. *Alone*: the caller's thread runs
//! all nodes with plain counts, for plans without enough width or when no worker is free; ops still split their work over
//! the pool. *Shared*: atomic counts, each worker with its own stack, expensive ready nodes where others can take them.
//! Both are `worker::Worker`, compiled per case.
//!
//! An asynchronous kernel holds no thread while it waits: its end goes to the step's `parking`, which wakes the
//! caller and the workers, and whoever comes first delivers its outputs.
//!
//! What plans without (`flat`) and with control flow (`flow`: frames, iterations, dead values) differ in is the worker's
//! `Mode`.
//!
//! Errors: the first wins; nodes that run finish, no further ones begin, kernels that wait are cancelled and awaited, and
//! the step's state is cleaned.

mod drive;
mod error;
mod flat;
mod flow;
mod parking;
mod sharder;
mod slots;
mod state;
mod step;
mod worker;
mod workers;

pub(crate) use drive::run;
pub use error::ExecuteError;
pub(crate) use state::Executable;
pub use step::{CancelToken, OnStall};
pub(crate) use step::{Environment, Limits};
