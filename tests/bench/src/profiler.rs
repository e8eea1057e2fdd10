//! The profiler: collecting, reading back, appending to the store, what a frame of the timeline asks of the pyramids, and the
//! analyses.

use crate::report::{BenchError, Report};
use ::events::{NodeId, clock, emit_slice, now};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;
use trace_analysis::stats::op_stats;
use trace_model::Batch;
use trace_model::lod::Span;
use trace_model::{Event, EventKind, Name, TrackKey};
use trace_record::{Collector, CollectorOptions};
use trace_store::{Store, StoreOptions, TraceReader};

const PX: usize = 1920;
const LANES: u32 = 50;

/// Runs the benchmark.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    for (case, per_ms) in [("full speed", None), ("5 M/s", Some(2500)), ("1 M/s", Some(500))] {
        if !report.wants("collect") {
            continue;
        }
        let dir = tempfile::tempdir()?;
        collect(report, case, per_ms, dir.path())?;
        read_back(report, case, dir.path())?;
    }
    for (n, label) in [(1_000_000, "1 M"), (10_000_000, "10 M")] {
        if report.wants("store") {
            let store = append(report, label, n);
            frames(report, label, &store);
        }
    }
    if report.wants("one lane") {
        one_lane(report);
    }
    if report.wants("analysis") {
        analysis(report);
    }
    if report.wants("sealed") { crate::sealed::run(report) } else { Ok(()) }
}

fn seconds(since: i64) -> f64 {
    (clock::mono_now() - since) as f64 / 1e9
}

/// Two threads emit for two seconds, as fast as they can or so many slices per millisecond each.
fn collect(report: &mut Report, case: &str, per_ms: Option<u64>, dir: &Path) -> Result<(), BenchError> {
    let session = ::events::start(dir, ::events::Options::default())?;
    let collector = Collector::start(dir, CollectorOptions::default())?;
    let begun = clock::mono_now();
    let rss = crate::sealed::rss_bytes();
    let emitters: Vec<_> = (0..2).map(|_| std::thread::spawn(move || emit(per_ms))).collect();
    let mut emitted = 0;
    for emitter in emitters {
        emitted += emitter.join().map_err(|_| "an emitting thread panicked")?;
    }
    let grown = crate::sealed::rss_bytes() - rss;
    let emitted_s = seconds(begun);
    drop(session);
    let r = collector.stop();
    let records = r.records as f64;
    if r.slices + r.dropped != emitted {
        return Err(format!("{emitted} slices were emitted, {} collected and {} counted", r.slices, r.dropped).into());
    }
    report.add(format!("collect, {case}: memory, rings and collector"), grown as f64 / 1e6, "MB");
    report.add(format!("collect, {case}: rate"), records / emitted_s / 1e6, "M records/s");
    report.add(format!("collect, {case}: dropped"), r.dropped as f64 / (records + r.dropped as f64) * 100.0, "%");
    report.add(format!("collect, {case}: collector's CPU time"), r.cpu_ns as f64 / records, "ns/record");
    report.add(format!("collect, {case}: collector's load"), r.cpu_ns as f64 / 1e7 / emitted_s, "% of a core");
    report.add(format!("collect, {case}: on disk"), r.bytes as f64 / records, "B/record");
    Ok(())
}

/// How many slices were emitted.
fn emit(per_ms: Option<u64>) -> u64 {
    let site = ::events::site("bench", "collect");
    let end = clock::mono_now() + 2_000_000_000;
    let (mut due, mut emitted) = (clock::mono_now(), 0);
    while clock::mono_now() < end {
        emitted += per_ms.unwrap_or(500);
        for i in 0..per_ms.unwrap_or(500) {
            emit_slice(now(), now(), site, NodeId::NONE, 0, i);
        }
        if per_ms.is_some() {
            due += 1_000_000;
            let left = due - clock::mono_now();
            if left > 0 {
                std::thread::sleep(Duration::from_nanos(left.unsigned_abs()));
            }
        }
    }
    emitted
}

fn read_back(report: &mut Report, case: &str, dir: &Path) -> Result<(), BenchError> {
    let (begun, cpu) = (clock::mono_now(), clock::cpu_now());
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(dir)?.read_all(&mut store)?;
    let n = store.stats().slices as f64;
    report.add(format!("read back, {case}: wall"), seconds(begun) * 1e9 / n, "ns/slice");
    report.add(format!("read back, {case}: CPU"), (clock::cpu_now() - cpu) as f64 / n, "ns/slice");
    Ok(())
}

