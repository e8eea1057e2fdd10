//! The dependency index: the order of events that dependencies require, as the trace recorded them.
//!
//! | edge | recorded as |
//! |---|---|
//! | order of a thread or stream | pieces of one line |
//! | op -> op that it made ready | `correlation` of `op` slices |
//! | op -> its shards | the node, and time |
//! | launch -> device work | equal `correlation` in the process |
//! | event recorded -> stream or host that waits | synchronisation records ([`super::sync_record`]) |
//! | work of a stream -> stream that waits for it | without such records: when the work ended ([`Deps::presumably_awaited`]) |
//! | `backward` -> autograd's thread, and back | [`super::autograd`] |
//! | queue -> op that waited for it without a thread | `parked` slices |
//! | `_Send` -> `_Recv` | [`Store::transfers`] |
//! | anything -> anything, messages between processes too | [`Store::flows`] |
//! | a step -> the next on its thread | steps ([`super::step_index`]) |
//! | waker -> thread that slept | `correlation` of `off cpu` slices |
//! | peers of a collective | [`super::collectives`] |
//!
//! Building the index sorts the edges, and finds the slice that each slice names ([`super::correlation`]). Each query
//! is then a look-up in a hash table or a binary search.

use super::activity::{Activities, Activity};
use super::autograd::Autograd;
use super::collectives::Exchanges;
use super::correlation::{Correlations, Executions, PiecesByCorrelation};
use super::incoming::IncomingFlow;
use super::lines::{LineKind, Lines, PieceId};
use super::step_index::StepIndex;
use super::sync_record::{SyncRecord, SyncTarget};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{Category, NO_NODE, SliceRef, TrackKind, Transfer};
use trace_store::Store;

/// `arg` of a `parked` slice (docs/formats/trace-format.md): a wait for a value from another device, for a row of a
/// queue, for room in a queue.
const AWAITS_VALUE: u64 = 0;
pub(crate) const AWAITS_QUEUE_ROW: u64 = 1;
pub(crate) const AWAITS_QUEUE_ROOM: u64 = 2;

/// The longest time that a stream takes to resume after what it waited for on another stream: an H200 takes 1 to 10 µs.
const MAX_RESUME_NS: i64 = 20_000;

/// (row of the process, correlation).
type ProcessCorrelation = (u32, u32);

/// The dependency index of a range.
pub(crate) struct Deps<'a> {
    pub store: &'a Store,
    pub lines: Lines,
    pub exchanges: Exchanges,
    ops: Executions,
    launches: PiecesByCorrelation,
    correlations: Correlations,
    /// (node of the receiver, time at which its consumers were unblocked, row of the transfer), sorted.
    receivers: Vec<(u32, i64, u32)>,
    flows: Vec<IncomingFlow>,
    /// Waits that held no thread, sorted by node and end. Waits for a value are left out, since transfers explain them.
    parked: Vec<SliceRef>,
    /// The waits of `parked` by process, sorted by end.
    parked_in: FxHashMap<u32, Vec<SliceRef>>,
    /// Waits of the host, by process and correlation of the call.
    host_waits: FxHashMap<ProcessCorrelation, SyncRecord>,
    /// Waits of streams, by process and waiting stream, sorted by time.
    stream_waits: FxHashMap<(u32, u64), Vec<SyncRecord>>,
    /// The line of each thread, by the kernel's thread id.
    threads: FxHashMap<u32, u32>,
    /// The lines of devices by process.
    devices: FxHashMap<u32, Vec<u32>>,
    pub autograd: Autograd,
    pub steps: StepIndex,
}

