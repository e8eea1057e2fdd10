//! The logs of all tools but Weights & Biases. Those in `fixtures` were written by the tools' own programs, and the JSON
//! file next to each has what their own readers give (tests/scripts/tracker_fixtures.py).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "logs/common.rs"]
mod common;
#[path = "logs/damage.rs"]
mod damage;
#[path = "logs/databases.rs"]
mod databases;
#[path = "logs/find.rs"]
mod find;
#[path = "logs/growth.rs"]
mod growth;
#[path = "logs/read.rs"]
mod read;
