//! The tables other than `slices`, as columns: from the rows of a store.

use super::SealError;
use super::file::TableFile;
use super::names::Names;
use super::schema::{
    CounterRow, FlowRow, FrameRow, FunctionRow, InstantRow, MemoryRow, MetaRow, NodeRow, OpenRow, ProcessRow, RingRow,
    SiteRow, StackRow, StepRow, TrackRow, TransferRow, WarningRow,
};
use super::table::{Id, NodeName, SiteCategory, SiteName, StoredRow, Table};
use crate::store::{PlacedInstant, Store};
use arrow_array::ArrayRef;
use trace_model::{Counter, Flow, MemoryEvent, Point, RingPosition, TrackId, Transfer};

/// Rows that are made into columns at a time.
const ROWS: usize = 1 << 16;

/// Appends rows to a file, some at a time.
pub(super) fn append<T>(
    file: &mut TableFile,
    rows: impl IntoIterator<Item = T>,
    columns: impl Fn(&[T]) -> Vec<ArrayRef>,
) -> Result<(), SealError> {
    let mut rows = rows.into_iter();
    loop {
        let some: Vec<T> = rows.by_ref().take(ROWS).collect();
        if some.is_empty() {
            return Ok(());
        }
        file.write(columns(&some))?;
    }
}

/// The columns of rows.
fn arrays<'a, R: StoredRow<'a>>(rows: impl Iterator<Item = R>, names: &Names) -> Vec<ArrayRef> {
    R::arrays(&rows.collect::<Vec<_>>(), names)
}

fn track_id(track: Option<TrackId>) -> Id {
    Id(track.map_or(u32::MAX, |track| track.0))
}

pub(super) fn instants(rows: &[PlacedInstant], names: &Names) -> Vec<ArrayRef> {
    let rows = rows.iter().map(|i| InstantRow {
        track_id: i.track.0,
        ts_ns: i.event.time,
        category: SiteCategory(i.event.site),
        name: SiteName(i.event.site),
        arg: i.event.arg,
        site_id: i.event.site,
        args: i.args.as_deref(),
    });
    arrays(rows, names)
}

/// The points of all counters.
pub(super) fn points(counters: &[Counter]) -> impl Iterator<Item = Point> + '_ {
    let of_counter = |c: &'_ Counter| {
        let key = c.key();
        c.time.clone().into_iter().zip(c.value.clone()).map(move |(time, value)| Point { key, time, value })
    };
    counters.iter().flat_map(of_counter)
}

pub(super) fn counters(rows: &[Point], names: &Names) -> Vec<ArrayRef> {
    let row = |p: &Point| CounterRow {
        process_id: p.key.process,
        category: SiteCategory(p.key.site),
        name: SiteName(p.key.site),
        ts_ns: p.time,
        value: p.value,
        site_id: p.key.site,
        track_id: track_id(p.key.track),
    };
    arrays(rows.iter().map(row), names)
}

pub(super) fn flows(rows: &[Flow], names: &Names) -> Vec<ArrayRef> {
    let row = |f: &Flow| FlowRow {
        category: SiteCategory(f.site),
        name: SiteName(f.site),
        correlation: f.correlation,
        process_id: Id(f.scope),
        from_track_id: track_id(f.from.map(|e| e.track)),
        from_ts_ns: f.from.map(|e| e.time),
        to_track_id: track_id(f.to.map(|e| e.track)),
        to_ts_ns: f.to.map(|e| e.time),
        site_id: f.site,
    };
    arrays(rows.iter().map(row), names)
}

pub(super) fn memory(rows: &[MemoryEvent], names: &Names) -> Vec<ArrayRef> {
    let row = |m: &MemoryEvent| MemoryRow {
        ts_ns: m.time,
        track_id: m.track.0,
        category: SiteCategory(m.site),
        name: SiteName(m.site),
        node: NodeName(m.node),
        bytes: m.bytes,
        site_id: m.site,
        node_id: Id(m.node),
    };
    arrays(rows.iter().map(row), names)
}

pub(super) fn transfers(rows: &[Transfer], names: &Names) -> Vec<ArrayRef> {
    let row = |t: &Transfer| TransferRow {
        process_id: Id(t.scope),
        number: t.number,
        step: t.step_id,
        bytes: t.bytes,
        sender_node_id: Id(t.sender),
        receiver_node_id: Id(t.receiver),
        from_track_id: track_id(t.from),
        to_track_id: track_id(t.to),
        enqueued_ns: t.enqueued,
        sent_ns: t.sent,
        left_ns: t.left,
        arrived_ns: t.arrived,
        unblocked_ns: t.unblocked,
    };
    arrays(rows.iter().map(row), names)
}

