//! Sealed folders against the stores that they were written from.

use super::open::SealedTrace;
use super::sidecar::SIDECAR;
use super::slice_writer::Layout;
use super::writer::write_all;
use super::*;
use crate::follow::TraceReader;
use crate::sealing::seal;
use crate::store::{Store, StoreOptions};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::process::Command;
use trace_model::lod::{LEAF, Span};
use trace_model::{
    Batch, ClockOffset, Event, EventKind, Function, NO_ARGS, NO_NODE, Name, SliceRef, TrackKey, TrackKind, Warning,
    WarningKind,
};

const CATEGORIES: [&str; 6] = ["op", "shard", "step", "wait", "transfer", "mine"];
const SMALL: Layout = Layout { group_rows: 64, min_headers: 20 };

/// One event of a random trace.
#[derive(Clone, Debug)]
struct Random {
    track: u32,
    kind: u8,
    gap: i64,
    dur: i64,
    site: u32,
    number: u32,
    arg: u64,
    args: Option<String>,
}

fn random() -> impl Strategy<Value = Random> {
    let times = (prop_oneof![0i64..40, 0i64..40, Just(0), 0i64..5_000], prop_oneof![0i64..50, 0i64..50, Just(0)]);
    let args = prop::option::weighted(0.2, "[a-zé\"{}]{0,9}");
    (0u32..5, 0u8..20, times, 0u32..12, 0u32..9, any::<u64>(), args).prop_map(
        |(track, kind, (gap, dur), site, number, arg, args)| Random { track, kind, gap, dur, site, number, arg, args },
    )
}

/// The batches of a trace: `per_batch` events each.
fn batches(events: &[Random], per_batch: usize) -> Vec<Batch> {
    let mut at = [1_000i64; 5];
    let mut out = Vec::new();
    for part in events.chunks(per_batch) {
        let mut batch = Batch::new();
        batch.set_origin(500);
        names(&mut batch);
        for r in part {
            let key = TrackKey { pid: 1 + r.track % 2, ring: r.track };
            let now = &mut at[r.track as usize];
            let start = *now + r.gap;
            let (kind, end) = match r.kind {
                0 => (EventKind::Instant, start),
                1 => (EventKind::Counter, start),
                2 => (EventKind::FlowOut, start),
                3 => (EventKind::FlowIn, start),
                4 => (EventKind::Alloc, start),
                5 => (EventKind::Free, start),
                _ => (EventKind::Slice, start + r.dur),
            };
            // Every fourth slice stays open while the next ones run, so that lanes fill beyond the first.
            *now = if r.number % 4 == 0 { start } else { end };
            let has_args = matches!(kind, EventKind::Slice | EventKind::Instant);
            let args = r.args.as_ref().filter(|_| has_args).map_or(NO_ARGS, |text| batch.args(text));
            let is_sample = r.site % 12 == 6 && kind == EventKind::Instant;
            let arg = match kind {
                EventKind::Counter => f64::from(r.number).to_bits(),
                _ if is_sample => u64::from(r.number),
                _ => r.arg,
            };
            let node = if r.site % 3 == 0 { NO_NODE } else { r.number };
            let Random { site, number: correlation, .. } = *r;
            batch.track(key).events.push(Event { kind, depth: 0, start, end, site, node, correlation, arg, args });
        }
        out.push(batch);
    }
    out
}

fn names(batch: &mut Batch) {
    for pid in [1, 2] {
        batch.name(Name::Process { pid, host: format!("host{pid}"), name: "p".into(), ns_per_tick: 1.0 });
        for id in 0..12 {
            let category = if id == 6 { "sample" } else { CATEGORIES[id as usize % 6] }.into();
            batch.name(Name::Site { pid, id, category, name: format!("site {}", id / 2) });
        }
        stacks(batch, pid);
        // The same node on two devices, and one without a name.
        for id in 0..8 {
            let (name, device) = (format!("a/n{}", id / 2), format!("cpu:{}", id % 2));
            batch.name(Name::Node { pid, id, name, op: "MatMul".into(), device });
        }
    }
    let clock = Some(ClockOffset { offset_ns: -5_000_000_000, drift_ppb: -12.5, bound_ns: 800 });
    batch.name(Name::Clock { pid: 2, clock });
    let key = TrackKey { pid: 1, ring: 4 };
    let (kind, device) = (TrackKind::Stream, "gpu:0".to_owned());
    batch.name(Name::Track { key, kind, name: "s".into(), tid: 7, device, stream: Some(9), order: -3 });
    batch.warnings.push(Warning::new(WarningKind::Clock, "x", 3, "something, \"quoted\""));
}

