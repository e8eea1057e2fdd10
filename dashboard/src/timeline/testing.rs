//! Stores for tests, built as the store is from files.

use super::{
    layout::{Frame, Scale, Sizes, Viewport},
    model::{Row, Rows},
};
use std::fmt::Write as _;
use trace_model::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};
use trace_store::Store;

/// Sizes of rows.
pub(crate) const SIZES: Sizes = Sizes { lane_h: 18.0, heading_h: 20.0, counter_h: 36.0, gap: 4.0 };

/// A frame that shows `start..end` ns on `width` pixels.
pub(crate) fn frame(start: i64, end: i64, width: f32) -> Frame {
    let view = Viewport { start, end };
    Frame { view, scale: Scale::new(view, 0.0, width), pixels_per_point: 1.0, sizes: SIZES }
}

/// The length of one step of [`demo`], ns.
pub(crate) const STEP_NS: i64 = 100_000;

/// Site of a step of [`demo`].
pub(crate) const SITE_STEP: u32 = 0;
/// Site of a matrix product.
pub(crate) const SITE_MATMUL: u32 = 1;
/// Site of the sum.
pub(crate) const SITE_ADD: u32 = 2;
/// Site of a shard of the product.
pub(crate) const SITE_SHARD: u32 = 3;
/// Site of a parked worker.
pub(crate) const SITE_IDLE: u32 = 4;
/// Site of the memory counter.
pub(crate) const SITE_MEMORY: u32 = 5;

/// A slice event; `u32::MAX` as its correlation means no predecessor.
pub(crate) fn slice(start: i64, end: i64, site: u32, node: u32, depth: u8) -> Event {
    Event {
        kind: EventKind::Slice,
        depth,
        start,
        end,
        site,
        node,
        correlation: u32::MAX,
        arg: 0,
        args: trace_model::NO_ARGS,
    }
}

/// A batch of process 1 with these sites: categories and names.
pub(crate) fn batch_of(sites: &[(&str, &str)]) -> Batch {
    let mut batch = Batch::new();
    batch.set_origin(0);
    for (id, (category, name)) in (0..).zip(sites) {
        batch.name(Name::Site { pid: 1, id, category: (*category).into(), name: (*name).into() });
    }
    batch
}

pub(crate) fn store_of(batch: Batch) -> Store {
    let mut store = Store::new();
    store.apply(batch);
    store
}

fn add_names(batch: &mut Batch) {
    let pid = 7;
    batch.name(Name::Process { pid, host: "host".into(), name: "/usr/bin/demo --steps 3".into(), ns_per_tick: 1.0 });
    for (ring, name) in [(0, "main"), (1, "worker 10"), (2, "worker 2")] {
        batch.name(Name::Thread { key: TrackKey { pid, ring }, name: name.into(), tid: 100 + ring });
    }
    let sites =
        [("step", "train"), ("op", "MatMul"), ("op", "Add"), ("shard", "MatMul"), ("wait", "idle"), ("alloc", "cpu:0")];
    for (id, (category, name)) in (0..).zip(sites) {
        batch.name(Name::Site { pid, id, category: category.into(), name: name.into() });
    }
    for (id, (name, op)) in (0..).zip([("layer1/MatMul", "MatMul"), ("layer1/Add", "Add"), ("layer2/MatMul", "MatMul")])
    {
        batch.name(Name::Node { pid, id, name: name.into(), op: op.into(), device: "cpu:0".into() });
    }
}

/// `steps` steps of 100 µs on a main thread and two workers. In each, `layer1/MatMul` (20 µs to 70 µs, with a shard
/// inside from 30 µs to 40 µs) runs on worker 10; `layer1/Add`, which that op makes ready, from 72 µs to 80 µs on worker 2,
/// idle from 20 µs to 72 µs before; and `layer2/MatMul`, after the sum, from 82 µs to 95 µs on worker 2 with a shard in
/// it.
pub(crate) fn demo(steps: u32) -> Store {
    let mut batch = Batch::new();
    add_names(&mut batch);
    batch.set_origin(1_000);
    let key = |ring| TrackKey { pid: 7, ring };
    for step in 0..steps {
        let at = 1_000 + i64::from(step) * STEP_NS;
        let us = |us: i64| at + us * 1_000;
        let op = |start, end, site, node, after: u32, wait_ns: u64| Event {
            correlation: after,
            arg: u64::from(step) << 32 | wait_ns,
            ..slice(us(start), us(end), site, node, 0)
        };
        let shard = |start, end, node| Event {
            correlation: 0,
            arg: u64::from(step) << 32 | 64,
            ..slice(us(start), us(end), SITE_SHARD, node, 1)
        };
        batch.track(key(0)).events.push(Event {
            correlation: step,
            arg: u64::from(step) * 10,
            ..slice(us(10), us(98), SITE_STEP, NO_NODE, 0)
        });
        let worker_10 = &mut batch.track(key(1)).events;
        worker_10.push(shard(30, 40, 0));
        worker_10.push(op(20, 70, SITE_MATMUL, 0, NO_NODE, 500));
        let worker_2 = &mut batch.track(key(2)).events;
        worker_2.push(Event { correlation: step, ..slice(us(20), us(72), SITE_IDLE, NO_NODE, 0) });
        worker_2.push(op(72, 80, SITE_ADD, 1, 0, 2_000));
        worker_2.push(shard(85, 90, 2));
        worker_2.push(op(82, 95, SITE_MATMUL, 2, 1, 1_000));
        for (time, bytes) in [(20, 4096.0_f64), (70, 1024.0)] {
            batch.track(key(0)).events.push(Event {
                kind: EventKind::Counter,
                arg: bytes.to_bits(),
                ..slice(us(time), us(time), SITE_MEMORY, NO_NODE, 0)
            });
        }
    }
    store_of(batch)
}

/// A store with one track of these slices.
pub(crate) fn one_track(events: Vec<Event>) -> Store {
    let mut batch = Batch::new();
    add_names(&mut batch);
    batch.set_origin(0);
    batch.track(TrackKey { pid: 7, ring: 0 }).events = events;
    store_of(batch)
}

/// The rows as text, one line each.
pub(crate) fn text_of_rows(store: &Store, rows: &Rows) -> String {
    let mut out = String::new();
    for row in &rows.list {
        let line = match row {
            Row::Pins => "Pinned".to_owned(),
            Row::Host { host, n_processes, folded } => {
                format!("{host}: {n_processes} processes{}", if *folded { " folded" } else { "" })
            }
            Row::Process { title, n_tracks, folded, .. } => {
                format!("{title}: {n_tracks} tracks{}", if *folded { " folded" } else { "" })
            }
            Row::Track { track, lanes, folded, .. } => {
                let name = store.track(*track).map_or("?", |t| &t.name);
                format!("  {name}: lanes {lanes:?}{}", if *folded { " folded" } else { "" })
            }
            Row::Counter { title, .. } => format!("  {title}"),
        };
        writeln!(out, "{line}").unwrap();
    }
    out
}