/// A table that is written at the end, in one piece, and how its columns are made.
pub(super) type FinalTable = (Table, fn(&Store, &Names) -> Vec<ArrayRef>);

pub(super) const FINAL: [FinalTable; 10] = [
    (TrackRow::TABLE, tracks),
    (ProcessRow::TABLE, processes),
    (SiteRow::TABLE, sites),
    (NodeRow::TABLE, nodes),
    (StepRow::TABLE, steps),
    (OpenRow::TABLE, open_slices),
    (StackRow::TABLE, stacks),
    (FrameRow::TABLE, frames),
    (FunctionRow::TABLE, functions),
    (WarningRow::TABLE, warnings),
];

fn tracks(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let row = |t: &'_ crate::store::Track| {
        let process = store.processes().get(t.process as usize);
        (process.map_or("", |p| p.host.as_str()), process.map_or("", |p| p.name.as_str()))
    };
    let rows = store.tracks().iter().map(|t| {
        let (host, process) = row(t);
        TrackRow {
            track_id: t.id.0,
            host,
            process,
            thread: t.kind.is_thread().then_some(t.name.as_str()),
            device: Some(t.device.as_str()).filter(|device| !device.is_empty()),
            stream: t.stream,
            kind: t.kind.name(),
            name: &t.name,
            process_id: t.process,
            pid: t.key.pid,
            ring: t.key.ring,
            tid: t.tid,
            position: t.order,
            dropped: t.dropped,
            overlapped: t.overlapped,
            clipped: t.clipped,
        }
    });
    arrays(rows, names)
}

fn processes(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = (0..).zip(store.processes()).map(|(process_id, p)| ProcessRow {
        process_id,
        pid: p.pid,
        host: &p.host,
        name: &p.name,
        ns_per_tick: p.ns_per_tick,
        clock_offset_ns: p.clock.map(|c| c.offset_ns),
        clock_drift_ppb: p.clock.map(|c| c.drift_ppb),
        clock_bound_ns: p.clock.map(|c| c.bound_ns),
    });
    arrays(rows, names)
}

fn sites(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = (0..).zip(store.sites());
    arrays(rows.map(|(site_id, s)| SiteRow { site_id, category: &s.category_name, name: &s.name }), names)
}

fn nodes(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = (0..).zip(store.nodes());
    arrays(rows.map(|(node_id, n)| NodeRow { node_id, name: &n.name, op: &n.op, device: &n.device }), names)
}

fn steps(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = store.steps().iter().map(|s| StepRow {
        step: s.id,
        summary_step: s.summary_step,
        name: SiteName(s.site),
        ts_ns: s.start,
        dur_ns: s.end - s.start,
        site_id: s.site,
        track_id: s.slice.track,
        lane: s.slice.lane,
        ordinal: s.slice.ordinal,
    });
    arrays(rows, names)
}

fn open_slices(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = store.tracks().iter().flat_map(|t| t.open.iter().map(|o| (t.id.0, o)));
    let rows = rows.map(|(track_id, o)| OpenRow {
        track_id,
        ts_ns: o.start,
        depth: u32::from(o.depth),
        category: SiteCategory(o.site),
        name: SiteName(o.site),
        node: NodeName(o.node),
        site_id: o.site,
        node_id: Id(o.node),
    });
    arrays(rows, names)
}

fn stacks(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = (0..).zip(store.stacks());
    arrays(rows.map(|(stack_id, s)| StackRow { stack_id, parent_id: Id(s.parent), frame_id: s.frame }), names)
}

fn frames(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = (0..).zip(store.frames());
    arrays(rows.map(|(frame_id, f)| FrameRow { frame_id, module: &f.module, address: f.address }), names)
}

fn functions(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = (0..).zip(store.frames()).flat_map(|(id, frame)| frame.functions.iter().map(move |f| (id, f)));
    arrays(rows.map(|(frame_id, f)| FunctionRow { frame_id, name: &f.name, file: &f.file, line: f.line }), names)
}

fn warnings(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = store.warnings().iter();
    let row = rows.map(|w| WarningRow { kind: w.kind.name(), source: &w.source, count: w.count, text: &w.text });
    arrays(row, names)
}

/// Keys and values.
pub(super) fn meta(rows: &[(String, String)], names: &Names) -> Vec<ArrayRef> {
    arrays(rows.iter().map(|(key, value)| MetaRow { key, value }), names)
}

pub(super) fn rings(rows: &[RingPosition], names: &Names) -> Vec<ArrayRef> {
    let row = |r: &RingPosition| {
        let RingPosition { pid, ring, made, next, dropped } = *r;
        RingRow { pid, ring, made, next, dropped }
    };
    arrays(rows.iter().map(row), names)
}
