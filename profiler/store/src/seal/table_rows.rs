//! Reads the tables other than `slices`: a store's rows from columns.

use super::columns::TableError;
use super::schema::{
    CounterRow, FlowRow, FrameRow, FunctionRow, InstantRow, MemoryRow, NodeRow, OpenRow, ProcessRow, RingRow, SiteRow,
    StackRow, StepRow, TrackRow, TransferRow, WarningRow,
};
use super::table::{Id, StoredRow};
use crate::store::{Contents, Track};
use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use trace_model::{
    Args, ClockOffset, CounterKey, Flow, FlowEnd, Frame, Function, InstantEvent, MemoryEvent, NO_ARGS, NO_STACK,
    NodeInfo, OpenSlice, Point, Process, RingPosition, SiteInfo, SliceId, Stack, Step, TrackId, TrackKey, TrackKind,
    Transfer, Warning, WarningKind,
};

type Result<T = ()> = std::result::Result<T, TableError>;

fn track_id(id: Id) -> Option<TrackId> {
    id.get().map(TrackId)
}

pub(super) fn processes(batch: &RecordBatch, out: &mut Vec<Process>) -> Result {
    out.extend(ProcessRow::read(batch)?.into_iter().map(|row| {
        let clock = row.clock_offset_ns.zip(row.clock_bound_ns).map(|(offset_ns, bound_ns)| ClockOffset {
            offset_ns,
            drift_ppb: row.clock_drift_ppb.unwrap_or(0.0),
            bound_ns,
        });
        let ProcessRow { pid, host, name, ns_per_tick, .. } = row;
        Process { pid, host: host.into(), name: name.into(), clock, ns_per_tick, is_recorder: true }
    }));
    Ok(())
}

pub(super) fn sites(batch: &RecordBatch, out: &mut Vec<SiteInfo>) -> Result {
    out.extend(SiteRow::read(batch)?.into_iter().map(|row| SiteInfo::new(row.category, row.name)));
    Ok(())
}

pub(super) fn nodes(batch: &RecordBatch, out: &mut Vec<NodeInfo>) -> Result {
    let node = |n: NodeRow<'_>| NodeInfo { name: n.name.into(), op: n.op.into(), device: n.device.into() };
    out.extend(NodeRow::read(batch)?.into_iter().map(node));
    Ok(())
}

pub(super) fn tracks(batch: &RecordBatch, out: &mut Vec<Track>) -> Result {
    for row in TrackRow::read(batch)? {
        if row.track_id as usize != out.len() {
            return Err(TableError::Rows("tracks are not in order"));
        }
        let key = TrackKey { pid: row.pid, ring: row.ring };
        out.push(Track {
            name: row.name.to_owned(),
            tid: row.tid,
            kind: TrackKind::from_name(row.kind).unwrap_or(TrackKind::Thread),
            device: row.device.unwrap_or_default().to_owned(),
            stream: row.stream,
            order: row.position,
            dropped: row.dropped,
            overlapped: row.overlapped,
            clipped: row.clipped,
            ..Track::new(TrackId(row.track_id), key, row.process_id)
        });
    }
    Ok(())
}

pub(super) fn steps(batch: &RecordBatch, out: &mut Vec<Step>) -> Result {
    out.extend(StepRow::read(batch)?.into_iter().map(|row| Step {
        id: row.step,
        summary_step: row.summary_step,
        site: row.site_id,
        start: row.ts_ns,
        end: row.ts_ns.saturating_add(row.dur_ns),
        slice: SliceId { track: row.track_id, lane: row.lane, ordinal: row.ordinal },
    }));
    Ok(())
}

pub(super) fn flows(batch: &RecordBatch, out: &mut Vec<Flow>) -> Result {
    let end = |id: Id, time: Option<i64>| Some(FlowEnd { track: track_id(id)?, time: time? });
    out.extend(FlowRow::read(batch)?.into_iter().map(|row| Flow {
        scope: row.process_id.0,
        site: row.site_id,
        correlation: row.correlation,
        from: end(row.from_track_id, row.from_ts_ns),
        to: end(row.to_track_id, row.to_ts_ns),
    }));
    Ok(())
}

pub(super) fn points(batch: &RecordBatch, out: &mut Vec<Point>) -> Result {
    out.extend(CounterRow::read(batch)?.into_iter().map(|row| {
        let key = CounterKey { process: row.process_id, site: row.site_id, track: track_id(row.track_id) };
        Point { key, time: row.ts_ns, value: row.value }
    }));
    Ok(())
}

/// Rows of arguments by text: texts that repeat (the stack of a sample) are stored once.
#[derive(Default)]
pub(super) struct ArgsRows {
    rows: FxHashMap<Box<str>, u32>,
}

