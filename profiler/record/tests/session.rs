//! A recorded program, a collector and a reader together, in one process.

#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::wait_until;
use events::{Options, emit_slice, now};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trace_model::{Category, WarningKind};
use trace_record::{Collector, CollectorOptions};
use trace_store::testkit::{read, slices};
use trace_store::{Store, StoreOptions, TraceReader};

/// A process has one recording session: these tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn store() -> Store {
    Store::with_options(StoreOptions::UNBOUNDED)
}

/// A session and its collector, in a folder of their own.
fn recording() -> (tempfile::TempDir, events::Session, Collector) {
    let dir = tempfile::tempdir().unwrap();
    let session = events::start(dir.path(), Options::default()).unwrap();
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    (dir, session, collector)
}

/// Emits `n` slices of the site `work` with `arg` = 0, 1, ... from a thread of this name.
fn emit(thread: &str, n: u64) {
    let thread = std::thread::Builder::new().name(thread.to_owned());
    let run = move || {
        let site = events::site("test", "work");
        for i in 0..n {
            let begin = now();
            emit_slice(begin, now(), site, events::NodeId::NONE, 0, i);
        }
    };
    thread.spawn(run).unwrap().join().unwrap();
}

/// The `arg`s of the slices of a track, in order.
fn args(store: &Store, thread: &str) -> Vec<u64> {
    let track = store.tracks().iter().find(|t| t.name == thread).unwrap();
    let mut slices: Vec<_> = slices(store).filter(|slice| slice.id.track == track.id.0).collect();
    slices.sort_by_key(|s| (s.start, s.end));
    slices.iter().map(|s| s.arg).collect()
}

#[test]
fn what_is_emitted_is_read_back() {
    let _turn = turn();
    let (dir, session, collector) = recording();
    let node = events::node("layer1/MatMul", "MatMul", "cpu:0");
    let op = events::site("op", "MatMul");
    let step = events::site("step", "train");
    let begin = now();
    {
        let _outer = events::slice(events::site("app", "outer"));
        std::thread::sleep(Duration::from_millis(2));
        emit_slice(begin, now(), op, node, u32::MAX, 5 << 32);
        events::counter(events::site("app", "rows"), 17.5);
    }
    emit_slice(begin, now(), step, events::NodeId::NONE, 5, 1234);
    let pair = events::site("app", "arrow");
    events::flow_out(pair, 9);
    events::flow_in(pair, 9);
    emit("worker 0", 10_000);
    drop(session);
    let report = collector.stop();
    let store = read(dir.path());
    assert_eq!(store.warnings(), []);
    assert_eq!(args(&store, "worker 0"), (0..10_000).collect::<Vec<u64>>());
    assert_eq!((report.slices, report.dropped, report.write_errors), (10_003, 0, 0));
    assert_eq!(store.stats().slices, report.slices);
    assert_eq!(store.nodes()[0].name, "layer1/MatMul");
    let [step] = store.steps() else { panic!("{:?}", store.steps()) };
    assert_eq!((step.id, step.summary_step, store.sites()[step.site as usize].name.as_str()), (5, 1234, "train"));
    let rows = &store.counters()[0];
    assert_eq!((rows.value.iter().copied().collect::<Vec<_>>(), rows.time.len()), (vec![17.5], 1));
    let flow = store.flows().next().unwrap();
    assert!(flow.from.unwrap().time <= flow.to.unwrap().time);
    let mut ops = trace_analysis::stats::op_stats(&store, store.range());
    ops.retain(|op| op.category == "op");
    assert_eq!((ops[0].op.as_str(), ops[0].figures.count), ("MatMul", 1));
    assert!(ops[0].figures.total_ns >= 2_000_000);
    let main = store.tracks().iter().find(|t| t.n_slices() == 3).unwrap();
    let outer = main.lanes[0].slice(0).unwrap();
    assert_eq!(store.category(&outer), Category::Other);
    assert!(!store.is_live());
    let left: Vec<String> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|n| !n.ends_with(".ring")), "{left:?}");
}

