//! Flight recorders with a collector, and traces in which a process id was used twice.

#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{again, wait_until};
use events::clock::Source;
use events::control::Control;
use events::meta::{Entry, Writer};
use events::record::site_word;
use events::{Anchor, Kind, NodeId, Options, Record, SiteId, emit_slice, now};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use trace_model::chunks::{ChunkHeader, FLAG_LAST};
use trace_model::{WarningKind, chunks};
use trace_record::{Collector, CollectorOptions};
use trace_store::Store;
use trace_store::testkit::{read, slices};

/// A process has one session: held by a test that records.
static ONE: Mutex<()> = Mutex::new(());

/// The `arg`s of all slices, in the order of time.
fn args(store: &Store) -> Vec<u64> {
    let mut slices: Vec<_> = slices(store).collect();
    slices.sort_by_key(|s| (s.start, s.arg));
    slices.iter().map(|s| s.arg).collect()
}

#[test]
fn a_dump_writes_the_newest_events_and_recording_goes_on() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let control = Control::open_or_create(dir.path(), true).unwrap();
    control.enable_flight_recorder(60_000_000_000, 0);
    let session = events::start(dir.path(), Options { ring_records: 1024, ..Options::default() }).unwrap();
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    let site = events::site("test", "flight");
    let emit = |range: std::ops::Range<u64>| range.for_each(|n| emit_slice(now(), now(), site, NodeId::NONE, 0, n));
    emit(0..10_000);
    let number = control.request_dump();
    wait_until("the dump is done", || control.dumps().1 == number);
    emit(10_000..20_000);
    drop(session);
    let report = collector.stop();
    let store = read(dir.path());
    let found = args(&store);
    assert_eq!(report.records, found.len() as u64);
    let (dumped, last): (Vec<u64>, Vec<u64>) = found.iter().partition(|n| **n < 10_000);
    for (part, end) in [(dumped, 10_000), (last, 20_000)] {
        assert!((900..=1024).contains(&part.len()), "{}", part.len());
        assert_eq!(part, (end - part.len() as u64..end).collect::<Vec<u64>>());
    }
    let kinds: Vec<WarningKind> = store.warnings().iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [WarningKind::Evicted], "{:?}", store.warnings());
    assert_eq!(store.warnings()[0].count + found.len() as u64, 20_000, "what was written over is counted");
}

#[test]
fn what_is_older_than_asked_for_is_left_out() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    Control::open_or_create(dir.path(), true).unwrap().enable_flight_recorder(3_000_000_000, 0);
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    let session = events::start(dir.path(), Options { ring_records: 1024, ..Options::default() }).unwrap();
    let site = events::site("test", "age");
    emit_slice(now(), now(), site, NodeId::NONE, 0, 1);
    // The first is older than what is kept by then; the second has the three seconds to get from here to the dump.
    let begun = events::clock::mono_now();
    wait_until("three seconds are over", || events::clock::mono_now() - begun > 3_000_000_000);
    emit_slice(now(), now(), site, NodeId::NONE, 0, 2);
    drop(session);
    collector.stop();
    assert_eq!(args(&read(dir.path())), [2]);
}

