//! The sealed form of a trace: what writing costs, how large it is, how quickly it opens and is drawn and scanned; next to
//! what the machine needs to move the same bytes.
//!
//! Ten million slices; `STEPSCOPE_BENCH_SLICES` sets another number (the soak takes 100 million).

use crate::report::{BenchError, Report};
use ::events::clock;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use trace_analysis::stats::op_stats;
use trace_model::Batch;
use trace_model::lod::Span;
use trace_model::{Event, EventKind, NO_ARGS, Name, TrackKey};
use trace_store::seal::SealedWriter;
use trace_store::{Store, StoreOptions, TraceReader};

const LANES: u32 = 50;
const PX: usize = 1920;
/// Nodes of the graph that the made-up trace ran.
const NODES: u32 = 200;

/// Runs the benchmark.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let (n, label) = size();
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join("trace");
    write(report, &label, n, &folder)?;
    limits(report, &label, &folder)?;
    let rss = rss_bytes();
    let (begun, cpu) = (clock::mono_now(), clock::cpu_now());
    let mut store = Store::with_options(StoreOptions::default());
    let mut reader = TraceReader::open(&folder)?;
    store.apply(reader.poll_staged()?);
    report.add(format!("{label}: open"), ms(clock::mono_now() - begun), "ms");
    report.add(format!("{label}: open (CPU)"), ms(clock::cpu_now() - cpu), "ms");
    picture(&store, store.range(), &mut Vec::new());
    report.add(format!("{label}: open to first picture"), ms(clock::mono_now() - begun), "ms");
    report.add(format!("{label}: memory after the first picture"), (rss_bytes() - rss) as f64 / 1e6, "MB");
    frames(report, &label, &store);
    scan(report, &label, &store);
    report.add(format!("{label}: memory at the end"), (rss_bytes() - rss) as f64 / 1e6, "MB");
    Ok(())
}

