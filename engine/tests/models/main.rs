//! The models: they learn, and the examples run.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "tests, which print their counts")]

mod examples;
mod mlp;
mod training;
