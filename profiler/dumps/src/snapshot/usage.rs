//! How well the allocator uses what it has from CUDA.

use std::collections::BTreeMap;

use super::model::{BlockState, Device, Segment};

/// How the memory of a segment, or of several, is used. In bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// What the allocator has from CUDA.
    pub reserved: u64,
    /// Blocks in use by tensors.
    pub allocated: u64,
    /// What the program asked for in them: the rest of `allocated` is lost by rounding.
    pub requested: u64,
    /// Blocks that were freed, but that another stream may still use.
    pub pending_free: u64,
    /// Free blocks of segments that are also in use: they cannot be returned to CUDA.
    pub inactive_split: u64,
    /// The largest free block: a larger allocation needs memory from CUDA.
    pub largest_free: u64,
    /// How many segments.
    pub n_segments: u64,
}

impl Usage {
    /// What is free: in no block that is in use.
    pub fn free(&self) -> u64 {
        self.reserved.saturating_sub(self.allocated).saturating_sub(self.pending_free)
    }

    fn add(&mut self, other: Self) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.reserved, other.reserved);
        sum(&mut self.allocated, other.allocated);
        sum(&mut self.requested, other.requested);
        sum(&mut self.pending_free, other.pending_free);
        sum(&mut self.inactive_split, other.inactive_split);
        sum(&mut self.n_segments, other.n_segments);
        self.largest_free = self.largest_free.max(other.largest_free);
    }
}

/// How the memory of a segment of the device is used.
pub fn usage(device: &Device, segment: &Segment) -> Usage {
    let mut usage = Usage { reserved: segment.size, n_segments: 1, ..Usage::default() };
    let blocks = device.blocks.get(segment.blocks.clone()).unwrap_or_default();
    for block in blocks {
        let (sum, requested) = match block.state {
            BlockState::Allocated => (&mut usage.allocated, block.requested),
            BlockState::PendingFree => (&mut usage.pending_free, 0),
            BlockState::Free => {
                usage.largest_free = usage.largest_free.max(block.size);
                if blocks.len() == 1 {
                    continue;
                }
                (&mut usage.inactive_split, 0)
            }
        };
        *sum = sum.saturating_add(block.size);
        usage.requested = usage.requested.saturating_add(requested);
    }
    usage
}

/// How the memory of a pool is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUsage {
    /// The pool; (0, 0) is the default pool.
    pub pool: (i64, i64),
    /// The stream that it serves.
    pub stream: u64,
    /// Whether these are the segments for allocations above 1 MiB.
    pub is_large: bool,
    /// The sums over its segments.
    pub usage: Usage,
}

/// How the memory of a device is used, by what can serve the same allocations: pool, stream and size class.
pub fn usage_by_pool(device: &Device) -> Vec<PoolUsage> {
    let mut pools: BTreeMap<((i64, i64), u64, bool), Usage> = BTreeMap::new();
    for segment in &device.segments {
        pools.entry((segment.pool, segment.stream, segment.is_large)).or_default().add(usage(device, segment));
    }
    pools.into_iter().map(|((pool, stream, is_large), usage)| PoolUsage { pool, stream, is_large, usage }).collect()
}