#[test]
fn a_stalled_collector_drops_nothing_uncounted() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let options = Options { ring_records: 1 << 10, ..Options::default() };
    let session = events::start(dir.path(), options).unwrap();
    // Nobody drains while the first 5,000 come: 1,024 find room.
    emit("early", 5_000);
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    emit("late", 1_000_000);
    drop(session);
    let report = collector.stop();
    let store = read(dir.path());
    let dropped = |name: &str| store.tracks().iter().find(|t| t.name == name).unwrap().dropped;
    assert_eq!(args(&store, "early"), (0..1_024).collect::<Vec<u64>>());
    assert_eq!(dropped("early"), 5_000 - 1_024);
    let late = args(&store, "late");
    assert_eq!(late.len() as u64 + dropped("late"), 1_000_000);
    assert!(late.windows(2).all(|p| p[0] < p[1]), "in order, none twice");
    assert_eq!(report.dropped, store.stats().dropped);
    assert!(store.warnings().iter().all(|w| w.kind == WarningKind::Dropped));
}

#[test]
fn without_a_collector_the_rings_are_read() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let session = events::start(dir.path(), Options::default()).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    emit("worker", 500);
    let mut live = store();
    let mut reader = TraceReader::open(dir.path()).unwrap();
    reader.read_all(&mut live).unwrap();
    assert_eq!(args(&live, "worker"), (0..500).collect::<Vec<u64>>());
    let _open = events::slice(events::site("app", "running"));
    reader.read_all(&mut live).unwrap();
    assert!(live.is_live());
    let open: Vec<&str> =
        live.tracks().iter().flat_map(|t| &t.open).map(|o| live.sites()[o.site as usize].name.as_str()).collect();
    assert_eq!(open, ["running"]);
    // A collector that comes later finds the same records: the reader takes none twice.
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    emit("second", 300);
    drop(session);
    collector.stop();
    reader.read_all(&mut live).unwrap();
    for store in [&live, &read(dir.path())] {
        assert_eq!(args(store, "worker"), (0..500).collect::<Vec<u64>>());
        assert_eq!(args(store, "second"), (0..300).collect::<Vec<u64>>());
        assert_eq!(store.warnings(), []);
    }
}

#[test]
fn the_size_limit_ends_the_trace_with_a_notice() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let session = events::start(dir.path(), Options::default()).unwrap();
    let limit = CollectorOptions { max_bytes: 100_000, ..CollectorOptions::default() };
    let collector = Collector::start(dir.path(), limit).unwrap();
    emit("worker", 1_000);
    wait_until("all are collected", || collector.progress().records == 1_000);
    assert!(!collector.stop().limit_reached);
    // Nobody drains meanwhile: the limit, which switches recording off, is not reached in the middle of these.
    emit("worker", 10_000);
    let collector = Collector::start(dir.path(), limit).unwrap();
    wait_until("the limit is reached", || collector.progress().limit_reached && !events::is_on());
    drop(session);
    assert!(collector.stop().bytes < 101_000);
    let store = read(dir.path());
    assert!(store.warnings().iter().any(|w| w.kind == WarningKind::SizeLimit), "{:?}", store.warnings());
    // What did not go to the file is still in the rings.
    assert_eq!(store.stats().slices, 11_000);
}

#[test]
fn a_live_view_sees_everything_once() {
    let _turn = turn();
    let (dir, session, collector) = recording();
    let mut reader = TraceReader::open(dir.path()).unwrap();
    let mut live = store();
    let work = std::thread::spawn(|| {
        for _ in 0..40 {
            emit("worker", 2_000);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    while !work.is_finished() {
        reader.poll(&mut live).unwrap();
        std::thread::sleep(Duration::from_millis(3));
    }
    work.join().unwrap();
    drop(session);
    let report = collector.stop();
    reader.read_all(&mut live).unwrap();
    assert_eq!((live.stats().slices, report.slices), (80_000, 80_000));
    assert_eq!(live.warnings(), []);
    assert_eq!(live.stats().overlapped, 0, "times that were given out stay");
}