/// `n` slices over `LANES` threads: bursts, pauses, every tenth slice long.
fn append(report: &mut Report, label: &str, n: usize) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let mut at = [0i64; LANES as usize];
    let (mut applied_ns, mut longest_ns, mut left) = (0, 0, n);
    while left > 0 {
        let mut batch = Batch::new();
        batch.set_origin(0);
        batch.name(Name::Site { pid: 1, id: 0, category: "op".into(), name: "MatMul".into() });
        batch.name(Name::Node { pid: 1, id: 0, name: "l/MatMul".into(), op: "MatMul".into(), device: "cpu:0".into() });
        let part = left.min(1 << 16);
        for i in 0..part {
            let ring = i as u32 % LANES;
            let time = &mut at[ring as usize];
            let start = *time + [40, 300, 20_000][usize::from(i % 7 == 0) + usize::from(i % 1_001 == 0)];
            *time = start + if i % 10 == 0 { 9_000 } else { 500 + (i as i64 * 7_919) % 900 };
            batch.track(TrackKey { pid: 1, ring }).events.push(Event {
                kind: EventKind::Slice,
                depth: 0,
                start,
                end: *time,
                site: 0,
                node: 0,
                correlation: 0,
                arg: 1 << 32,
                args: trace_model::NO_ARGS,
            });
        }
        left -= part;
        // CPU time: how busy the machine is otherwise must not show.
        let begun = clock::cpu_now();
        store.apply(batch);
        let took = clock::cpu_now() - begun;
        applied_ns += took;
        longest_ns = longest_ns.max(took);
    }
    let stats = store.stats();
    report.add(format!("store, {label}: append (CPU)"), applied_ns as f64 / n as f64, "ns/slice");
    report.add(format!("store, {label}: longest batch under the lock (CPU)"), longest_ns as f64 / 1e6, "ms");
    report.add(format!("store, {label}: memory"), stats.memory_bytes as f64 / n as f64, "B/slice");
    report.add(format!("store, {label}: of that the pyramids"), stats.lod_bytes as f64 / n as f64, "B/slice");
    let begun = clock::cpu_now();
    black_box(op_stats(&store, store.range()));
    report.add(format!("statistics, {label}: per op, whole trace"), (clock::cpu_now() - begun) as f64 / 1e6, "ms");
    store
}

/// Steps of 2,000 ops in chains over `WORKERS` workers, and a stream's kernels with their launches: stalls of all gaps, and the
/// critical paths.
fn analysis(report: &mut Report) {
    const WORKERS: u32 = 8;
    const STEPS: u32 = 250;
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    for step in 0..STEPS {
        store.apply(worked_step(step, WORKERS));
        store.apply(launched_step(step));
    }
    let n = store.stats().slices as f64;
    let range = store.range();
    let found = rates(report, "stalls", n, || trace_analysis::stalls(&store, range.clone()).len());
    report.add("analysis: stalls found", found as f64 / n, "per event");
    rates(report, "critical paths", n, || trace_analysis::ops::critical_paths(&store, range.clone()).len());
    rates(report, "everything", n, || {
        black_box(trace_analysis::report::analyse(&store, range.clone()));
        0
    });
}

/// Events per second of an analysis, by its CPU time and by wall time on all cores: the medians of rounds.
fn rates(report: &mut Report, what: &str, events: f64, analyse: impl Fn() -> usize) -> usize {
    const ROUNDS: usize = 5;
    let (mut cpu, mut wall, mut found) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let begun = (clock::cpu_now(), clock::mono_now());
        found = black_box(analyse());
        cpu.push(clock::cpu_now() - begun.0);
        wall.push(clock::mono_now() - begun.1);
    }
    for (how, times) in [("CPU", &mut cpu), ("all cores, wall time", &mut wall)] {
        times.sort_unstable();
        report.add(format!("analysis: {what} ({how})"), events / times[ROUNDS / 2] as f64 * 1e3, "M events/s");
    }
    found
}

const BLANK: Event = Event {
    kind: EventKind::Slice,
    depth: 0,
    start: 0,
    end: 0,
    site: 0,
    node: u32::MAX,
    correlation: 0,
    arg: 0,
    args: trace_model::NO_ARGS,
};

/// Each op is made ready by one of the worker's before it, or of another's.
fn worked_step(step: u32, workers: u32) -> Batch {
    const OPS: u32 = 2_000;
    let mut batch = Batch::new();
    batch.set_origin(0);
    for (id, category) in ["op", "step"].into_iter().enumerate() {
        batch.name(Name::Site { pid: 1, id: id as u32, category: category.into(), name: "MatMul".into() });
    }
    let begin = i64::from(step) * 4_000_000;
    let mut ends = vec![begin; OPS as usize];
    let mut at = vec![begin; workers as usize];
    for id in 0..OPS {
        if step == 0 {
            let (name, device) = (format!("l{}/MatMul_{id}", id / 50), "cpu:0".into());
            batch.name(Name::Node { pid: 1, id, name, op: "MatMul".into(), device });
        }
        let worker = (id * 7_919 % 13) % workers;
        let by = (id > 0).then(|| id.saturating_sub(1 + id * 31 % 11));
        let ready = by.map_or(begin, |by| ends[by as usize]);
        let start = at[worker as usize].max(ready) + 150;
        let end = start + 800 + i64::from(id * 7_919 % 900);
        (at[worker as usize], ends[id as usize]) = (end, end);
        let arg = u64::from(step + 1) << 32 | (start - ready) as u64;
        let op = Event { start, end, node: id, correlation: by.unwrap_or(u32::MAX), arg, ..BLANK };
        batch.track(TrackKey { pid: 1, ring: worker }).events.push(op);
    }
    let end = at.iter().copied().max().unwrap_or(begin) + 1_000;
    let event = Event { start: begin, end, site: 1, correlation: step + 1, ..BLANK };
    batch.track(TrackKey { pid: 1, ring: workers }).events.push(event);
    batch
}

