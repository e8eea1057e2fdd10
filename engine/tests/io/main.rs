//! What goes into and out of a computation: checkpoints, queues, files.

#![allow(clippy::unwrap_used, reason = "a test")]

mod checkpoints;
mod fixtures;
mod pipelines;
mod queues;
mod saver;
