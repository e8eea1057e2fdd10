//! The live part with a stand-in for CUPTI's functions: buffers go round, records become a trace that the analysis
//! reads as it reads PyTorch's.

#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{Texts, call, event, marker, memcpy, wait};
use cupti::layout::{Kind, Layout};
use cupti::library::{Clock, CompleteBuffer, CuptiError, RequestBuffer};
use cupti::record::Text;
use cupti::{Library, Recorder, Report, Unavailable};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trace_analysis::stalls::Cause;
use trace_model::{SliceRef, WarningKind};
use trace_record::{Collector, CollectorOptions};
use trace_store::testkit::read;
use trace_store::{Store, StoreOptions};

/// A process has one recording session: these tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct State {
    callbacks: Option<(RequestBuffer, CompleteBuffer)>,
    clock: Option<Clock>,
    on: Vec<Kind>,
    /// Fails like a library without a driver.
    refuses: bool,
    dropped: u64,
    pushed: Vec<u64>,
    /// Buffers that are not returned before the flush.
    lent: Vec<(usize, Vec<u8>)>,
}

struct Fake {
    version: u32,
    layout: Layout,
    state: Mutex<State>,
}

impl Fake {
    fn new(version: u32) -> Arc<Fake> {
        Arc::new(Fake { version, layout: Layout::for_version(version).unwrap(), state: Mutex::default() })
    }

    fn result(&self, function: &'static str) -> Result<(), CuptiError> {
        let refuses = lock(&self.state).refuses;
        if refuses { Err(CuptiError { function, text: "CUPTI_ERROR_NOT_INITIALIZED".to_owned() }) } else { Ok(()) }
    }

    /// Fills a buffer; false where it gets none, as a full library drops what it has.
    fn deliver(&self, records: &[Vec<u8>], at_once: bool) -> bool {
        let bytes = records.concat();
        let (requested, completed) = lock(&self.state).callbacks.unwrap();
        let (mut buffer, mut size, mut max) = (std::ptr::null_mut(), 0, 1);
        requested(&raw mut buffer, &raw mut size, &raw mut max);
        assert_eq!(max, 0);
        if buffer.is_null() {
            lock(&self.state).dropped += records.len() as u64;
            return false;
        }
        assert!(bytes.len() <= size);
        if at_once {
            // SAFETY: the pool lent `size` bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
            completed(std::ptr::null_mut(), 0, buffer, size, bytes.len());
        } else {
            lock(&self.state).lent.push((buffer as usize, bytes));
        }
        true
    }
}

impl Library for Fake {
    fn version(&self) -> Result<u32, CuptiError> {
        Ok(self.version)
    }

    fn register(&self, requested: RequestBuffer, completed: CompleteBuffer) -> Result<(), CuptiError> {
        lock(&self.state).callbacks = Some((requested, completed));
        Ok(())
    }

    fn use_clock(&self, clock: Clock) -> Result<(), CuptiError> {
        assert!(lock(&self.state).on.is_empty(), "the clock comes before the first record");
        lock(&self.state).clock = Some(clock);
        self.result("cuptiActivityRegisterTimestampCallback")
    }

    fn use_system_thread_ids(&self) -> Result<(), CuptiError> {
        Ok(())
    }

    fn switch(&self, kind: Kind, on: bool) -> Result<(), CuptiError> {
        lock(&self.state).on.retain(|k| *k != kind);
        if on {
            lock(&self.state).on.push(kind);
        }
        Ok(())
    }

    fn flush(&self, is_forced: bool) -> Result<(), CuptiError> {
        if !is_forced {
            // What is lent is not complete.
            return Ok(());
        }
        let lent = std::mem::take(&mut lock(&self.state).lent);
        for (buffer, bytes) in lent {
            let buffer = buffer as *mut u8;
            // SAFETY: lent by the pool, and longer than the bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
            (lock(&self.state).callbacks.unwrap().1)(std::ptr::null_mut(), 0, buffer, 1 << 19, bytes.len());
        }
        Ok(())
    }

    fn next(&self, buffer: &[u8], record: Option<usize>) -> Option<usize> {
        let Some(at) = record else { return (!buffer.is_empty()).then_some(0) };
        let number = u32::from_le_bytes(buffer.get(at..at + 4)?.try_into().unwrap());
        let length = Kind::ALL.iter().find(|k| **k as u32 == number).map_or(48, |kind| self.layout.length(*kind));
        (at + length < buffer.len()).then_some(at + length)
    }