/// Frames with functions inlined into each other, and stacks that share their callers. Each batch has them again, as
/// after a restart of the collector: the later ones count.
fn stacks(batch: &mut Batch, pid: u32) {
    for id in 0..3 {
        batch.name(Name::Frame { pid, id, module: "/lib/löwe.so".into(), address: u64::MAX - u64::from(id) });
        for line in 0..id {
            let function = Function { name: format!("f{id}<u8>"), file: "a.rs".into(), line };
            batch.name(Name::Function { pid, frame: id, function });
        }
    }
    for (id, parent, frame) in [(0, u32::MAX, 0), (1, 0, 1), (2, 1, 2), (5, 1, 0)] {
        batch.name(Name::Stack { pid, id, parent, frame });
    }
}

fn store_of(batches: Vec<Batch>) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    for batch in batches {
        store.apply(batch);
    }
    store
}

/// Everything that a store says, as text; slices without their number of args, with the text.
fn contents(store: &Store) -> Vec<String> {
    let mut out = vec![format!("{} {:?}", store.origin_ns(), store.range())];
    for track in store.tracks() {
        let crate::store::Track { key, process, name, tid, kind, device, stream, order, .. } = track;
        out.push(format!("{key:?} {process} {name} {tid} {kind:?} {device} {stream:?} {order} {:?}", track.open));
        out.push(format!("{} {} {}", track.dropped, track.overlapped, track.clipped));
        out.extend(
            track
                .instants
                .iter()
                .map(|i| format!("{:?} {:?}", trace_model::InstantEvent { args: 0, ..*i }, store.args().get(i.args))),
        );
        for (i, lane) in track.lanes.iter().enumerate() {
            out.push(format!("lane {i}: {} {} {:?}", lane.len(), lane.longest_ns(), lane.range()));
        }
        out.extend(slices(store, track).map(|slice| slice_text(store, &slice)));
    }
    out.extend(store.steps().iter().map(|s| format!("{s:?} {:?}", store.slice(s.slice).map(|s| s.start))));
    out.extend(store.flows().map(|f| format!("{f:?}")));
    out.extend(store.transfers().iter().map(|t| format!("{t:?}")));
    out.extend(store.memory().iter().map(|m| format!("{m:?}")));
    out.extend(store.counters().iter().map(|c| format!("{c:?}")));
    out.extend(store.processes().iter().map(|p| format!("{p:?}")));
    out.extend(store.sites().iter().map(|s| format!("{s:?}")));
    out.extend(store.nodes().iter().map(|n| format!("{n:?}")));
    out.extend(store.frames().iter().map(|f| format!("{f:?}")));
    out.extend(store.stacks().iter().map(|s| format!("{s:?}")));
    out.extend(store.warnings().iter().map(|w| format!("{w:?}")));
    out
}

fn slices<'a>(store: &'a Store, track: &'a crate::store::Track) -> impl Iterator<Item = SliceRef> + 'a {
    let range = store.range().start..store.range().end + 1;
    track.lanes.iter().flat_map(move |lane| lane.slices(&range).collect::<Vec<_>>())
}

fn slice_text(store: &Store, slice: &SliceRef) -> String {
    format!("{:?} {:?}", SliceRef { event: Event { args: 0, ..slice.event }, ..*slice }, store.args().get(slice.args))
}

