//! What goes into and out of a computation: checkpoints, queues, files.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test that prints its counts")]

mod checkpoints;
mod fixtures;
mod pipelines;
mod queues;
mod saver;
mod summary_files;
