//! What the engine emits as events: slices of steps, ops and shards, idle workers, memory.
//!
//! Whether a step is traced is decided once, when it begins ([`StepTrace`]); the executor's untraced loop does not
//! know of events at all. The meaning of `correlation` and `arg` per category is docs/formats/trace-format.md's.

use std::cell::Cell;

use events::{Kind, NodeId, SiteId, SliceGuard, site};

thread_local! {
    /// The event node whose kernel runs on this thread in a traced step: it is charged for memory.
    static CURRENT: Cell<NodeId> = const { Cell::new(NodeId::NONE) };
    /// When that node became ready.
    static READY_AT: Cell<u64> = const { Cell::new(0) };
}

/// Notes that `bytes` were taken from the allocator with this `alloc` site, which now has `in_use` bytes handed out; the
/// node that has them, for [`free`].
#[inline]
pub(crate) fn alloc(site: SiteId, bytes: usize, in_use: usize) -> NodeId {
    if !events::is_on() {
        return NodeId::NONE;
    }
    let node = CURRENT.get();
    events::alloc(site, node, bytes as u64, in_use as u64);
    node
}

/// Notes that `node`'s `bytes` went back to the allocator with this `alloc` site, which now has `in_use` bytes handed out.
#[inline]
pub fn free(site: SiteId, node: NodeId, bytes: usize, in_use: usize) {
    if events::is_on() {
        events::free(site, node, bytes as u64, in_use as u64);
    }
}

/// The slice of a step on its caller's thread, and with it the decision to trace the step.
pub struct StepTrace {
    slice: Option<SliceGuard>,
    begin: u64,
    /// The step in events, never 0 where it is traced.
    step: u32,
    summary_step: i64,
    mark: events::StepMark,
}

/// A step that is traced, or not.
#[derive(Debug, Clone, Copy)]
pub struct StepTag {
    /// The step's number in events; 0 where it is not traced.
    pub step: u32,
    /// When it began, in ticks.
    pub begin: u64,
}

impl StepTrace {
    /// Begins the step `step_id`, labelled so. `summary_step` is its step on the summaries' axis.
    pub fn begin(step_id: u64, label: &str, summary_step: i64) -> StepTrace {
        // Before `is_on`: recording may go on with this step.
        let mark = events::begin_step();
        let begin = events::clock::now();
        let slice = events::is_on().then(|| events::open(begin, site("step", label), NodeId::NONE));
        StepTrace { slice, begin, step: (step_id as u32).max(1), summary_step, mark }
    }

    /// What those who run nodes of the step need to know.
    pub fn tag(&self) -> StepTag {
        StepTag { step: if self.slice.is_some() { self.step } else { 0 }, begin: self.begin }
    }

    /// Ends the step's slice.
    pub fn end(self) {
        if let Some(slice) = self.slice {
            let end = events::clock::now();
            CURRENT.set(NodeId::NONE);
            events::emit_close(slice, end, self.step, self.summary_step as u64);
        }
        events::end_step(self.mark);
    }
}

/// Who made a node ready and when: the event node in the high half, ticks / 16 in the low half.
#[derive(Clone, Copy)]
pub struct Readiness(u64);

impl Readiness {
    /// Nothing is known of it.
    pub const UNKNOWN: Readiness = Readiness(0);

    /// Made ready by event node `by`, at `ticks`.
    #[inline]
    pub fn new(by: u32, ticks: u64) -> Readiness {
        Readiness(u64::from(by) << 32 | u64::from((ticks >> 4) as u32))
    }

    /// Ready from the step's begin, by no node.
    #[inline]
    pub fn at_begin(ticks: u64) -> Readiness {
        Readiness::new(NodeId::NONE.get(), ticks)
    }

    /// What [`Readiness::bits`] gave.
    #[inline]
    pub fn from_bits(bits: u64) -> Readiness {
        Readiness(bits)
    }