    fn dropped(&self, _: usize, _: u32) -> u64 {
        std::mem::take(&mut lock(&self.state).dropped)
    }

    fn call_name(&self, is_runtime: bool, id: u32) -> Option<String> {
        if is_runtime { Some(format!("{}_v3020", NAMES.get(id as usize)?)) } else { Some("cuLaunchKernel".to_owned()) }
    }

    fn text(&self, Text(address): Text) -> Option<String> {
        // SAFETY: the tests' records point to texts that the tests keep.
        (address != 0).then(|| unsafe { CStr::from_ptr(address as *const c_char) }.to_string_lossy().into_owned())
    }

    fn push(&self, id: u64) -> Result<(), CuptiError> {
        lock(&self.state).pushed.push(id);
        Ok(())
    }

    fn pop(&self) -> Result<(), CuptiError> {
        lock(&self.state).pushed.pop().map(|_| ()).ok_or(CuptiError { function: "pop", text: String::new() })
    }
}

/// Records a session in which `run` plays CUDA; gives the trace and what the recorder says.
fn recorded(fake: &Arc<Fake>, run: impl FnOnce(&Fake)) -> (Store, Report) {
    let dir = tempfile::tempdir().unwrap();
    let session = events::start(dir.path(), events::Options::default()).unwrap();
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    let library: Arc<dyn Library> = fake.clone();
    let recorder = Recorder::start(library).unwrap();
    run(fake);
    let report = recorder.stop();
    // A rate of the clock that does not depend on how short the test was.
    std::thread::sleep(Duration::from_millis(30));
    drop(session);
    collector.stop();
    (read(dir.path()), report)
}

/// Ticks of a time in us after `base`; the rate is this machine's.
fn ticks() -> impl Fn(u64) -> u64 {
    let from = events::clock::anchor();
    std::thread::sleep(Duration::from_millis(60));
    let to = events::clock::anchor();
    let rate = (to.ticks - from.ticks) as f64 / (to.mono_ns - from.mono_ns) as f64;
    move |us| to.ticks + (us as f64 * 1_000.0 * rate) as u64
}

fn thread_id() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_string_lossy().parse().unwrap()
}

/// The calls of the runtime by their numbers.
const NAMES: [&str; 5] =
    ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaEventRecord", "cudaStreamWaitEvent", "cudaStreamSynchronize"];

/// The planted calls: us, as `(what, correlation, start, end, stream)`.
const CALLS: [(u32, u32, u64, u64); 8] = [
    (0, 1, 0, 10),        // launches `first`
    (1, 2, 10, 20),       // copies
    (2, 3, 20, 22),       // records an event behind the copy
    (3, 4, 22, 24),       // lets stream 7 wait for it
    (0, 5, 24, 34),       // launches `second`
    (4, 6, 40, 560),      // waits for stream 7
    (0, 7, 900, 910),     // launches `third`: late
    (0, 8, 1_020, 1_400), // launches `fourth`: the call is slow
];
const KERNELS: [(&str, u32, u64, u64); 4] =
    [("first", 1, 20, 120), ("second", 5, 440, 540), ("third", 7, 915, 1_015), ("fourth", 8, 1_405, 1_500)];
const COPY: (u32, u64, u64) = (2, 30, 430);

fn planted(texts: &mut Texts, tick: impl Fn(u64) -> u64) -> Vec<Vec<u8>> {
    let thread = thread_id();
    let mut records = Vec::new();
    for (id, correlation, start, end) in CALLS {
        records.push(call(true, id, tick(start), tick(end), thread, correlation));
    }
    records.push(event(3, 13, 5, 70));
    // The same event is recorded again later: its number says which is meant.
    records.push(event(99, 7, 5, 71));
    records.push(wait(2, tick(22), tick(24), 4, 7, 5, 70));
    records.push(wait(3, tick(40), tick(560), 6, 7, u32::MAX, 0));
    records.push(memcpy(tick(COPY.1), tick(COPY.2), 13, COPY.0, 4_000_000));
    for (name, correlation, start, end) in KERNELS {
        let name = texts.address(name);
        records.push(kernel!(CUpti_ActivityKernel9, tick(start), tick(end), 7u32, correlation, name));
    }
    // CUPTI reports works and calls in no common order.
    records.reverse();
    records
}