fn open(folder: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(folder).unwrap().read_all(&mut store).unwrap();
    store
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn what_is_sealed_comes_back(events in prop::collection::vec(random(), 0..900), per_batch in 1usize..400) {
        let dir = tempfile::tempdir().unwrap();
        let store = store_of(batches(&events, per_batch));
        let expected = contents(&store);
        let folder = dir.path().join("whole");
        let sealed = write_all(&store, SealedWriter::with_layout(&folder, SMALL).unwrap()).unwrap();
        prop_assert_eq!(sealed.slices, store.stats().slices);
        prop_assert_eq!(&contents(&open(&folder)), &expected);
        // As a stream the same.
        let streamed = dir.path().join("streamed");
        let mut writer = SealedWriter::with_layout(&streamed, SMALL).unwrap();
        for batch in batches(&events, per_batch) {
            writer.apply(batch).unwrap();
        }
        writer.finish().unwrap();
        prop_assert_eq!(&contents(&open(&streamed)), &expected);
        // And what was sealed, sealed again.
        let again = dir.path().join("again");
        write_all(&open(&folder), SealedWriter::with_layout(&again, SMALL).unwrap()).unwrap();
        prop_assert_eq!(&contents(&open(&again)), &expected);
    }

    #[test]
    fn pictures_of_paged_lanes_are_those_of_resident_ones(
        events in prop::collection::vec(random(), 100..1_500),
        views in prop::collection::vec((0i64..20_000, 1i64..20_000, 1usize..200), 4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let store = store_of(batches(&events, 500));
        let folder = dir.path().join("t");
        write_all(&store, SealedWriter::with_layout(&folder, SMALL).unwrap()).unwrap();
        let paged = SealedTrace::open(&folder).unwrap().store;
        let pager = paged.pager().unwrap();
        let spans = |store: &Store, (from, len, px): (i64, i64, usize)| {
            let lanes = store.tracks().iter().flat_map(|t| &t.lanes);
            lanes.map(|lane| { let mut out = Vec::new(); lane.spans(from..from + len, px, &mut out); out }).collect::<Vec<_>>()
        };
        for view in views {
            let exact = spans(&store, view);
            // At first leaves at worst: without gaps, all of the exact picture and less than a leaf more at each end,
            // and each adds up by itself. A whole leaf more where it ends as the view begins: a slice without length
            // may lie there.
            let leaf = LEAF as u32;
            for (lane, (rough, exact)) in spans(&paged, view).iter().zip(&exact).enumerate() {
                let lane = paged.tracks().iter().flat_map(|t| &t.lanes).nth(lane).unwrap();
                prop_assert!(rough.windows(2).all(|two| two[0].first + two[0].count == two[1].first));
                let ends = |spans: &[Span]| Some((spans.first()?.first, spans.last().map(|s| s.first + s.count)?));
                if let Some((from, to)) = ends(exact) {
                    let (rough_from, rough_to) = ends(rough).unwrap();
                    let fits = rough_from <= from && from <= rough_from + leaf && to <= rough_to && rough_to < to + leaf;
                    prop_assert!(fits, "{view:?}: {from}..{to}, at first {rough_from}..{rough_to}");
                }
                for span in rough {
                    crate::lod_tests::check_span(&paged, lane, span);
                }
            }
            let version = paged.version();
            while pager.load_requested() { spans(&paged, view); }
            prop_assert!(paged.version() >= version);
            // Neighbours may be joined otherwise than in memory, where the last leaf is not complete: both keep the
            // promise.
            for (lane, exact) in paged.tracks().iter().flat_map(|t| &t.lanes).zip(&exact) {
                crate::lod_tests::check(&paged, lane, view.0..view.0 + view.1, view.2);
                let mut found = Vec::new();
                lane.spans(view.0..view.0 + view.1, view.2, &mut found);
                let sums = |spans: &[Span]| {
                    let sum = |of: fn(&Span) -> i64| spans.iter().map(of).sum::<i64>();
                    (sum(|s| i64::from(s.count)), sum(|s| s.busy_ns), sum(|s| s.wait_ns), spans.first().map(|s| s.first))
                };
                prop_assert_eq!(sums(&found), sums(exact));
            }
        }
    }
}

/// A trace of some row groups, with everything in it.
fn sample(folder: &Path) -> Store {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let events = prop::collection::vec(random(), 700..701);
    let events = proptest::strategy::ValueTree::current(&events.new_tree(&mut runner).unwrap());
    let store = store_of(batches(&events, 200));
    write_all(&store, SealedWriter::with_layout(folder, SMALL).unwrap()).unwrap();
    store
}

#[test]
fn damage_is_reported_and_nothing_wrong_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let store = sample(&folder);
    let all: std::collections::HashSet<String> =
        store.tracks().iter().flat_map(|t| slices(&store, t)).map(|s| slice_text(&store, &s)).collect();
    let expected = contents(&store);
    let (mut n, mut random) = (0, 0x9e37_79b9_7f4a_7c15u64);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let good = fs::read(&path).unwrap();
        for round in 0..30 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 33) as usize % good.len();
            let mut bad = good.clone();
            match round % 3 {
                0 => bad.truncate(at),
                _ => bad[at] ^= 1 << (random >> 20 & 7),
            }
            fs::write(&path, &bad).unwrap();
            let opened = open(&folder);
            let what = format!("{name}, byte {at} of {}, round {round}", good.len());
            let damaged = opened.warnings().iter().filter(|w| w.kind == WarningKind::Damage).count();
            assert!(damaged > 0 || contents(&opened) == expected, "{what}: silent");
            // Names gone, the slices come with other rows of names; everything else shows slices as they were.
            if !["meta", "sites", "nodes", "tracks", "processes", "checksums"].iter().any(|n| name.starts_with(n)) {
                for slice in opened.tracks().iter().flat_map(|t| slices(&opened, t)) {
                    let text = slice_text(&opened, &slice);
                    let is_shifted = opened.slice(slice.id).is_some() && damaged > 0 && name.starts_with("lod");
                    assert!(all.contains(&text) || is_shifted, "{what}: {text}");
                }
            }
            n += 1;
            // A sidecar that was made again is as good.
            fs::write(&path, &good).unwrap();
        }
    }
    assert!(n >= 20 * 30, "{n} damaged files tried");
    assert_eq!(contents(&open(&folder)), expected);
}