/// How many slices, and how figures name that.
fn size() -> (usize, String) {
    let n = std::env::var("STEPSCOPE_BENCH_SLICES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000_000usize);
    (n, format!("{} M", n / 1_000_000))
}

/// The trace alone, in `trace` of a folder that goes away, and how figures name its size.
#[cfg(any(feature = "query", feature = "window"))]
pub fn made() -> Result<(tempfile::TempDir, String), BenchError> {
    let (n, label) = size();
    Ok((made_of(n)?, label))
}

/// As [`made`], of so many slices.
#[cfg(any(feature = "query", feature = "window"))]
pub fn made_of(n: usize) -> Result<tempfile::TempDir, BenchError> {
    let dir = tempfile::tempdir()?;
    write(&mut Report::new("sealed", ""), "", n, &dir.path().join("trace"))?;
    Ok(dir)
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Resident memory of this process.
pub fn rss_bytes() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<i64>().unwrap_or(0) * 1024
}

/// Streams a made-up training run into a sealed folder: ops of 200 nodes on 49 workers, waits between them, steps.
fn write(report: &mut Report, label: &str, n: usize, folder: &Path) -> Result<(), BenchError> {
    let mut writer = SealedWriter::create(folder)?;
    let mut names = Batch::new();
    names.set_origin(0);
    for (id, category, name) in [(0, "step", "train"), (1, "wait", "idle"), (2, "op", "MatMul"), (3, "op", "Add")] {
        names.name(Name::Site { pid: 1, id, category: category.into(), name: name.into() });
    }
    for id in 0..NODES {
        let (name, op) = (format!("layer{}/node{id}", id / 9), ["MatMul", "Add"][id as usize % 2].to_owned());
        names.name(Name::Node { pid: 1, id, name, op, device: "/device:cpu:0".into() });
    }
    writer.apply(names)?;
    let mut made = Generator { at: [0; LANES as usize], step: 0, step_start: 0, random: 1 };
    let (mut cpu, mut left, rss) = (0, n, rss_bytes());
    let mut most = 0;
    while left > 0 {
        let batch = made.batch(left.min(1 << 16));
        left -= left.min(1 << 16);
        let begun = clock::cpu_now();
        writer.apply(batch)?;
        cpu += clock::cpu_now() - begun;
        most = most.max(rss_bytes() - rss);
    }
    let begun = clock::cpu_now();
    let sealed = writer.finish()?;
    let finishing = clock::cpu_now() - begun;
    let slices = sealed.slices as f64;
    report.add(format!("{label}: write (CPU)"), cpu as f64 / 1e9, "s");
    report.add(format!("{label}: end and read back to verify (CPU)"), finishing as f64 / 1e9, "s");
    report.add(format!("{label}: write and verify (CPU)"), (cpu + finishing) as f64 / slices, "ns/slice");
    report.add(format!("{label}: memory while writing"), most as f64 / 1e6, "MB");
    report.add(format!("{label}: Parquet"), sealed.parquet_bytes as f64 / slices, "B/slice");
    report.add(format!("{label}: sidecar"), sealed.sidecar_bytes as f64 / slices, "B/slice");
    Ok(())
}

/// The made-up run, as far as it has come.
struct Generator {
    at: [i64; LANES as usize],
    step: u64,
    step_start: i64,
    random: u64,
}

impl Generator {
    fn number(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    fn batch(&mut self, n: usize) -> Batch {
        let mut batch = Batch::new();
        for i in 0..n {
            let ring = 1 + i as u32 % (LANES - 1);
            let start = self.at[ring as usize] + self.number(200) as i64;
            let is_wait = self.number(5) == 0;
            let dur = if is_wait { 200 + self.number(40_000) } else { 300 + self.number(6_000) } as i64;
            self.at[ring as usize] = start + dur;
            let node = self.number(u64::from(NODES)) as u32;
            let arg = self.step << 32 | self.number(20_000);
            let (site, node, correlation, arg) =
                if is_wait { (1, u32::MAX, self.step as u32, 0) } else { (2 + node % 2, node, node / 2, arg) };
            push(&mut batch, ring, start..start + dur, [site, node, correlation], arg);
            if i % 10_000 == 9_999 {
                let span = self.step_start..self.at.iter().copied().max().unwrap_or(0);
                self.step_start = span.end;
                push(&mut batch, 0, span, [0, u32::MAX, self.step as u32], self.step);
                self.step += 1;
            }
        }
        batch
    }
}

fn push(batch: &mut Batch, ring: u32, span: std::ops::Range<i64>, [site, node, correlation]: [u32; 3], arg: u64) {
    let (kind, depth, args) = (EventKind::Slice, 0, NO_ARGS);
    let event = Event { kind, depth, start: span.start, end: span.end, site, node, correlation, arg, args };
    batch.track(TrackKey { pid: 1, ring }).events.push(event);
}

/// What no reader can beat: reading the file's bytes from the page cache, and summing what they hold from memory.
fn limits(report: &mut Report, label: &str, folder: &Path) -> Result<(), BenchError> {
    let begun = clock::mono_now();
    let bytes = fs::read(folder.join("slices.parquet"))?;
    report.add(format!("{label}: limit: read slices.parquet"), ms(clock::mono_now() - begun), "ms");
    let begun = clock::mono_now();
    black_box(bytes.iter().fold(0u64, |sum, b| sum.wrapping_add(u64::from(*b))));
    report.add(format!("{label}: limit: sum its bytes"), ms(clock::mono_now() - begun), "ms");
    Ok(())
}

/// All lanes in a range, one after the other into the same buffer, as the window asks for them.
/// CPU time: how busy the machine is otherwise must not show, and nothing here waits.
fn picture(store: &Store, range: std::ops::Range<i64>, spans: &mut Vec<Span>) -> i64 {
    let begun = clock::cpu_now();
    for lane in store.tracks().iter().flat_map(|t| &t.lanes) {
        spans.clear();
        lane.spans(range.clone(), PX, spans);
        black_box(&spans);
    }
    clock::cpu_now() - begun
}

/// At several zooms 41 views each: as they come, and again when what was wished for is there.
fn frames(report: &mut Report, label: &str, store: &Store) {
    let range = store.range();
    let length = range.end - range.start;
    let mut spans = Vec::new();
    for (zoom, shown) in [(1, "all"), (10, "10 %"), (100, "1 %"), (1_000, "0.1 %"), (10_000, "0.01 %")] {
        let width = (length / zoom).max(1);
        let (mut first, mut exact, mut loading) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..41 {
            let from = range.start + (length - width) / 41 * i;
            first.push(picture(store, from..from + width, &mut spans));
            let begun = clock::mono_now();
            while store.pager().is_some_and(|pager| pager.load_requested()) {
                picture(store, from..from + width, &mut spans);
            }
            loading.push(clock::mono_now() - begun);
            exact.push(picture(store, from..from + width, &mut spans));
        }
        for (what, mut times) in [("at once", first), ("exact", exact), ("loading for it", loading)] {
            times.sort_unstable();
            let case = format!("{label}: frame of {LANES} lanes x {PX} px, {shown}, {what} (CPU)");
            report.add(format!("{case}: median"), ms(times[20]), "ms");
            report.add(format!("{case}: worst"), ms(times[40]), "ms");
        }
    }
}

/// Statistics over all, and over a hundredth.
fn scan(report: &mut Report, label: &str, store: &Store) {
    let range = store.range();
    let length = range.end - range.start;
    let middle = range.start + length / 2;
    for (what, range) in [("all", range), ("1 %", middle..middle + length / 100)] {
        let (begun, cpu) = (clock::mono_now(), clock::cpu_now());
        black_box(op_stats(store, range));
        report.add(format!("{label}: statistics per op, {what}"), ms(clock::mono_now() - begun), "ms");
        report.add(format!("{label}: statistics per op, {what} (CPU)"), ms(clock::cpu_now() - cpu), "ms");
    }
}