    /// As one number, for atomics: the inverse of [`Readiness::from_bits`].
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    fn by(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Ticks from then to `begin`, saturating, to 16 ticks.
    #[inline]
    fn wait(self, begin: u64) -> u32 {
        let sixteenths = ((begin >> 4) as u32).wrapping_sub(self.0 as u32) as i32;
        (sixteenths.max(0) as u32).saturating_mul(16)
    }
}

/// The slice of one kernel execution.
pub enum OpSlice {
    /// Not traced.
    Off,
    /// Emitted when it ends.
    Short {
        /// When it began, in ticks.
        begin: u64,
        /// Where it is from: the op's site.
        site: SiteId,
        /// Its event node.
        node: NodeId,
        /// The event node that made it ready.
        correlation: u32,
        /// The step in the high half, the ticks that it waited in the low half.
        arg: u64,
    },
    /// Visible while it runs.
    Long {
        /// The open slice.
        slice: SliceGuard,
        /// As in `Short`.
        correlation: u32,
        /// As in `Short`.
        arg: u64,
    },
}

impl OpSlice {
    /// Begins the slice of a node in `step` (0: not traced) at `begin`, in ticks. A long one is visible while it runs.
    #[inline]
    pub fn begin(step: u32, begin: u64, site: SiteId, node: u32, readiness: Readiness, is_long: bool) -> OpSlice {
        if step == 0 {
            return OpSlice::Off;
        }
        let node = NodeId::new(node);
        CURRENT.set(node);
        let wait = readiness.wait(begin);
        READY_AT.set(begin.saturating_sub(u64::from(wait)));
        let (correlation, arg) = (readiness.by(), u64::from(step) << 32 | u64::from(wait));
        if is_long {
            OpSlice::Long { slice: events::open(begin, site, node), correlation, arg }
        } else {
            OpSlice::Short { begin, site, node, correlation, arg }
        }
    }

    /// Ends it, at `end` in ticks.
    #[inline]
    pub fn end(self, end: u64) {
        match self {
            OpSlice::Off => {}
            OpSlice::Short { begin, site, node, correlation, arg } => {
                events::emit_slice(begin, end, site, node, correlation, arg);
            }
            OpSlice::Long { slice, correlation, arg } => events::emit_close(slice, end, correlation, arg),
        }
    }
}

/// When the op that runs on this thread became ready, in a traced step. Noted for ops that ask.
fn ready_at() -> u64 {
    READY_AT.get()
}

/// The call site of a transfer's stamp. Those of values that go to another process are joined in the whole trace.
macro_rules! stamp {
    ($is_remote:expr, $name:literal) => {
        if $is_remote { site!("remote transfer", $name) } else { site!("transfer", $name) }
    };
}

/// What a `_Send` reports of a transfer: when its value was enqueued, when it began to send, when the value left.
pub struct TransferTrace {
    node: NodeId,
    is_remote: bool,
    /// When the send began; 0 where it is not traced.
    begin: u64,
}

impl TransferTrace {
    /// The `_Send` with this event node begins; `is_remote`: to another task.
    pub fn sending(node: u32, is_remote: bool) -> TransferTrace {
        let is_traced = events::is_on() && CURRENT.get() == NodeId::new(node);
        TransferTrace { node: NodeId::new(node), is_remote, begin: if is_traced { events::clock::now() } else { 0 } }
    }

    /// Whether the transfer is traced.
    pub fn is_on(&self) -> bool {
        self.begin != 0
    }

    /// The value leaves, as `bytes` bytes.
    pub fn sent(&self, transfer: u32, step: u32, bytes: usize) {
        if self.is_on() {
            let arg = transfer_arg(step, bytes);
            let point = |kind, at, site| events::emit_event_at(kind, at, site, self.node, transfer, arg);
            point(Kind::Instant, ready_at(), stamp!(self.is_remote, "enqueue"));
            point(Kind::Instant, self.begin, stamp!(self.is_remote, "send"));
            point(Kind::FlowOut, events::clock::now(), stamp!(self.is_remote, "edge"));
        }
    }
}

/// Step and bytes of a transfer.
fn transfer_arg(step: u32, bytes: usize) -> u64 {
    u64::from(step) << 32 | u64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// A transfer whose value is there, but not yet with its consumers.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    node: NodeId,
    transfer: u32,
    arg: u64,
    is_remote: bool,
}

impl Arrival {
    /// The value of a transfer came to the `_Recv` with this event node, `is_remote`: from another task. `None` where it is
    /// not traced.
    pub fn now(node: u32, transfer: u32, step: u32, bytes: usize, is_remote: bool) -> Option<Arrival> {
        if transfer == 0 || !events::is_on() {
            return None;
        }
        let arrival = Arrival { node: NodeId::new(node), transfer, arg: transfer_arg(step, bytes), is_remote };
        arrival.point(Kind::Instant, events::clock::now(), stamp!(is_remote, "arrive"));
        Some(arrival)
    }