impl<'a> Deps<'a> {
    /// Indexes the slices, transfers and flows that touch the range.
    pub(crate) fn new(store: &'a Store, range: &Range<i64>) -> Deps<'a> {
        let activities = Activities::new(store);
        let lines = Lines::new(store, &activities, range);
        let exchanges = Exchanges::new(store, &lines);
        let (ops, launches, works) = index_pieces(store, &lines);
        let correlations = Correlations::new(&lines, &activities, &ops, &launches, &works);
        let mut deps = Deps {
            store,
            exchanges,
            ops,
            launches,
            correlations,
            receivers: Vec::new(),
            flows: Vec::new(),
            parked: Vec::new(),
            parked_in: FxHashMap::default(),
            host_waits: FxHashMap::default(),
            stream_waits: FxHashMap::default(),
            threads: FxHashMap::default(),
            devices: FxHashMap::default(),
            autograd: Autograd::default(),
            steps: StepIndex::default(),
            lines,
        };
        deps.index_lines();
        deps.index_syncs();
        deps.index_transfers(range);
        deps.index_flows(range);
        deps.index_parked(range);
        deps.autograd = Autograd::new(store, &deps.lines, &deps.flows);
        deps.steps = StepIndex::new(store, &deps.lines, &deps.parked, &deps.ops);
        deps
    }

    fn index_parked(&mut self, range: &Range<i64>) {
        for track in self.store.tracks().iter().filter(|t| t.kind == TrackKind::Async) {
            let slices = track.lanes.iter().flat_map(|lane| lane.slices(range));
            let waits = slices.filter(|s| self.store.category(s) == Category::Parked && s.arg != AWAITS_VALUE);
            self.parked_in.entry(track.process).or_default().extend(waits);
        }
        self.parked = self.parked_in.values().flatten().copied().collect();
        self.parked.sort_unstable_by_key(|wait| (wait.node, wait.end));
        self.parked_in.values_mut().for_each(|waits| waits.sort_unstable_by_key(|wait| wait.end));
    }

    /// The wait of a node that began at or after `from` and ended last, by `time`.
    pub(crate) fn parked(&self, node: u32, from: i64, time: i64) -> Option<&SliceRef> {
        let after = self.parked.partition_point(|wait| (wait.node, wait.end) <= (node, time));
        let wait = self.parked.get(after.checked_sub(1)?)?;
        (wait.node == node && wait.start >= from).then_some(wait)
    }

    /// The waits of a process that held no thread, by end.
    pub(crate) fn parked_in(&self, process: u32) -> &[SliceRef] {
        self.parked_in.get(&process).map_or(&[], Vec::as_slice)
    }

    fn index_lines(&mut self) {
        for (row, line) in (0..).zip(&self.lines.lines).filter(|(_, l)| !l.pieces.is_empty()) {
            if line.kind == LineKind::Device {
                self.devices.entry(line.process).or_default().push(row);
            }
            if let Some(tid) = self.store.track(line.track).map(|t| t.tid).filter(|tid| *tid != 0) {
                self.threads.entry(tid).or_insert(row);
            }
        }
    }

    fn index_syncs(&mut self) {
        for record in self.lines.syncs.iter().filter_map(|s| SyncRecord::from_slice(self.store, s)) {
            match record.waiter {
                Some(stream) => self.stream_waits.entry((record.process, stream)).or_default().push(record),
                None => _ = self.host_waits.insert((record.process, record.correlation), record),
            }
        }
        self.stream_waits.values_mut().for_each(|waits| waits.sort_unstable_by_key(|w| w.time));
    }

    fn index_transfers(&mut self, range: &Range<i64>) {
        for (row, transfer) in self.store.transfers().iter().enumerate() {
            if let Some(time) = transfer.unblocked.or(transfer.arrived)
                && transfer.receiver != NO_NODE
                && range.contains(&time)
            {
                self.receivers.push((transfer.receiver, time, row as u32));
            }
        }
        self.receivers.sort_unstable();
    }

    fn index_flows(&mut self, range: &Range<i64>) {
        for flow in self.store.flows() {
            let category = self.store.sites().get(flow.site as usize).map(|s| s.category);
            if let (Some(from), Some(to)) = (flow.from, flow.to)
                && !category.is_some_and(Category::is_transfer)
                && from.time <= to.time
                // Within a line the order of the pieces gives the same edge.
                && from.track != to.track
                && range.contains(&to.time)
            {
                let (line, from_line) = (to.track.0, from.track.0);
                self.flows.push(IncomingFlow { line, to: to.time, from_line, from: from.time });
            }
        }
        self.flows.sort_unstable_by_key(|f| (f.line, f.to, f.from));
    }

    /// The piece that the slice of a piece names: the execution that made an op ready, the device work of a call, or
    /// the call that launched device work.
    pub(crate) fn correlated(&self, piece_id: PieceId) -> Option<PieceId> {
        self.correlations.find(&self.lines, piece_id)
    }

    /// The last execution of a node that had started by `time`.
    pub(crate) fn started_by(&self, node: u32, time: i64) -> Option<PieceId> {
        self.ops.started_by(&self.lines, node, time)
    }

    /// The transfer whose value unblocked the consumers of a `_Recv` last, by `time`.
    pub(crate) fn received_by(&self, receiver: u32, time: i64) -> Option<(i64, &'a Transfer)> {
        let after = self.receivers.partition_point(|(node, unblocked, _)| (*node, *unblocked) <= (receiver, time));
        let (node, unblocked, row) = *self.receivers.get(after.checked_sub(1)?)?;
        Some((unblocked, self.store.transfers().get(row as usize)?)).filter(|_| node == receiver)
    }

    /// The flow that began last, of those from other lines that began after `after` and arrived on a line by `by`.
    pub(crate) fn last_begun_flow(&self, line: u32, after: i64, by: i64) -> Option<&IncomingFlow> {
        let end = self.flows.partition_point(|f| (f.line, f.to) <= (line, by));
        let arrived = self.flows[..end].iter().rev().take_while(|f| f.line == line && f.to > after);
        arrived.filter(|f| f.from > after).max_by_key(|f| (f.from, f.to))
    }

    /// The flow from another line that arrived on a line last, by `time`.
    pub(crate) fn last_arrived_flow(&self, line: u32, time: i64) -> Option<&IncomingFlow> {
        let end = self.flows.partition_point(|f| (f.line, f.to) <= (line, time));
        self.flows[..end].last().filter(|f| f.line == line)
    }

    /// The line of the thread with this thread id of the kernel.
    pub(crate) fn thread(&self, tid: u32) -> Option<u32> {
        self.threads.get(&tid).copied()
    }

    /// The piece that ended last, of the device work that a host's call waited for.
    pub(crate) fn awaited_by_host(&self, piece_id: PieceId) -> Option<PieceId> {
        let line = self.lines.line(piece_id.line);
        let (call, piece) = (self.lines.slice(piece_id), self.lines.piece(piece_id));
        let record = self.host_waits.get(&(line.process, call.correlation));
        match record.map_or(SyncTarget::Device, |r| r.target) {
            SyncTarget::Event { stream, record: Some(record) } => {
                self.last_work_before_event(line.process, stream, record)
            }
            target => {
                let stream = match target {
                    SyncTarget::Stream(stream) => Some(stream),
                    SyncTarget::Event { stream, .. } => stream,
                    SyncTarget::Device => None,
                };
                let ended = self.device_lines(line.process, stream).filter_map(|l| self.ended_on(l, piece.end));
                ended.max_by_key(|piece_id| self.lines.piece(*piece_id).end)
            }
        }
        .filter(|work| self.lines.piece(*work).end <= piece.end)
    }

    /// The piece that ended last, of the other streams' work that a stream waited for between the launches of its
    /// previous piece and of this piece.
    pub(crate) fn awaited_by_stream(&self, piece_id: PieceId, launched: i64) -> Option<PieceId> {
        let line = self.lines.line(piece_id.line);
        let stream = self.store.track(line.track)?.stream?;
        let waits = self.stream_waits.get(&(line.process, stream))?;
        let before = piece_id.piece.checked_sub(1).and_then(|piece| self.correlated(PieceId { piece, ..piece_id }));
        let since = before.map_or(i64::MIN, |launch| self.lines.piece(launch).start);
        let after = waits.partition_point(|w| w.time <= launched);
        let waits = waits[..after].iter().rev().take_while(|w| w.time > since);
        let works = waits.filter_map(|w| match w.target {
            SyncTarget::Event { stream, record: Some(record) } => {
                self.last_work_before_event(line.process, stream, record)
            }
            _ => None,
        });
        works.filter(|w| w.line != piece_id.line).max_by_key(|work| self.lines.piece(*work).end)
    }

    /// The piece of another stream of the same device that a stream presumably waited for before it began this piece
    /// of work, where the trace has no record of such waits: the work was launched at `launched` (or, if that is not
    /// recorded, at any time), nothing was before it on its stream from `idle_since` on, and it began as soon as that
    /// piece ended, which had been launched earlier.
    pub(crate) fn presumably_awaited(&self, piece_id: PieceId, idle_since: i64, launched: i64) -> Option<PieceId> {
        let line = self.lines.line(piece_id.line);
        let track = self.store.track(line.track)?;
        let stream = track.stream?;
        let (start, free) = (self.lines.piece(piece_id).start, idle_since.max(launched));
        if free == i64::MIN || start - free <= MAX_RESUME_NS || self.stream_waits.contains_key(&(line.process, stream))
        {
            return None;
        }
        let others = self.device_lines(line.process, None).filter(|other| {
            let other = self.store.track(self.lines.line(*other).track);
            other.is_some_and(|other| other.device == track.device && other.stream != track.stream)
        });
        let ended = others.filter_map(|other| self.ended_on(other, start)).filter(|work| {
            let end = self.lines.piece(*work).end;
            let launch = self.correlated(*work);
            end > free
                && start - end <= MAX_RESUME_NS
                && launch.is_none_or(|launch| self.lines.piece(launch).start < launched)
        });
        ended.max_by_key(|work| self.lines.piece(*work).end)
    }

    /// The last work that was launched on a stream, or on any stream, before the call that recorded an event. `record`
    /// is the correlation of this call.
    fn last_work_before_event(&self, process: u32, stream: Option<u64>, record: u32) -> Option<PieceId> {
        let call = self.lines.piece(self.launches.find(process, record)?).start;
        let works = self.device_lines(process, stream).filter_map(|line| {
            // A stream runs work in the order of the launches.
            let pieces = &self.lines.line(line).pieces;
            let launched_before = |piece: usize| {
                let launch = self.correlated(PieceId { line, piece: piece as u32 });
                launch.is_none_or(|l| self.lines.piece(l).start < call)
            };
            let (mut low, mut high) = (0, pieces.len());
            while low < high {
                let middle = (low + high) / 2;
                if launched_before(middle) { low = middle + 1 } else { high = middle }
            }
            Some(PieceId { line, piece: low.checked_sub(1)? as u32 })
        });
        works.max_by_key(|piece_id| self.lines.piece(*piece_id).end)
    }

    fn device_lines(&self, process: u32, stream: Option<u64>) -> impl Iterator<Item = u32> + '_ {
        let lines = self.devices.get(&process).map_or(&[][..], Vec::as_slice).iter().copied();
        lines.filter(move |line| {
            let track = self.store.track(self.lines.line(*line).track);
            stream.is_none() || track.is_some_and(|t| t.stream == stream)
        })
    }

