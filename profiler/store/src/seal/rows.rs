//! The rows of the tables beside `slices`, from columns.

use super::columns::{Ints, TableError, Texts, floats};
use crate::store::Track;
use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use trace_model::args::Args;
use trace_model::batch::NO_ARGS;
use trace_model::names::{ClockOffset, NodeInfo, Process, SiteInfo};
use trace_model::rows::{CounterKey, Flow, FlowEnd, MemoryEvent, Step, Transfer};
use trace_model::rows::{Point, RingPosition};
use trace_model::slice::SliceId;
use trace_model::stack::{Frame, Function, NO_STACK, Stack};
use trace_model::track::TrackKey;
use trace_model::track::{InstantEvent, TrackId, TrackKind};
use trace_model::warning::{Warning, WarningKind};

pub(super) fn ints<const N: usize>(batch: &RecordBatch, names: [&'static str; N]) -> Result<[Ints; N], TableError> {
    let columns: Vec<Ints> = names.into_iter().map(|name| Ints::of(batch, name)).collect::<Result<_, _>>()?;
    columns.try_into().map_err(|_| TableError::Rows("columns are missing"))
}

pub(super) fn process_rows(batch: &RecordBatch, out: &mut Vec<Process>) -> Result<(), TableError> {
    let ([pid], rates) = (ints(batch, ["pid"])?, floats(batch, "ns_per_tick")?);
    let (host, name) = (Texts::of(batch, "host")?, Texts::of(batch, "name")?);
    let drifts = batch.column_by_name("clock_drift_ppb").map(|_| floats(batch, "clock_drift_ppb")).transpose()?;
    let (offset, bound) = (Ints::or_null(batch, "clock_offset_ns")?, Ints::or_null(batch, "clock_bound_ns")?);
    for (i, ns_per_tick) in rates.into_iter().enumerate() {
        let (host, name) = (host.at(i).into(), name.at(i).into());
        let drift_ppb = drifts.as_ref().and_then(|drifts| drifts.get(i).copied()).unwrap_or(0.0);
        let offset = offset.get(i).zip(bound.get(i));
        let clock =
            offset.map(|(offset_ns, bound)| ClockOffset { offset_ns, drift_ppb, bound_ns: bound.cast_unsigned() });
        out.push(Process { pid: pid.id(i), host, name, clock, ns_per_tick, tells: true });
    }
    Ok(())
}

pub(super) fn site_rows(batch: &RecordBatch, out: &mut Vec<SiteInfo>) -> Result<(), TableError> {
    let (category, name) = (Texts::of(batch, "category")?, Texts::of(batch, "name")?);
    out.extend((0..batch.num_rows()).map(|i| SiteInfo::new(category.at(i), name.at(i))));
    Ok(())
}

pub(super) fn node_rows(batch: &RecordBatch, out: &mut Vec<NodeInfo>) -> Result<(), TableError> {
    let (name, op, device) = (Texts::of(batch, "name")?, Texts::of(batch, "op")?, Texts::of(batch, "device")?);
    let node = |i| NodeInfo { name: name.at(i).into(), op: op.at(i).into(), device: device.at(i).into() };
    out.extend((0..batch.num_rows()).map(node));
    Ok(())
}

pub(super) fn track_rows(batch: &RecordBatch, out: &mut Vec<Track>) -> Result<(), TableError> {
    let [id, process, pid, ring, tid] = ints(batch, ["track_id", "process_id", "pid", "ring", "tid"])?;
    let [order, stream, dropped] = ints(batch, ["position", "stream", "dropped"])?;
    let [overlapped, clipped] = ints(batch, ["overlapped", "clipped"])?;
    let (kind, name, device) = (Texts::of(batch, "kind")?, Texts::of(batch, "name")?, Texts::of(batch, "device")?);
    for i in 0..batch.num_rows() {
        if id.id(i) as usize != out.len() {
            return Err(TableError::Rows("tracks are not in order"));
        }
        let key = TrackKey { pid: pid.id(i), ring: ring.id(i) };
        let track = Track::new(TrackId(id.id(i)), key, process.id(i));
        out.push(Track {
            name: name.at(i).to_owned(),
            tid: tid.at(i) as u32,
            kind: TrackKind::from_name(kind.at(i)).unwrap_or(TrackKind::Thread),
            device: device.at(i).to_owned(),
            stream: stream.get(i).map(|s| s as u64),
            order: order.at(i) as i32,
            dropped: dropped.at(i) as u64,
            overlapped: overlapped.at(i) as u64,
            clipped: clipped.at(i) as u64,
            ..track
        });
    }
    Ok(())
}

pub(super) fn step_rows(batch: &RecordBatch, out: &mut Vec<Step>) -> Result<(), TableError> {
    let [id, summary_step, start, dur] = ints(batch, ["step", "summary_step", "ts_ns", "dur_ns"])?;
    let [site, track, lane, ordinal] = ints(batch, ["site_id", "track_id", "lane", "ordinal"])?;
    out.extend((0..batch.num_rows()).map(|i| Step {
        id: id.id(i),
        summary_step: summary_step.at(i),
        site: site.id(i),
        start: start.at(i),
        end: start.at(i).saturating_add(dur.at(i)),
        slice: SliceId { track: track.id(i), lane: lane.id(i), ordinal: ordinal.at(i) as u64 },
    }));
    Ok(())
}

pub(super) fn flow_rows(batch: &RecordBatch, out: &mut Vec<Flow>) -> Result<(), TableError> {
    let [correlation, scope, site] = ints(batch, ["correlation", "process_id", "site_id"])?;
    let [from, from_time] = ints(batch, ["from_track_id", "from_ts_ns"])?;
    let [to, to_time] = ints(batch, ["to_track_id", "to_ts_ns"])?;
    let end = |track: &Ints, time: &Ints, i| Some(FlowEnd { track: TrackId(track.get(i)? as u32), time: time.get(i)? });
    out.extend((0..batch.num_rows()).map(|i| Flow {
        scope: scope.id(i),
        site: site.id(i),
        correlation: correlation.id(i),
        from: end(&from, &from_time, i),
        to: end(&to, &to_time, i),
    }));
    Ok(())
}

pub(super) fn point_rows(batch: &RecordBatch, out: &mut Vec<Point>) -> Result<(), TableError> {
    let ([process, site, time], values) = (ints(batch, ["process_id", "site_id", "ts_ns"])?, floats(batch, "value")?);
    let track = Ints::or_null(batch, "track_id")?;
    let key = |i| {
        let track = track.get(i).map(|row| TrackId(row as u32));
        CounterKey { process: process.id(i), site: site.id(i), track }
    };
    let point = |(i, value)| Point { key: key(i), time: time.at(i), value };
    out.extend(values.into_iter().enumerate().map(point));
    Ok(())
}

/// Texts that repeat (the stack of a sample) are kept once.
#[derive(Default)]
pub(super) struct Texted {
    rows: FxHashMap<Box<str>, u32>,
}

impl Texted {
    fn row(&mut self, text: &str, args: &mut Args) -> u32 {
        if let Some(row) = self.rows.get(text) {
            return *row;
        }
        let row = args.push(text);
        self.rows.insert(text.into(), row);
        row
    }
}

/// Instants go to their tracks.
pub(super) fn instant_rows(
    batch: &RecordBatch,
    n_sites: usize,
    tracks: &mut [Track],
    args: &mut Args,
    known: &mut Texted,
) -> Result<(), TableError> {
    let [track, time, arg, site] = ints(batch, ["track_id", "ts_ns", "arg", "site_id"])?;
    let texts = Texts::or_null(batch, "args")?;
    for i in 0..batch.num_rows() {
        let to = tracks.get_mut(track.id(i) as usize).filter(|_| (site.id(i) as usize) < n_sites);
        let to = to.ok_or(TableError::Rows("a track or site is unknown"))?;
        let args = texts.get(i).map_or(NO_ARGS, |text| known.row(text, args));
        to.instants.push(InstantEvent { time: time.at(i), site: site.id(i), arg: arg.at(i) as u64, args });
    }
    Ok(())
}

pub(super) fn frame_rows(batch: &RecordBatch, out: &mut Vec<Frame>) -> Result<(), TableError> {
    let ([address], module) = (ints(batch, ["address"])?, Texts::of(batch, "module")?);
    let frame = |i| Frame { module: module.at(i).to_owned(), address: address.at(i) as u64, functions: Vec::new() };
    out.extend((0..batch.num_rows()).map(frame));
    Ok(())
}

pub(super) fn function_rows(batch: &RecordBatch, frames: &mut [Frame]) -> Result<(), TableError> {
    let [frame, line] = ints(batch, ["frame_id", "line"])?;
    let (name, file) = (Texts::of(batch, "name")?, Texts::of(batch, "file")?);
    for i in 0..batch.num_rows() {
        let frame = frames.get_mut(frame.id(i) as usize).ok_or(TableError::Rows("a frame is unknown"))?;
        let (name, file) = (name.at(i).to_owned(), file.at(i).to_owned());
        frame.functions.push(Function { name, file, line: line.id(i) });
    }
    Ok(())
}

/// A stack's caller comes before it, so that no walk to the outermost goes round.
pub(super) fn stack_rows(batch: &RecordBatch, n_frames: usize, out: &mut Vec<Stack>) -> Result<(), TableError> {
    let [parent, frame] = ints(batch, ["parent_id", "frame_id"])?;
    for i in 0..batch.num_rows() {
        let stack = Stack { parent: parent.id(i), frame: frame.id(i) };
        let is_sound = stack.parent == NO_STACK || (stack.parent as usize) < out.len();
        if !is_sound || stack.frame as usize >= n_frames {
            return Err(TableError::Rows("a caller or frame is unknown"));
        }
        out.push(stack);
    }
    Ok(())
}

pub(super) fn memory_rows(batch: &RecordBatch, out: &mut Vec<MemoryEvent>) -> Result<(), TableError> {
    let [time, track, site, node, bytes] = ints(batch, ["ts_ns", "track_id", "site_id", "node_id", "bytes"])?;
    out.extend((0..batch.num_rows()).map(|i| MemoryEvent {
        time: time.at(i),
        track: TrackId(track.id(i)),
        site: site.id(i),
        node: node.id(i),
        bytes: bytes.at(i),
    }));
    Ok(())
}

pub(super) fn transfer_rows(batch: &RecordBatch, out: &mut Vec<Transfer>) -> Result<(), TableError> {
    let [process, number, step, bytes] = ints(batch, ["process_id", "number", "step", "bytes"])?;
    let [sender, receiver] = ints(batch, ["sender_node_id", "receiver_node_id"])?;
    let [from, to] = ints(batch, ["from_track_id", "to_track_id"])?;
    let [enqueued, sent, left] = ints(batch, ["enqueued_ns", "sent_ns", "left_ns"])?;
    let [arrived, unblocked] = ints(batch, ["arrived_ns", "unblocked_ns"])?;
    let track = |column: &Ints, i| column.get(i).map(|id| TrackId(id as u32));
    out.extend((0..batch.num_rows()).map(|i| Transfer {
        scope: process.id(i),
        number: number.id(i),
        step_id: step.id(i),
        bytes: bytes.id(i),
        sender: sender.id(i),
        receiver: receiver.id(i),
        from: track(&from, i),
        to: track(&to, i),
        enqueued: enqueued.get(i),
        sent: sent.get(i),
        left: left.get(i),
        arrived: arrived.get(i),
        unblocked: unblocked.get(i),
    }));
    Ok(())
}

pub(super) fn warning_rows(batch: &RecordBatch, out: &mut Vec<Warning>) -> Result<(), TableError> {
    let (kind, source, text) = (Texts::of(batch, "kind")?, Texts::of(batch, "source")?, Texts::of(batch, "text")?);
    let [count] = ints(batch, ["count"])?;
    out.extend((0..batch.num_rows()).map(|i| Warning {
        kind: WarningKind::from_name(kind.at(i)),
        source: source.at(i).to_owned(),
        count: count.at(i) as u64,
        text: text.at(i).to_owned(),
    }));
    Ok(())
}

pub(super) fn ring_rows(batch: &RecordBatch, out: &mut Vec<RingPosition>) -> Result<(), TableError> {
    let [pid, ring, made, next, dropped] = ints(batch, ["pid", "ring", "made", "next", "dropped"])?;
    out.extend((0..batch.num_rows()).map(|i| RingPosition {
        pid: pid.id(i),
        ring: ring.id(i),
        made: made.at(i) as u64,
        next: next.at(i) as u64,
        dropped: dropped.at(i) as u64,
    }));
    Ok(())
}
