//! The tables beside `slices`: their rows as columns.

use super::SealError;
use super::file::TableFile;
use super::names::{Names, text_column};
use super::schema::Table;
use crate::store::{PlacedInstant, Store};
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, UInt32Array, UInt64Array};
use std::sync::Arc;
use trace_model::rows::{Counter, Flow, MemoryEvent, Point, RingPosition, Transfer};
use trace_model::stack::Function;

/// Rows that are made into columns at a time.
const ROWS: usize = 1 << 16;

fn u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

/// `u32::MAX` is null.
fn ids(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(values.map(|id| (id != u32::MAX).then_some(id)).collect::<UInt32Array>())
}

fn u64s(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

fn i64s(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    text_column(values.map(Some))
}

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

pub(super) fn instants(rows: &[PlacedInstant], names: &Names) -> Vec<ArrayRef> {
    let [category, name] = names.sites(rows.iter().map(|i| i.event.site));
    vec![
        u32s(rows.iter().map(|i| i.track.0)),
        i64s(rows.iter().map(|i| i.event.time)),
        category,
        name,
        u64s(rows.iter().map(|i| i.event.arg)),
        u32s(rows.iter().map(|i| i.event.site)),
        text_column(rows.iter().map(|i| i.args.as_deref())),
    ]
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
    let [category, name] = names.sites(rows.iter().map(|p| p.key.site));
    vec![
        u32s(rows.iter().map(|p| p.key.process)),
        category,
        name,
        i64s(rows.iter().map(|p| p.time)),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|p| p.value))),
        u32s(rows.iter().map(|p| p.key.site)),
        ids(rows.iter().map(|p| p.key.track.map_or(u32::MAX, |track| track.0))),
    ]
}

pub(super) fn flows(rows: &[Flow], names: &Names) -> Vec<ArrayRef> {
    let [category, name] = names.sites(rows.iter().map(|f| f.site));
    vec![
        category,
        name,
        u32s(rows.iter().map(|f| f.correlation)),
        ids(rows.iter().map(|f| f.scope)),
        ids(rows.iter().map(|f| f.from.map_or(u32::MAX, |e| e.track.0))),
        Arc::new(rows.iter().map(|f| f.from.map(|e| e.time)).collect::<Int64Array>()),
        ids(rows.iter().map(|f| f.to.map_or(u32::MAX, |e| e.track.0))),
        Arc::new(rows.iter().map(|f| f.to.map(|e| e.time)).collect::<Int64Array>()),
        u32s(rows.iter().map(|f| f.site)),
    ]
}

pub(super) fn memory(rows: &[MemoryEvent], names: &Names) -> Vec<ArrayRef> {
    let [category, name] = names.sites(rows.iter().map(|m| m.site));
    let node = names.nodes(rows.iter().map(|m| m.node));
    vec![
        i64s(rows.iter().map(|m| m.time)),
        u32s(rows.iter().map(|m| m.track.0)),
        category,
        name,
        node,
        i64s(rows.iter().map(|m| m.bytes)),
        u32s(rows.iter().map(|m| m.site)),
        ids(rows.iter().map(|m| m.node)),
    ]
}

pub(super) fn transfers(rows: &[Transfer]) -> Vec<ArrayRef> {
    let times = |f: fn(&Transfer) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(f).collect::<Int64Array>()) };
    vec![
        ids(rows.iter().map(|t| t.scope)),
        u32s(rows.iter().map(|t| t.number)),
        u32s(rows.iter().map(|t| t.step_id)),
        u32s(rows.iter().map(|t| t.bytes)),
        ids(rows.iter().map(|t| t.sender)),
        ids(rows.iter().map(|t| t.receiver)),
        ids(rows.iter().map(|t| t.from.map_or(u32::MAX, |id| id.0))),
        ids(rows.iter().map(|t| t.to.map_or(u32::MAX, |id| id.0))),
        times(|t| t.enqueued),
        times(|t| t.sent),
        times(|t| t.left),
        times(|t| t.arrived),
        times(|t| t.unblocked),
    ]
}

/// A table that is written at the end, as a whole.
pub(super) type Whole = (Table, fn(&Store, &Names) -> Vec<ArrayRef>);

pub(super) const WHOLE: [Whole; 10] = [
    (super::schema::TRACKS, tracks),
    (super::schema::PROCESSES, processes),
    (super::schema::SITES, sites),
    (super::schema::NODES, nodes),
    (super::schema::STEPS, steps),
    (super::schema::OPEN, open_slices),
    (super::schema::STACKS, stacks),
    (super::schema::FRAMES, frames),
    (super::schema::FUNCTIONS, functions),
    (super::schema::WARNINGS, warnings),
];

fn tracks(store: &Store, _: &Names) -> Vec<ArrayRef> {
    let rows = store.tracks();
    let process = |row: u32| store.processes().get(row as usize);
    let or_null = |s: &'_ str| (!s.is_empty()).then(|| s.to_owned());
    let devices: Vec<Option<String>> = rows.iter().map(|t| or_null(&t.device)).collect();
    vec![
        u32s(rows.iter().map(|t| t.id.0)),
        texts(rows.iter().map(|t| process(t.process).map_or("", |p| &p.host))),
        texts(rows.iter().map(|t| process(t.process).map_or("", |p| &p.name))),
        text_column(rows.iter().map(|t| t.kind.is_thread().then_some(t.name.as_str()))),
        text_column(devices.iter().map(Option::as_deref)),
        Arc::new(rows.iter().map(|t| t.stream).collect::<UInt64Array>()),
        texts(rows.iter().map(|t| t.kind.name())),
        texts(rows.iter().map(|t| t.name.as_str())),
        u32s(rows.iter().map(|t| t.process)),
        u32s(rows.iter().map(|t| t.key.pid)),
        u32s(rows.iter().map(|t| t.key.ring)),
        u32s(rows.iter().map(|t| t.tid)),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|t| t.order))),
        u64s(rows.iter().map(|t| t.dropped)),
        u64s(rows.iter().map(|t| t.overlapped)),
        u64s(rows.iter().map(|t| t.clipped)),
    ]
}

