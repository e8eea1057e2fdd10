//! Memory snapshots: what the CUDA allocator of PyTorch has, and what it did.

mod by_stack;
mod difference;
mod history;
mod lifetimes;
mod live;
mod model;
mod out_of_memory;
mod read;
mod usage;

pub use by_stack::{FrameBytes, StackBytes, by_stack, by_user_frame, live_blocks};
pub use difference::{StackChange, difference};
pub use history::{Grouping, History, HistoryColumn, HistoryGroup, HistoryGroups};
pub use lifetimes::{Allocation, lifetimes};
pub use live::{LivePoint, Peak, live_at, live_bytes, peak};
pub use model::{Action, Annotation, Block, BlockState, Device, Event, Segment, Snapshot};
pub use out_of_memory::{OutOfMemory, out_of_memory};
pub use read::read_snapshot;
pub(crate) use read::snapshot_of;
pub use usage::{PoolUsage, Usage, usage, usage_by_pool};
