//! What recording needs of the operating system apart from mapped files: ids, fork and exit handlers.
//!
//! Recording itself is for Unix: elsewhere [`CAN_RECORD`] is false, [`crate::start`] refuses, and the rest of the crate (emitting,
//! which then does nothing, and all that readers use) works as it does on Unix.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::{CAN_RECORD, at_exit, host_name, on_fork, thread_id};
#[cfg(unix)]
pub(crate) use unix::{CAN_RECORD, at_exit, host_name, on_fork, thread_id};