fn processes(store: &Store, _: &Names) -> Vec<ArrayRef> {
    let rows = store.processes();
    vec![
        u32s(0..rows.len() as u32),
        u32s(rows.iter().map(|p| p.pid)),
        texts(rows.iter().map(|p| p.host.as_str())),
        texts(rows.iter().map(|p| p.name.as_str())),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|p| p.ns_per_tick))),
        Arc::new(rows.iter().map(|p| p.clock.map(|c| c.offset_ns)).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|p| p.clock.map(|c| c.drift_ppb)).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|p| p.clock.map(|c| c.bound_ns)).collect::<UInt64Array>()),
    ]
}

fn sites(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = 0..store.sites().len() as u32;
    let [category, name] = names.sites(rows.clone());
    vec![u32s(rows), category, name]
}

fn nodes(store: &Store, _: &Names) -> Vec<ArrayRef> {
    let rows = store.nodes();
    vec![
        u32s(0..rows.len() as u32),
        texts(rows.iter().map(|n| n.name.as_str())),
        texts(rows.iter().map(|n| n.op.as_str())),
        texts(rows.iter().map(|n| n.device.as_str())),
    ]
}

fn steps(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows = store.steps();
    let [_, name] = names.sites(rows.iter().map(|s| s.site));
    vec![
        u32s(rows.iter().map(|s| s.id)),
        i64s(rows.iter().map(|s| s.summary_step)),
        name,
        i64s(rows.iter().map(|s| s.start)),
        i64s(rows.iter().map(|s| s.end - s.start)),
        u32s(rows.iter().map(|s| s.site)),
        u32s(rows.iter().map(|s| s.slice.track)),
        u32s(rows.iter().map(|s| s.slice.lane)),
        u64s(rows.iter().map(|s| s.slice.ordinal)),
    ]
}

fn open_slices(store: &Store, names: &Names) -> Vec<ArrayRef> {
    let rows: Vec<_> = store.tracks().iter().flat_map(|t| t.open.iter().map(|o| (t.id.0, *o))).collect();
    let [category, name] = names.sites(rows.iter().map(|(_, o)| o.site));
    let node = names.nodes(rows.iter().map(|(_, o)| o.node));
    vec![
        u32s(rows.iter().map(|(track, _)| *track)),
        i64s(rows.iter().map(|(_, o)| o.start)),
        u32s(rows.iter().map(|(_, o)| u32::from(o.depth))),
        category,
        name,
        node,
        u32s(rows.iter().map(|(_, o)| o.site)),
        ids(rows.iter().map(|(_, o)| o.node)),
    ]
}

fn stacks(store: &Store, _: &Names) -> Vec<ArrayRef> {
    let rows = store.stacks();
    vec![u32s(0..rows.len() as u32), ids(rows.iter().map(|s| s.parent)), u32s(rows.iter().map(|s| s.frame))]
}

fn frames(store: &Store, _: &Names) -> Vec<ArrayRef> {
    let rows = store.frames();
    vec![
        u32s(0..rows.len() as u32),
        texts(rows.iter().map(|f| f.module.as_str())),
        u64s(rows.iter().map(|f| f.address)),
    ]
}

fn functions(store: &Store, _: &Names) -> Vec<ArrayRef> {
    let frames = (0..).zip(store.frames());
    let rows: Vec<(u32, &Function)> = frames.flat_map(|(id, f)| f.functions.iter().map(move |f| (id, f))).collect();
    vec![
        u32s(rows.iter().map(|(frame, _)| *frame)),
        texts(rows.iter().map(|(_, f)| f.name.as_str())),
        texts(rows.iter().map(|(_, f)| f.file.as_str())),
        u32s(rows.iter().map(|(_, f)| f.line)),
    ]
}

fn warnings(store: &Store, _: &Names) -> Vec<ArrayRef> {
    let rows = store.warnings();
    vec![
        texts(rows.iter().map(|w| w.kind.name())),
        texts(rows.iter().map(|w| w.source.as_str())),
        u64s(rows.iter().map(|w| w.count)),
        texts(rows.iter().map(|w| w.text.as_str())),
    ]
}

/// Keys and values.
pub(super) fn meta(rows: &[(String, String)]) -> Vec<ArrayRef> {
    vec![texts(rows.iter().map(|(key, _)| key.as_str())), texts(rows.iter().map(|(_, value)| value.as_str()))]
}

pub(super) fn rings(rows: &[RingPosition]) -> Vec<ArrayRef> {
    vec![
        u32s(rows.iter().map(|r| r.pid)),
        u32s(rows.iter().map(|r| r.ring)),
        u64s(rows.iter().map(|r| r.made)),
        u64s(rows.iter().map(|r| r.next)),
        u64s(rows.iter().map(|r| r.dropped)),
    ]
}