#[test]
fn a_missing_sidecar_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let store = sample(&folder);
    fs::remove_file(folder.join(SIDECAR)).unwrap();
    let slices_of = |store: &Store| {
        let all = store.tracks().iter().flat_map(|t| slices(store, t));
        all.map(|s| slice_text(store, &s)).collect::<Vec<_>>()
    };
    let opened = open(&folder);
    assert_eq!(slices_of(&opened), slices_of(&store));
    assert_eq!(opened.warnings().iter().filter(|w| w.kind == WarningKind::Damage).count(), 1);
    assert_eq!(contents(&open(&folder)), contents(&store), "and is there the next time");
}

#[test]
fn memory_stays_in_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let store = sample(&folder);
    let opened = SealedTrace::open(&folder).unwrap().store;
    let pager = opened.pager().unwrap();
    let budget = 3 * 64 * 64;
    pager.set_budget(budget);
    let read: Vec<String> = opened
        .tracks()
        .iter()
        .flat_map(|t| t.lanes.iter().flat_map(|l| (0..l.len() as u32).filter_map(|i| l.slice(i))))
        .inspect(|_| assert!(pager.stats().bytes <= budget, "{:?}", pager.stats()))
        .map(|slice| slice_text(&opened, &slice))
        .collect();
    assert_eq!(read.len() as u64, store.stats().slices);
    assert!(pager.stats().loads > 20, "groups came and went: {:?}", pager.stats());
}

#[test]
fn other_programs_parquet_opens() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let store = sample(&folder);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("slices.parquet") {
            fs::remove_file(path).unwrap();
        }
    }
    let opened = open(&folder);
    let stats = |store: &Store| {
        let durs = store.tracks().iter().flat_map(|t| slices(store, t)).map(|s| s.dur());
        (store.stats().slices, durs.sum::<i64>())
    };
    assert_eq!(stats(&opened), stats(&store));
    let names = |store: &Store| {
        let all = store.tracks().iter().flat_map(|t| slices(store, t));
        let mut names: Vec<String> = all.map(|s| store.slice_name(&s).to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&opened), names(&store));
}

