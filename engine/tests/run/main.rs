//! Steps: sessions, devices, control flow, kernels that wait, collectives, state.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "tests, which print their counts")]

mod async_kernels;
mod collectives;
#[path = "../common/mod.rs"]
mod common;
mod control_flow;
mod devices;
mod executor;
mod session;
mod state;
