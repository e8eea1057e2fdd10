//! Dumps that PyTorch writes: memory snapshots of its CUDA allocator, and what its flight recorder has of collectives.
//!
//! - [`read_snapshot`] reads a [`Snapshot`]. From a [`Device`] of it come its [`lifetimes()`], and from these the bytes over
//!   time ([`live_bytes`]), the [`peak`], sums [`by_stack()`], what failed ([`out_of_memory()`]), and the bytes by place over
//!   time at any zoom ([`History`]); [`usage()`] is about
//!   fragmentation, [`difference()`] compares two snapshots.
//! - [`read_recording`] reads the [`Recording`] of a rank; [`groups()`] combines those of all ranks: which collective is how
//!   far on which rank, what does not fit, and who has not joined the one that hangs.
//!
//! - [`read_dump`] reads either, by the file's content.
//!
//! The files are pickles, or JSON. Nothing in them is ever executed: a pickle that names a function or a class is refused.
//! Reading order: `value` and `tree` (data), `pickle`, `open`, `snapshot/model`, `snapshot/read`,
//! `recording/model`, `recording/collectives`.

mod document;
mod dump;
mod error;
mod fields;
mod json;
mod open;
mod pickle;
mod recording;
mod shapes;
mod snapshot;
mod stack_reader;
mod stacks;
mod texts;
mod tree;
mod value;
mod warnings;

pub use dump::{Dump, read_dump};
pub use error::Error;
pub use recording::{
    Cell, Collective, Entry, Group, GroupConfig, GroupStatus, Mismatch, MismatchKind, OpenTransfer, Recording, Stall,
    State, Tensors, WaitingRank, groups, rank_of_file, read_recording,
};
pub use snapshot::{
    Action, Allocation, Annotation, Block, BlockState, Device, Event, FrameBytes, Grouping, History, HistoryColumn,
    HistoryGroup, HistoryGroups, LivePoint, OutOfMemory, Peak, PoolUsage, Segment, Snapshot, StackBytes, StackChange,
    Usage, by_stack, by_user_frame, difference, lifetimes, live_at, live_blocks, live_bytes, out_of_memory, peak,
    read_snapshot, usage, usage_by_pool,
};
pub use stacks::{Frame, FrameId, StackId, Stacks};
pub use texts::TextId;
pub use warnings::Warnings;