#[test]
fn a_folder_with_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("home");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("letter.txt"), "dear").unwrap();
    let error = write(&store_of(Vec::new()), &folder).unwrap_err().to_string();
    assert!(error.contains("something else"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no scratch folder stays");
    assert_eq!(fs::read_to_string(folder.join("letter.txt")).unwrap(), "dear");
}

/// What a child process of the kill test does; nothing else sets the variable.
#[test]
fn child_that_seals() {
    if let Ok(dir) = std::env::var("STEPSCOPE_TEST_RECORD") {
        record(Path::new(&dir), 3_000);
    }
    if let Ok(dir) = std::env::var("STEPSCOPE_TEST_SEAL") {
        seal(Path::new(&dir)).unwrap();
    }
}

#[test]
fn a_kill_at_any_step_leaves_a_readable_trace() {
    for at in ["begun", "written", "files", "verified", "placed", "sealed", "removed", "nowhere"] {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("trace");
        let child = |what: &str| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "seal::tests::child_that_seals", "--test-threads=1"]).env(what, &trace);
            child.env("STEPSCOPE_TEST_KILL_AT", at).output().unwrap()
        };
        assert!(child("STEPSCOPE_TEST_RECORD").status.success());
        let before = summary(&open(&trace));
        assert!(before.0 >= 3_000);
        let output = child("STEPSCOPE_TEST_SEAL");
        assert_eq!(output.status.success(), at == "nowhere", "{at}: {}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(summary(&open(&trace)), before, "killed at {at}");
        let report = seal(&trace).unwrap();
        assert_eq!(report.removal_obstacle, None);
        assert_eq!(summary(&open(&trace)), before, "sealed after a kill at {at}");
        let mut left: Vec<String> =
            fs::read_dir(&trace).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["control", "sealed"], "after a kill at {at}");
        // A second recording in the same folder, live and sealed again.
        record(&trace, 500);
        let after = summary(&open(&trace));
        assert_eq!(after.0, before.0 + 500);
        assert!(seal(&trace).unwrap().sealed.is_some());
        assert_eq!(summary(&open(&trace)), after);
    }
}

#[test]
fn the_first_version_still_opens() {
    // Written by the program of 2026-11-21, before there were tables of call stacks: `train convnet --devices 2 --steps
    // 1`.
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sealed-1");
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(fixture).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let old = fs::read(folder.join(SIDECAR)).unwrap();
    let store = open(&folder);
    assert_eq!(store.warnings().iter().map(|w| &w.text).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(fs::read(folder.join(SIDECAR)).unwrap() != old, "its pyramids are made again, once");
    for lane in store.tracks().iter().flat_map(|track| &track.lanes).filter(|lane| !lane.is_empty()) {
        crate::lod_tests::check(&store, lane, store.range(), 100);
    }
    let n_instants: usize = store.tracks().iter().map(|t| t.instants.len()).sum();
    assert_eq!((store.stats().slices, n_instants, store.steps().len()), (446, 57, 15));
    // Sealed again it is of this version, and says the same.
    write(&store, &dir.path().join("again")).unwrap();
    assert_eq!(contents(&open(&dir.path().join("again"))), contents(&store));
}

/// Records slices of this process into a folder, as a program and its collector do.
fn record(trace: &Path, n: u64) {
    let _turn = crate::testkit::RECORDING.lock();
    let session = events::start(trace, events::Options::default()).unwrap();
    let collector = trace_record::Collector::start(trace, trace_record::CollectorOptions::default()).unwrap();
    let site = events::site("seal", "work");
    for i in 0..n {
        let begin = events::now();
        events::emit_slice(begin, events::now(), site, events::NodeId::NONE, 0, i);
    }
    drop(session);
    assert_eq!(collector.stop().dropped, 0);
}

fn summary(store: &Store) -> (u64, i64, Vec<String>, Vec<String>) {
    let all = || store.tracks().iter().flat_map(|t| slices(store, t));
    let mut args: Vec<String> = all().map(|s| format!("{} {}", store.slice_name(&s), s.arg)).collect();
    args.sort();
    (
        store.stats().slices,
        all().map(|s| s.dur()).sum(),
        args,
        store.warnings().iter().map(|w| w.text.clone()).collect(),
    )
}

#[test]
fn a_follower_goes_on_while_the_trace_is_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    record(&trace, 2_000);
    let mut early = TraceReader::open(&trace).unwrap();
    let mut late = TraceReader::open(&trace).unwrap();
    let (mut shown, mut replaced) = (Store::new(), Store::new());
    early.read_all(&mut shown).unwrap();
    let before = summary(&shown);
    assert!(seal(&trace).unwrap().removed_bytes > 0);
    early.read_all(&mut shown).unwrap();
    assert_eq!(summary(&shown), before);
    // One that had not read it takes the sealed form.
    late.read_all(&mut replaced).unwrap();
    assert_eq!(summary(&replaced), before);
}
