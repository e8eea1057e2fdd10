//! Splits the work of one kernel over the pool.

use std::ops::Range;

use super::step::Step;
use crate::run::pool::{Job, ShardTag, run_shards};
use engine_core::kernel::Sharder;

/// Splits the work of the node that runs.
pub(super) struct OpSharder<'a> {
    pub step: &'a Step<'a>,
    pub node: u32,
    pub worker: usize,
}

/// Shorter shards are not worth handing to another thread.
const MIN_SHARD_NS: u64 = 10_000;
/// Shards per thread: more even out threads of unequal speed, fewer keep kernels in their best shapes.
const SHARDS_PER_THREAD: usize = 2;

impl Sharder for OpSharder<'_> {
    fn n_workers(&self) -> usize {
        self.step.env.pool.n_free() + 1
    }

    fn parallel_for(&self, total: usize, cost_per_unit_ns: u64, body: &(dyn Fn(Range<usize>) + Sync)) {
        let n_workers = self.n_workers();
        let worth = (total as u64).saturating_mul(cost_per_unit_ns) / MIN_SHARD_NS;
        let n_shards = if n_workers == 1 { 1 } else { (worth as usize).min(n_workers * SHARDS_PER_THREAD) };
        if n_shards <= 1 {
            if total > 0 {
                body(0..total);
            }
            return;
        }
        let tag = ShardTag {
            scope: Job::scope(self.step),
            site: self.step.plan.nodes[self.node as usize].shard_site,
            node: events::NodeId::new(self.step.plan.infos[self.node as usize].event_id),
        };
        let caller_may_help = || {
            if self.worker != 0 {
                self.step.caller().notify();
            }
        };
        run_shards(self.step.env.pool, tag, total, n_shards, caller_may_help, body);
    }
}