/// Two processes of id 77, one after the other, each with site 1 of its own and one slice in ring 0.
#[test]
fn an_id_that_is_used_again_renames_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut meta = Writer::create(dir.path(), 77).unwrap();
    let mut batch = Vec::new();
    for (born, program, from) in [(10, "first", 1_000u64), (20, "second", 9_000)] {
        let anchor = |ticks: u64| Entry::Anchor(Anchor { ticks, mono_ns: ticks as i64, real_ns: 0 });
        meta.append_all(
            [
                Entry::Process {
                    pid: 77,
                    start_ns: 0,
                    clock: Source::MonotonicRaw,
                    host: "h".into(),
                    exe: program.into(),
                    args: Vec::new(),
                    born,
                },
                anchor(from),
                anchor(from + 500),
                Entry::Site { id: 1, category: "test".into(), name: format!("of the {program}") },
                Entry::Thread { ring: 0, tid: 1, name: format!("thread of the {program}") },
            ]
            .into_iter(),
        );
        let at = chunks::begin_chunk(&mut batch);
        let site = site_word(Kind::Slice, 0, SiteId::from_bits(1));
        batch.push(Record { begin: from + 100, dur: 50, site, node: u32::MAX, ..Record::default() });
        let header = ChunkHeader { pid: 77, ring: 0, made: from + 50, flags: FLAG_LAST, ..ChunkHeader::default() };
        chunks::end_chunk(header, at, &mut batch);
    }
    let mut file = chunks::file_header(5, 0).to_vec();
    file.extend_from_slice(bytemuck::cast_slice(&batch));
    std::fs::write(dir.path().join("chunks-5.bin"), file).unwrap();

    let store = read(dir.path());
    let mut found: Vec<(u32, &str, &str, &str, i64)> = Vec::new();
    for slice in slices(&store) {
        let track = &store.tracks()[slice.id.track as usize];
        let process = &store.processes()[track.process as usize];
        found.push((process.pid, &process.name, &track.name, store.slice_name(&slice), slice.start));
    }
    found.sort_by_key(|f| f.4);
    assert_eq!(
        found,
        [
            (77, "first", "thread of the first", "of the first", 100),
            (77, "second", "thread of the second", "of the second", 8_100),
        ]
    );
    assert!(store.warnings().is_empty(), "{:?}", store.warnings());
}

const PANICS: &str = "STEPSCOPE_FLIGHT_TEST_TRACE";
const KEPT_NS: i64 = 400_000_000;

/// The program of the test below: emits a slice each millisecond, then a thread of it panics, and it lives on; nothing
/// in a test run.
#[test]
fn the_program_that_panics() {
    let Some(trace) = std::env::var_os(PANICS) else { return };
    let session = events::start(Path::new(&trace), Options::default()).unwrap();
    let (tick, work) = (events::site("test", "tick"), events::site("test", "work"));
    for n in 0..1_000 {
        let begin = now();
        std::thread::sleep(Duration::from_millis(1));
        emit_slice(begin, now(), tick, NodeId::NONE, 0, n);
    }
    let failing = std::thread::Builder::new().name("failing".to_owned()).spawn(move || {
        let _work = events::slice(work);
        panic!("the {} was planted", "failure");
    });
    assert!(failing.unwrap().join().is_err());
    // The dump is the panic's, not the end's.
    std::thread::sleep(Duration::from_secs(60));
    drop(session);
}

#[test]
fn a_panic_in_a_thread_dumps_the_last_moments_and_its_message() {
    let dir = tempfile::tempdir().unwrap();
    let control = Control::open_or_create(dir.path(), true).unwrap();
    control.enable_flight_recorder(KEPT_NS as u64, 0);
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    let mut program = again("the_program_that_panics");
    let mut program = program.env(PANICS, dir.path()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the dump is done", || control.dumps().0 != 0 && control.dumps().0 == control.dumps().1);
    // While the program lives and the collector works.
    let store = read(dir.path());
    program.kill().unwrap();
    program.wait().unwrap();
    collector.stop();
    let is_panic = |site: u32| store.sites()[site as usize].category_name == "panic";
    let instants = store.tracks().iter().flat_map(|t| t.instants.iter().map(move |i| (t.name.as_str(), i)));
    let panics: Vec<_> = instants.filter(|(_, i)| is_panic(i.site)).collect();
    let [(thread, panic)] = panics[..] else { panic!("{panics:?}") };
    let message = store.args().get(panic.args).unwrap_or_default();
    assert!(thread == "failing" && message.contains("the failure was planted"), "{thread}: {message}");
    assert!(message.contains("flight.rs"), "where it was: {message}");
    let ticks: Vec<_> = slices(&store).filter(|s| store.slice_name(s) == "tick").collect();
    let (first, last) = (ticks.iter().map(|s| s.end).min().unwrap(), ticks.iter().map(|s| s.end).max().unwrap());
    // Up to the panic, and from so long before the dump, which is written a little after it.
    assert!(ticks.iter().any(|s| s.arg == 999) && panic.time >= last, "{last} {}", panic.time);
    assert!(panic.time - first <= KEPT_NS + 1_000_000, "{} ns of ticks", panic.time - first);
}
