//! Events of a running program: clock, ids, the event record, per-thread rings in files, the tracing layer.
//!
//! A program that links this crate can be recorded. [`start`] records into a folder that the program chooses,
//! [`start_from_env`] into the folder of `stepscope record` (or of the user's `STEPSCOPE_TRACE=DIR`). Every thread then
//! writes its events to a bounded ring in a file of the trace folder, and another process drains the rings while the
//! program runs. A `kill -9` of the program loses no emitted event, because the rings are shared file mappings. While
//! recording is off, an emitting call costs one relaxed load.
//!
//! ```
//! let dir = tempfile::tempdir()?;
//! let session = events::start(dir.path(), events::Options::default())?;
//! {
//!     let _slice = events::slice(events::site!("app", "load"));   // emitted when it goes out of scope
//!     events::counter(events::site!("app", "rows"), 17.0);
//! }
//! drop(session);                                                  // stop: names and clock are complete on disk
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading order: [`clock`], [`record`], [`names`], [`mod@ring`], [`control`], [`meta`], [`emit`], [`session`],
//! [`track`], [`layer`]. Files are little-endian, and so must be the machine.
//!
//! # Systems
//!
//! A process records on Unix: recording needs shared file mappings and `CLOCK_MONOTONIC_RAW`. Elsewhere the crate has
//! the same items, so that programs and readers of traces compile without conditions: [`start`] returns
//! [`StartError::Unsupported`], emitting does nothing, and what reads files ([`meta`], [`ring::peek`], [`record`],
//! [`clock::TicksToNs`]) works. The collector's side ([`control::Collector`], [`ring::RingReader`]) compiles there, but
//! only Unix is tested.
//!
//! # Fork
//!
//! A forked child shares the parent's ring mappings but not its ring positions, so recording is switched off
//! in the child, whichever thread forks and whatever the others do. [`start_after_fork`] lets it go on with rings of its
//! own, [`start`] into another folder; a child that `exec`s a program may record as itself.

#[cfg(not(target_endian = "little"))]
compile_error!("events needs a little-endian machine: its files are mapped as they are");

pub mod clock;
pub mod control;
pub mod emit;
mod fork;
pub mod layer;
mod local;
mod lock;
pub mod meta;
pub mod names;
pub mod record;
pub mod ring;
mod rings;
pub mod session;
mod system;
pub mod track;

pub use clock::{Anchor, TicksToNs, now};
pub use emit::{
    SliceGuard, alloc, counter, counter_for_node, emit_close, emit_close_with_args, emit_event_at, emit_slice, flow_in,
    flow_out, free, instant, is_on, log, log_value, next_flow_id, open, prepare_thread, slice, slice_for_node,
};
pub use names::{NodeId, SiteId, node, site};
pub use record::{Event, Kind, Record};
pub use rings::Options;
pub use session::{
    Session, StartError, StepMark, begin_step, current_trace_dir, dump, end_step, start, start_after_fork,
    start_from_env,
};
pub use track::Track;

/// The examples of the package's page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
