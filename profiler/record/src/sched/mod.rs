//! Records Linux scheduling: [`tracefs`] reads the kernel's ring, [`scheduling`](trace_model::scheduling) derives
//! slices from its events, and [`live`] writes them to a recording. Without tracefs, [`sample`](crate::sample) has the
//! same events from perf events.

mod live;
#[cfg(test)]
mod tests;
pub(crate) mod tracefs;