    /// The value goes to its consumers.
    pub fn unblocked(self, at: u64) {
        self.point(Kind::FlowIn, at, stamp!(self.is_remote, "edge"));
    }

    fn point(self, kind: Kind, at: u64, site: SiteId) {
        events::emit_event_at(kind, at, site, self.node, self.transfer, self.arg);
    }
}

/// What an asynchronous kernel waits for; the number is the `arg` of its event (docs/formats/trace-format.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Awaits {
    /// A value from another device.
    Value = 0,
    /// A row of a queue that has too few.
    Row = 1,
    /// Room in a queue that is full.
    Room = 2,
    /// What another step holds, or has to bring: a lock, gradients.
    Turn = 3,
}

/// What ends sooner, about 20 us, did not wait: it ended within its own slice.
const MIN_PARKED_TICKS: u64 = 50_000;

/// The wait of an asynchronous kernel, which holds no thread.
#[derive(Debug, Clone, Copy)]
pub struct Parked {
    begin: u64,
    /// 0 while it waits.
    end: u64,
    site: SiteId,
    awaits: Awaits,
}

impl Parked {
    /// A wait begins now; `site` says for whom or what. `None` while nothing is recorded.
    pub fn begin(site: SiteId, awaits: Awaits) -> Option<Parked> {
        events::is_on().then(|| Parked { begin: events::clock::now(), end: 0, site, awaits })
    }

    /// The wait is over.
    pub fn end(&mut self) {
        self.end = events::clock::now();
    }

    /// Emits the wait of the node with this event id, unless it ended at once.
    pub fn emit(self, step: u32, node: u32) {
        if step != 0 && self.end.saturating_sub(self.begin) >= MIN_PARKED_TICKS {
            events::emit_slice(self.begin, self.end, self.site, NodeId::new(node), step, self.awaits as u64);
        }
    }
}

/// The slice of one shard.
pub struct ShardSlice(Option<(SliceGuard, u32, u64)>);

impl ShardSlice {
    /// Begins shard number `shard`, of `rows` units, of the op of `node` in `step` (0 where that is not traced).
    pub fn begin(step: u32, site: SiteId, node: NodeId, shard: usize, rows: usize) -> ShardSlice {
        if step == 0 {
            return ShardSlice(None);
        }
        CURRENT.set(node);
        let arg = u64::from(step) << 32 | rows.min(u32::MAX as usize) as u64;
        let slice = events::open(events::clock::now(), site, node);
        ShardSlice(Some((slice, shard as u32, arg)))
    }

    /// Ends it now.
    pub fn end(self) {
        if let Some((slice, shard, arg)) = self.0 {
            events::emit_close(slice, events::clock::now(), shard, arg);
        }
    }
}

/// Shorter waits are part of taking work.
const MIN_IDLE_TICKS: u64 = 2_000;

/// Ticks at which a thread finds nothing ready in a step; 0 where it is not traced (`step` 0).
pub fn idle_begin(step: u32) -> u64 {
    if step == 0 { 0 } else { events::clock::now() }
}

/// Emits that this thread waited with nothing ready in `step` from `begin` until now, or until `ended` where the step
/// ended before.
pub fn idle_end(step: u32, begin: u64, ended: Option<u64>) {
    if step == 0 {
        return;
    }
    let end = ended.unwrap_or_else(events::clock::now);
    if end.saturating_sub(begin) >= MIN_IDLE_TICKS {
        events::emit_slice(begin, end, site!("wait", "idle"), NodeId::NONE, step, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_keeps_who_and_when() {
        let r = Readiness::from_bits(Readiness::new(7, 0x1_2345_6780).bits());
        assert_eq!((r.by(), r.wait(0x1_2345_67a0), r.wait(0x1_2345_6000)), (7, 0x20, 0));
        // Past the counter's wrap, and beyond what the argument holds.
        assert_eq!(Readiness::new(0, 0xf_ffff_fff0).wait(0x10_0000_0010), 0x20);
        assert_eq!(Readiness::new(0, 0).wait(1 << 34), u32::MAX);
    }
}