/// The same run as PyTorch's profiler writes it.
fn as_kineto() -> String {
    let event = |cat: &str, name: &str, (pid, tid): (u32, u32), start: u64, end: u64, args: Value| json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": end - start, "args": args});
    let calls = CALLS.map(|(id, correlation, start, end)| {
        event("cuda_runtime", NAMES[id as usize], (9, 9), start, end, json!({"correlation": correlation}))
    });
    let kernels = KERNELS.map(|(name, correlation, start, end)| {
        let args = json!({"correlation": correlation, "device": 2, "stream": 7});
        event("kernel", name, (2, 7), start, end, args)
    });
    let (correlation, start, end) = COPY;
    let args = json!({"correlation": correlation, "device": 2, "stream": 13, "bytes": 4_000_000});
    let copy = event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", (2, 13), start, end, args);
    let args = json!({
        "correlation": 4, "device": 2, "stream": 7, "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 13,
        "wait_on_cuda_event_record_corr_id": 3,
    });
    let wait = event("cuda_sync", "Stream Wait Event", (2, 7), 22, 24, args);
    let args = json!({"correlation": 6, "device": 2, "stream": 7, "cuda_sync_kind": "Stream Sync"});
    let sync = event("cuda_sync", "Stream Sync", (2, 7), 40, 560, args);
    let events: Vec<Value> = calls.into_iter().chain(kernels).chain([copy, wait, sync]).collect();
    json!({"traceEvents": events}).to_string()
}

fn args(store: &Store, slice: &SliceRef) -> Value {
    serde_json::from_str(&store.args().get(slice.args).unwrap()).unwrap()
}

/// Stalls by cause, in whole us, of streams.
fn causes(store: &Store) -> BTreeMap<&'static str, i64> {
    let mut found = BTreeMap::new();
    for stall in trace_analysis::stalls(store, store.range()) {
        if store.track(stall.track).unwrap().kind == trace_model::TrackKind::Stream {
            *found.entry(stall.cause.name()).or_default() += (stall.dur() + 500) / 1_000;
        }
    }
    found
}

#[test]
fn the_analysis_finds_what_was_planted_as_in_an_imported_trace() {
    let _turn = lock(&TURN);
    let mut texts = Texts::default();
    let fake = Fake::new(28);
    let tick = ticks();
    let (store, report) = recorded(&fake, |fake| {
        let records = planted(&mut texts, &tick);
        // Two buffers, of which one comes with the flush only.
        let (late, early) = records.split_at(5);
        assert!(fake.deliver(early, true) && fake.deliver(late, false));
        fake.flush(true).unwrap();
    });
    assert_eq!((report.works, report.calls, report.flows, report.waits), (5, 8, 5, 2));
    assert_eq!((report.without_call, report.unread.total(), report.no_track), (0, 0, 0));

    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), as_kineto()).unwrap();
    let mut imported = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[file.path().to_owned()]).unwrap().read_all(&mut imported).unwrap();

    let (live, other) = (causes(&store), causes(&imported));
    assert_eq!(live.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (cause, us) in &live {
        assert!((us - other[cause]).abs() <= 3, "{cause}: {live:?} {other:?}");
    }
    // Stream 7 stood still from 120 to 440 for the copy, from 540 to 560 for the wait, until 900 for the host, and
    // from 1,015 on for a slow call.
    let about = |cause: Cause, us: i64| {
        let found = live.get(cause.name()).copied().unwrap_or(0);
        assert!((found - us).abs() <= 15, "{}: {live:?}", cause.name());
    };
    about(Cause::Dma, 310);
    about(Cause::HostLate, 340 + 5);
    about(Cause::Launch, 15 + 385);
    assert!(live[Cause::Synchronisation.name()] >= 15, "{live:?}");

    let device = |store: &Store| {
        let rows = trace_analysis::report::analyse(store, store.range()).devices;
        let rows =
            rows.iter().map(|r| (r.device.clone(), r.times.compute_ns, r.times.copy_exposed_ns, r.streams.len()));
        rows.collect::<Vec<_>>()
    };
    for (live, other) in device(&store).iter().zip(&device(&imported)) {
        assert_eq!((&live.0, live.3), (&other.0, other.3));
        assert!((live.1 - other.1).abs() < 3_000 && (live.2 - other.2).abs() < 3_000, "{live:?} {other:?}");
    }
    assert_eq!(device(&store).len(), device(&imported).len());

    let copy = store.tracks().iter().find(|t| t.stream == Some(13)).unwrap();
    assert_eq!((copy.name.as_str(), copy.device.as_str()), ("GPU 2 stream 13", "GPU 2"));
    let slice = copy.lanes[0].slice(0).unwrap();
    assert_eq!(slice.arg, 4_000_000);
    let args = args(&store, &slice);
    assert_eq!(args["bytes"], 4_000_000);
    assert!((args["memory bandwidth (GB/s)"].as_f64().unwrap() - 10.0).abs() < 0.1, "{args}");
    let flows = store.flows().filter(|f| f.from.is_some() && f.to.is_some()).count();
    assert_eq!(flows, 5);
}