/// A host that launches kernels on two streams, and the kernels.
fn launched_step(step: u32) -> Batch {
    let mut batch = Batch::new();
    batch.set_origin(0);
    for (id, category) in ["launch", "kernel", "other"].into_iter().enumerate() {
        batch.name(Name::Site { pid: 2, id: id as u32, category: category.into(), name: category.into() });
    }
    for stream in 1..3u32 {
        let (key, kind) = (TrackKey { pid: 2, ring: stream }, trace_model::TrackKind::Stream);
        let (name, stream) = (format!("stream {stream}"), Some(u64::from(stream)));
        batch.name(Name::Track { key, kind, name, tid: 0, device: "GPU 0".into(), stream, order: 0 });
    }
    let (mut host, mut streams) = (i64::from(step) * 4_000_000, [0i64; 3]);
    for i in 0..1_000u32 {
        let (stream, correlation) = (1 + i % 2, step * 1_000 + i + 1);
        let code = Event { start: host, end: host + 700, site: 2, ..BLANK };
        let launch = Event { start: host + 800, end: host + 1_300, correlation, ..BLANK };
        let start = (launch.start + 900).max(streams[stream as usize] + 100);
        let kernel = Event { start, end: start + 600 + i64::from(i % 7) * 300, site: 1, correlation, ..BLANK };
        (host, streams[stream as usize]) = (launch.end, kernel.end);
        batch.track(TrackKey { pid: 2, ring: 0 }).events.extend([code, launch]);
        batch.track(TrackKey { pid: 2, ring: stream }).events.push(kernel);
    }
    batch
}

/// The spans of all lanes, at several zooms: the median of 41 views each.
fn frames(report: &mut Report, label: &str, store: &Store) {
    let range = store.range();
    let length = range.end - range.start;
    let mut out: Vec<Span> = Vec::new();
    for (zoom, shown) in [(1, "all"), (10, "10 %"), (100, "1 %"), (1_000, "0.1 %"), (10_000, "0.01 %")] {
        let width = (length / zoom).max(1);
        let mut times: Vec<i64> = (0..41)
            .map(|i| {
                let from = range.start + (length - width) / 41 * i;
                out.clear();
                let begun = clock::cpu_now();
                for lane in store.tracks().iter().flat_map(|t| &t.lanes) {
                    lane.spans(from..from + width, PX, &mut out);
                }
                black_box(&out);
                clock::cpu_now() - begun
            })
            .collect();
        times.sort_unstable();
        let case = format!("frame, {label} on {LANES} lanes x {PX} px, {shown} (CPU)");
        report.add(format!("{case}: median"), times[20] as f64 / 1e6, "ms");
        report.add(format!("{case}: worst"), times[40] as f64 / 1e6, "ms");
    }
}

/// One lane of five million slices.
fn one_lane(report: &mut Report) {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let mut at = 0;
    for part in 0..80i64 {
        let mut batch = Batch::new();
        batch.set_origin(0);
        batch.name(Name::Site { pid: 1, id: 0, category: "x".into(), name: "x".into() });
        let events = &mut batch.track(TrackKey { pid: 1, ring: 0 }).events;
        for i in 0..62_500 {
            let start = at + if i % 1_001 == 0 { 20_000 } else { 40 };
            at = start + 500 + (i * 7_919 + part) % 9_000;
            let (site, node, kind) = (0, u32::MAX, EventKind::Slice);
            events.push(Event {
                kind,
                depth: 0,
                start,
                end: at,
                site,
                node,
                correlation: 0,
                arg: 0,
                args: trace_model::NO_ARGS,
            });
        }
        store.apply(batch);
    }
    let mut worst = 0.0f64;
    let mut out: Vec<Span> = Vec::new();
    let mut width = at;
    while width > 1_000 {
        let mut times: Vec<i64> = (0..21)
            .map(|i| {
                let from = (at - width) / 21 * i;
                out.clear();
                let begun = clock::mono_now();
                store.tracks()[0].lanes[0].spans(from..from + width, PX, &mut out);
                black_box(&out);
                clock::mono_now() - begun
            })
            .collect();
        times.sort_unstable();
        worst = worst.max(times[10] as f64 / 1e6);
        width /= 2;
    }
    report.add(format!("query, one lane of 5 M, {PX} px: median of the worst zoom"), worst, "ms");
}