    /// The last piece of a line that ended by `time`.
    fn ended_on(&self, line: u32, time: i64) -> Option<PieceId> {
        let after = self.lines.line(line).pieces.partition_point(|p| p.end <= time);
        Some(PieceId { line, piece: (after as u32).checked_sub(1)? })
    }
}

/// Returns the executions by node, and calls and device work by correlation, each as the first piece of its slice.
fn index_pieces(store: &Store, lines: &Lines) -> (Executions, PiecesByCorrelation, PiecesByCorrelation) {
    let (mut ops, mut launches, mut works) =
        (Vec::new(), PiecesByCorrelation::default(), PiecesByCorrelation::default());
    for (line_idx, line) in (0..).zip(&lines.lines) {
        let mut last_slice = u32::MAX;
        for (piece, p) in (0..).zip(&line.pieces) {
            let slice = line.slice(p);
            if p.slice == last_slice || p.start != slice.start {
                continue;
            }
            last_slice = p.slice;
            let piece_id = PieceId { line: line_idx, piece };
            match p.activity {
                Activity::Op => ops.push((slice.node, slice.end, piece_id)),
                Activity::Launch | Activity::Memory | Activity::Call => {
                    launches.add(line.process, slice.correlation, piece_id);
                }
                activity if activity.is_device() => works.add(line.process, slice.correlation, piece_id),
                _ => {}
            }
        }
    }
    launches.sort();
    works.sort();
    (Executions::new(store.nodes().len(), &ops), launches, works)
}