#[test]
fn kernels_belong_to_the_node_that_was_at_work() {
    let _turn = lock(&TURN);
    let mut texts = Texts::default();
    let (fake, tick) = (Fake::new(28), ticks());
    let (store, _) = recorded(&fake, |fake| {
        let node = events::node("layer1/MatMul", "MatMul", "/device:gpu:0");
        fake.push(u64::from(node.get())).unwrap();
        let id = *lock(&fake.state).pushed.last().unwrap();
        fake.pop().unwrap();
        assert!(lock(&fake.state).pushed.is_empty());
        let name = texts.address("_Z4gemmPfS_");
        let external = record!(CUpti_ActivityExternalCorrelation {
            kind: 39u32,
            externalKind: 3u32,
            externalId: id,
            correlationId: 1u32
        });
        assert!(fake.deliver(&[external, call(true, 0, tick(0), tick(5), thread_id(), 1)], true));
        assert!(fake.deliver(&[kernel!(CUpti_ActivityKernel9, tick(9), tick(50), 7u32, 1u32, name)], true));
    });
    let track = store.tracks().iter().find(|t| t.stream == Some(7)).unwrap();
    let slice = track.lanes[0].slice(0).unwrap();
    assert_eq!(store.nodes()[slice.node as usize].name, "layer1/MatMul");
    assert_eq!(store.sites()[slice.site as usize].name, "gemm(float*, float*)");
    let args = args(&store, &slice);
    assert_eq!(args["grid"], json!([11, 12, 13]));
    assert_eq!((&args["registers per thread"], &args["static shared memory"]), (&37.into(), &1024.into()));
}

#[test]
fn ranges_of_nvtx_nest_and_keep_what_came_with_them() {
    let _turn = lock(&TURN);
    let mut texts = Texts::default();
    let (fake, tick, thread) = (Fake::new(28), ticks(), thread_id());
    let (outer, inner, mark, whole, domain) = (
        texts.address("ProfilerStep#3"),
        texts.address("forward"),
        texts.address("saved"),
        texts.address("epoch"),
        texts.address("train"),
    );
    let (store, report) = recorded(&fake, |fake| {
        let data = record!(CUpti_ActivityMarkerData {
            kind: 13u32,
            flags: 2u32,
            id: 2u32,
            payloadKind: 1u32,
            payload: 64u64,
            color: 0xff_00_80_ffu32,
            category: 5u32,
        });
        let begun = [
            marker(2, tick(0), 1, 2, thread, outer, 0),
            marker(2, tick(10), 2, 2, thread, inner, domain),
            marker(2, tick(5), 3, 1, 0, whole, 0),
            marker(1, tick(12), 4, 2, thread, mark, 0),
            marker(2, tick(20), 5, 1, 0, whole, 0),
        ];
        assert!(fake.deliver(&begun, true));
        let ended = [
            data,
            marker(4, tick(30), 2, 2, thread, 0, domain),
            marker(4, tick(40), 1, 2, thread, 0, 0),
            marker(4, tick(90), 3, 1, 0, 0, 0),
            marker(4, tick(91), 77, 1, 0, 0, 0),
        ];
        assert!(fake.deliver(&ended, true));
    });
    assert_eq!((report.ranges, report.unended), (5, 1));
    let of = |name: &str| store.tracks().iter().find(|t| t.name.starts_with(name)).unwrap();
    let thread_track = of("NVTX of");
    assert_eq!((thread_track.tid, thread_track.n_slices()), (thread, 2));
    assert_eq!(store.steps().len(), 1);
    assert_eq!(of("NVTX ranges").n_slices(), 2, "the ended and the open one, which overlap");
    let slices: Vec<_> = thread_track.lanes.iter().flat_map(|l| l.slice(0)).collect();
    let forward = slices.iter().find(|s| store.sites()[s.site as usize].name == "forward").unwrap();
    let args = args(&store, forward);
    let want = json!({"domain": "train", "category": 5, "colour": "#0080ff", "payload": 64});
    assert_eq!(args, want);
}

