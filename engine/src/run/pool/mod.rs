//! Worker threads, shared by what runs between ops (a step's ready nodes) and within an op (its shards).
//!
//! A thread that has work to share posts a [`Job`] on the pool's board for as long as it works on it itself
//! ([`Pool::share`]); idle workers join posted jobs, the newest first, so that an op that already started gets its
//! shards done before further ops begin. The poster never waits for a job that nobody began, only for helpers that are
//! inside: nesting cannot deadlock. Callers of a session run in their own threads and are counted, so
//! that callers and workers together keep to the pool's number of threads; a worker stands back while
//! callers alone fill it.

mod shards;
mod sleep;
mod sync;
mod threads;

pub(crate) use shards::{ShardTag, run_shards};
pub(crate) use sleep::{Sleep, Ticket};
pub use threads::Pool;
pub(crate) use threads::{Job, Running, Scope, Waker};
