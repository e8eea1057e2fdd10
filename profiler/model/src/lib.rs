//! The data model of traces, which recording, storing, converting and analysing share. This crate stores no traces.
//!
//! 1. `event`, `slice`, `columns`, `track`, `rows`, `names`, `site`, `stack`, `thread_state`, `warning`: the rows of a
//!    trace.
//! 2. `batch`: events on their way from a source to a store; `args`: arguments of slices.
//! 3. [`layout`]: the files of a trace folder; [`chunks`]: the files of a collector; [`clocks`]: other machines'
//!    clocks.
//! 4. [`lod`]: level of detail; `cold` and `pages`: slices that are not in memory.
//! 5. [`scheduling`]: derives slices from the kernel's scheduler events, recorded or imported; [`radix`]: sorting by
//!    time.

mod args;
mod batch;
pub mod chunks;
pub mod clocks;
mod cold;
mod columns;
mod event;
pub mod layout;
pub mod lod;
mod names;
mod pages;
pub mod radix;
mod rows;
pub mod scheduling;
mod site;
mod slice;
mod stack;
mod thread_state;
mod track;
mod warning;

pub use args::{Args, ArgsReader, NO_ARGS};
pub use batch::{Batch, Name, TrackEvents};
pub use cold::{ColdLane, SliceCursor};
pub use columns::{SliceColumns, SliceDetails};
pub use event::{Event, EventKind, NO_NODE, NO_STEP};
pub use names::{Category, ClockOffset, FIRST_SYNTHETIC_PID, NodeInfo, Process, SiteInfo, has_word};
pub use pages::{PageLoader, PagerStats};
pub use rows::{Counter, CounterKey, Flow, FlowEnd, MemoryEvent, Point, RingPosition, Step, Transfer};
pub use site::Site;
pub use slice::{SliceHeader, SliceId, SliceRef};
pub use stack::{Frame, Function, NO_STACK, Stack};
pub use thread_state::ThreadState;
pub use track::{InstantEvent, MAX_LANES, OpenSlice, TrackId, TrackKey, TrackKind};
pub use warning::{Warning, WarningKind};
