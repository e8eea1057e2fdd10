//! Connections as the processes of a job make them: between hosts and within one.

#![allow(clippy::unwrap_used, reason = "a test")]

mod channels;
mod peers;
mod security;
