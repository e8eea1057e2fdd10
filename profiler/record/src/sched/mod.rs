//! Linux scheduling, recorded: [`tracefs`] reads the kernel's ring, [`live`] puts the slices that
//! [`scheduling`](trace_model::scheduling) makes of it into a recording. Where tracefs is not to be had, [`sample`](crate::sample) hands
//! over the same events from perf events.

mod live;
#[cfg(test)]
mod tests;
pub(crate) mod tracefs;
