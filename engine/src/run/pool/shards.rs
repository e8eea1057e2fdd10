//! Shards: one op's work cut into ranges that the op's thread and idle workers take one by one.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::threads::{Job, Pool, Scope};
use engine_core::trace;

/// How the events of an op's shards are labelled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShardTag {
    /// The execution and the step the op belongs to.
    pub scope: Scope,
    /// Its call site, in category `shard`.
    pub site: events::SiteId,
    /// Its node.
    pub node: events::NodeId,
}

struct Shards<'a> {
    body: &'a (dyn Fn(Range<usize>) + Sync),
    total: usize,
    n_shards: usize,
    next: AtomicUsize,
    tag: ShardTag,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Shards<'_> {
    /// Takes and runs shards until none is left.
    fn run(&self) {
        loop {
            let shard = self.next.fetch_add(1, Ordering::Relaxed);
            if shard >= self.n_shards {
                return;
            }
            let range = self.total * shard / self.n_shards..self.total * (shard + 1) / self.n_shards;
            let tag = &self.tag;
            let slice = trace::ShardSlice::begin(tag.scope.traced_step, tag.site, tag.node, shard, range.len());
            // The op's thread gets the panic; what the op half wrote is dropped with its outputs.
            let result = catch_unwind(AssertUnwindSafe(|| (self.body)(range)));
            slice.end();
            if let Err(payload) = result {
                self.next.store(self.n_shards, Ordering::Relaxed);
                self.panic.lock().get_or_insert(payload);
            }
        }
    }
}

impl Job for Shards<'_> {
    fn has_work(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.n_shards
    }

    fn help(&self, _worker: usize) {
        self.run();
    }

    fn scope(&self) -> Scope {
        self.tag.scope
    }
}

/// Runs `body` over `0..total` in up to `n_shards` ranges of about equal length, on this thread and on idle
/// workers, and returns when all are done. `posted` is called when workers can join.
///
/// # Panics
/// With the panic of `body`, after every shard that had begun is done.
pub(crate) fn run_shards(
    pool: &Pool,
    tag: ShardTag,
    total: usize,
    n_shards: usize,
    posted: impl FnOnce(),
    body: &(dyn Fn(Range<usize>) + Sync),
) {
    let n_shards = n_shards.min(total);
    if n_shards <= 1 {
        if total > 0 {
            body(0..total);
        }
        return;
    }
    let tag = ShardTag { scope: Scope { is_shards: true, ..tag.scope }, ..tag };
    let shards = Shards { body, total, n_shards, next: AtomicUsize::new(0), tag, panic: Mutex::new(None) };
    pool.share(&shards, || {
        for _ in 1..n_shards.min(pool.n_threads()) {
            pool.notify();
        }
        posted();
        shards.run();
    });
    if let Some(payload) = shards.panic.into_inner() {
        resume_unwind(payload);
    }
}