#[test]
fn what_is_lost_or_odd_is_reported_in_the_trace() {
    let _turn = lock(&TURN);
    let (fake, tick) = (Fake::new(28), ticks());
    let (store, report) = recorded(&fake, |fake| {
        let unknown = vec![77u8, 0, 0, 0].into_iter().chain([0; 44]).collect::<Vec<u8>>();
        let timeless = kernel!(CUpti_ActivityKernel9, 0u64, 0u64, 7u32, 1u32, 0u64);
        // Begins before its call.
        let early = kernel!(CUpti_ActivityKernel9, tick(90), tick(150), 7u32, 2u32, 0u64);
        let launch = call(true, 0, tick(100), tick(110), thread_id(), 2);
        let alone = kernel!(CUpti_ActivityKernel9, tick(200), tick(250), 7u32, 3u32, 0u64);
        assert!(fake.deliver(&[unknown, timeless, early, launch, alone], true));
        // Every buffer is lent: CUPTI gets no more and drops.
        let one = memcpy(tick(300), tick(301), 13, 4, 8);
        while fake.deliver(std::slice::from_ref(&one), false) {}
        fake.flush(true).unwrap();
    });
    assert_eq!((report.unread.n_by_unknown_kind[&77], report.without_time, report.n_early), (1, 1, 1));
    assert_eq!(report.dropped, 1);
    assert!((report.max_early_ns - 10_000).abs() < 500, "{}", report.max_early_ns);
    let warnings_of = |kind, source: &str| {
        let found = store.warnings().iter().find(|w| w.kind == kind && w.source == source);
        found.unwrap_or_else(|| panic!("{source}: {:?}", store.warnings())).count
    };
    assert_eq!(warnings_of(WarningKind::Dropped, "CUDA unread"), 1);
    assert_eq!(warnings_of(WarningKind::Dropped, "CUDA records"), 1);
    assert_eq!(warnings_of(WarningKind::Dropped, "CUDA times"), 1);
    assert_eq!(warnings_of(WarningKind::Clock, "CUDA clock"), 1);
    assert!(warnings_of(WarningKind::Dropped, "CUDA work without its call") >= 1);
}

#[test]
fn where_it_cannot_be_recorded_the_trace_says_so() {
    let _turn = lock(&TURN);
    let dir = tempfile::tempdir().unwrap();
    let session = events::start(dir.path(), events::Options::default()).unwrap();
    let fake = Fake::new(28);
    lock(&fake.state).refuses = true;
    let library: Arc<dyn Library> = fake.clone();
    let why = Recorder::start(library).err().unwrap();
    assert!(matches!(&why, Unavailable::Refused(failed) if failed.text == "CUPTI_ERROR_NOT_INITIALIZED"), "{why}");
    drop(session);
    let store = read(dir.path());
    let warning = store.warnings().iter().find(|w| w.kind == WarningKind::Unavailable).unwrap();
    assert!(warning.source == "CUDA (CUPTI)" && warning.text.contains("NVIDIA's driver"), "{}", warning.text);

    // A second recorder, and one after a failure.
    let session = events::start(dir.path(), events::Options::default()).unwrap();
    lock(&fake.state).refuses = false;
    let library: Arc<dyn Library> = fake.clone();
    let first = Recorder::start(Arc::clone(&library)).unwrap();
    assert_eq!(Recorder::start(library).err(), Some(Unavailable::AlreadyRecording));
    assert!(!lock(&fake.state).on.is_empty());
    drop(first);
    assert!(lock(&fake.state).on.is_empty());
    drop(session);
}