impl ArgsRows {
    fn row(&mut self, text: &str, args: &mut Args) -> u32 {
        if let Some(row) = self.rows.get(text) {
            return *row;
        }
        let row = args.push(text);
        self.rows.insert(text.into(), row);
        row
    }
}

/// Adds instants to their tracks.
pub(super) fn instants(batch: &RecordBatch, contents: &mut Contents, args_rows: &mut ArgsRows) -> Result {
    let n_sites = contents.sites.len();
    for row in InstantRow::read(batch)? {
        let track = contents.tracks.get_mut(row.track_id as usize).filter(|_| (row.site_id as usize) < n_sites);
        let track = track.ok_or(TableError::Rows("a track or site is unknown"))?;
        let args = row.args.map_or(NO_ARGS, |text| args_rows.row(text, &mut contents.args));
        track.instants.push(InstantEvent { time: row.ts_ns, site: row.site_id, arg: row.arg, args });
    }
    Ok(())
}

pub(super) fn open_slices(batch: &RecordBatch, contents: &mut Contents) -> Result {
    let n_sites = contents.sites.len();
    for row in OpenRow::read(batch)? {
        let track = contents.tracks.get_mut(row.track_id as usize).filter(|_| (row.site_id as usize) < n_sites);
        let track = track.ok_or(TableError::Rows("a track or site is unknown"))?;
        track.open.push(OpenSlice { start: row.ts_ns, site: row.site_id, node: row.node_id.0, depth: row.depth as u8 });
    }
    Ok(())
}

pub(super) fn frames(batch: &RecordBatch, out: &mut Vec<Frame>) -> Result {
    let frame = |row: FrameRow<'_>| Frame { module: row.module.into(), address: row.address, functions: Vec::new() };
    out.extend(FrameRow::read(batch)?.into_iter().map(frame));
    Ok(())
}

pub(super) fn functions(batch: &RecordBatch, frames: &mut [Frame]) -> Result {
    for row in FunctionRow::read(batch)? {
        let frame = frames.get_mut(row.frame_id as usize).ok_or(TableError::Rows("a frame is unknown"))?;
        frame.functions.push(Function { name: row.name.into(), file: row.file.into(), line: row.line });
    }
    Ok(())
}

/// Reads call stacks. A stack's caller must have a lower row, so that a walk to the outermost frame ends.
pub(super) fn stacks(batch: &RecordBatch, n_frames: usize, out: &mut Vec<Stack>) -> Result {
    for row in StackRow::read(batch)? {
        let stack = Stack { parent: row.parent_id.0, frame: row.frame_id };
        let is_parent_valid = stack.parent == NO_STACK || (stack.parent as usize) < out.len();
        if !is_parent_valid || stack.frame as usize >= n_frames {
            return Err(TableError::Rows("a caller or frame is unknown"));
        }
        out.push(stack);
    }
    Ok(())
}

pub(super) fn memory(batch: &RecordBatch, out: &mut Vec<MemoryEvent>) -> Result {
    out.extend(MemoryRow::read(batch)?.into_iter().map(|row| MemoryEvent {
        time: row.ts_ns,
        track: TrackId(row.track_id),
        site: row.site_id,
        node: row.node_id.0,
        bytes: row.bytes,
    }));
    Ok(())
}

pub(super) fn transfers(batch: &RecordBatch, out: &mut Vec<Transfer>) -> Result {
    out.extend(TransferRow::read(batch)?.into_iter().map(|row| Transfer {
        scope: row.process_id.0,
        number: row.number,
        step_id: row.step,
        bytes: row.bytes,
        sender: row.sender_node_id.0,
        receiver: row.receiver_node_id.0,
        from: track_id(row.from_track_id),
        to: track_id(row.to_track_id),
        enqueued: row.enqueued_ns,
        sent: row.sent_ns,
        left: row.left_ns,
        arrived: row.arrived_ns,
        unblocked: row.unblocked_ns,
    }));
    Ok(())
}

pub(super) fn warnings(batch: &RecordBatch, out: &mut Vec<Warning>) -> Result {
    let warning = |row: WarningRow<'_>| Warning::new(WarningKind::from_name(row.kind), row.source, row.count, row.text);
    out.extend(WarningRow::read(batch)?.into_iter().map(warning));
    Ok(())
}

pub(super) fn rings(batch: &RecordBatch, out: &mut Vec<RingPosition>) -> Result {
    out.extend(RingRow::read(batch)?.into_iter().map(|row| {
        let RingRow { pid, ring, made, next, dropped } = row;
        RingPosition { pid, ring, made, next, dropped }
    }));
    Ok(())
}
