//! What a memory snapshot contains.

use std::ops::Range;

use crate::{
    stacks::{StackId, Stacks},
    texts::TextId,
    warnings::Warnings,
};

/// A memory snapshot, as `torch.cuda.memory._dump_snapshot` writes it.
#[derive(Debug)]
pub struct Snapshot {
    /// Devices by number. One that the snapshot does not mention is empty.
    pub devices: Vec<Device>,
    /// The settings of the allocator: names and values as text, in the file's order.
    pub settings: Vec<(String, String)>,
    /// What the program marked (`record_function` and the like), in the file's order.
    pub annotations: Vec<Annotation>,
    /// The stacks and texts that segments, blocks and events refer to.
    pub stacks: Stacks,
    /// What was passed over.
    pub warnings: Warnings,
}

/// The memory of a device.
#[derive(Debug, Default)]
pub struct Device {
    /// The segments in the file's order, which is that of their addresses.
    pub segments: Vec<Segment>,
    /// The blocks of all segments.
    pub blocks: Vec<Block>,
    /// The latest events in the order in which they happened. The allocator records a limited number: earlier ones are
    /// lost, and without `_record_memory_history` there are none.
    pub events: Vec<Event>,
}

/// A piece of memory that the allocator has from CUDA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its first byte.
    pub address: u64,
    /// In bytes.
    pub size: u64,
    /// The stream whose allocations it serves; 0 is the default stream.
    pub stream: u64,
    /// Whether it serves allocations above 1 MiB.
    pub is_large: bool,
    /// Whether it grows in place (`expandable_segments`).
    pub is_expandable: bool,
    /// The memory pool that it belongs to; (0, 0) is the default pool.
    pub pool: (i64, i64),
    /// Where it was allocated.
    pub stack: StackId,
    /// Which of the device's blocks it consists of, in the order of their addresses.
    pub blocks: Range<usize>,
}

/// A part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub address: u64,
    /// In bytes.
    pub size: u64,
    /// The bytes that the program asked for, before rounding. Without meaning in a free block.
    pub requested: u64,
    /// Whether it is in use.
    pub state: BlockState,
    /// Where it was allocated.
    pub stack: StackId,
}

/// Whether a block is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// By a tensor.
    Allocated,
    /// It was freed, but another stream may still use it.
    PendingFree,
    /// It can be allocated.
    Free,
}

/// Something that the allocator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since 1970; 0 where the file has no times.
    pub time_us: i64,
    /// The first byte of the allocation or segment. For [`Action::OutOfMemory`] it has another meaning: the bytes that CUDA
    /// reported as free.
    pub address: u64,
    /// In bytes. For [`Action::OutOfMemory`] what was asked for.
    pub size: u64,
    /// The stream; 0 is the default stream.
    pub stream: u64,
    /// Where the program was.
    pub stack: StackId,
    /// What the program had set by `_set_memory_metadata`, or the annotation itself; mostly empty.
    pub metadata: TextId,
    /// What was done.
    pub action: Action,
}

/// What the allocator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It allocated a block.
    Alloc,
    /// The program freed it.
    FreeRequested,
    /// It can be allocated again: no stream uses it any more.
    FreeCompleted,
    /// It got a segment from CUDA.
    SegmentAlloc,
    /// It returned a segment to CUDA.
    SegmentFree,
    /// It let an expandable segment grow by the range.
    SegmentMap,
    /// It let an expandable segment shrink by the range.
    SegmentUnmap,
    /// A snapshot was taken.
    Snapshot,
    /// An allocation failed.
    OutOfMemory,
    /// The program attached metadata to an allocation.
    Annotate,
    /// An action that this version does not know.
    Other,
}

/// What the program marked: the beginning or end of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotation {
    /// The number of the device.
    pub device: u32,
    /// Microseconds since 1970.
    pub time_us: i64,
    /// What is marked.
    pub name: TextId,
    /// "START" or "END".
    pub stage: TextId,
}
