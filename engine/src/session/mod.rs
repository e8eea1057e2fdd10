//! Sessions: the client's way to run parts of a graph (white paper sections 2 and 4.2).
//!
//! A [`Session`] compiles each (feeds, fetches, targets) signature it is asked for once, and keeps the plans and the
//! nodes' kernels. Steps run in their callers' threads, several at once where several threads call; they meet in the
//! device's containers of variables, which outlive the session and are shared by the sessions of one [`Device`](engine_core::device::Device).
//! [`Session::step`] puts a step together from handles or names, [`Session::run`] takes names alone, and [`Session::prepare`]
//! resolves them once for a step that is run often.

mod callable;
mod calls;
mod client;
mod error;
mod options;
mod parts;
mod step;
mod steps;

pub use crate::compile::{Numerics, SharedKernels, Signature};
pub use crate::run::executor::{CancelToken, OnStall};
pub use callable::Callable;
pub use client::{Inspection, Session};
pub use error::{ExtendError, RunError};
pub use options::{Meeting, RunOptions, SessionOptions};
pub use parts::{Division, PartError, TaskSession};
pub use step::{Port, Step};
pub use steps::Steps;
