//! Importing whole files: our own, and those of other tools.

use super::*;
use std::io::Write;
use trace_model::{Category, Counter, SliceRef, TrackKind};
use trace_store::{StoreOptions, Track};

/// A store from a file of this name and content, and its warnings.
pub(super) fn import_bytes(content: &[u8]) -> Store {
    read_bytes(content).unwrap()
}

pub(super) fn read_bytes(content: &[u8]) -> Result<Store, ImportError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    open(&[file.path().to_owned()])?.read_all(&mut store)?;
    Ok(store)
}

/// Files that are nothing but damage, of each format that can say: an error that names the file and the damage, and no empty trace.
#[test]
fn what_cannot_be_read_at_all_is_an_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in
        ["tensorflow.xplane.pb", "xprof/tpu.xplane.pb", "packets.pftrace", "run_metadata.pb", "trace-cmd/v6.dat"]
    {
        let whole = std::fs::read(folder.join(name)).unwrap();
        // Its beginning says what it is, and nothing follows that is of any use.
        for n in [24, 60] {
            let mut bytes = whole[..n].to_vec();
            bytes.extend((0..4_000u32).map(|i| (i * 37 % 251) as u8 | 0x80));
            match read_bytes(&bytes) {
                Err(ImportError::Unreadable(_, why)) => assert!(!why.is_empty(), "{name}"),
                Err(ImportError::Foreign(..) | ImportError::Io(..)) => {}
                Ok(store) => assert!(store.stats().slices > 0, "{name}, {n}: an empty trace"),
            }
        }
    }
    let good = folder.join("tensorflow.xplane.pb");
    let mut bad = tempfile::Builder::new().suffix(".xplane.pb").tempfile().unwrap();
    bad.write_all(&std::fs::read(&good).unwrap()[..30]).unwrap();
    assert!(read_bytes(br#"{"traceEvents":[]}"#).is_ok(), "nothing happened, and that is whole");
    let store = import(&[good, bad.path().to_owned()]);
    assert!(store.stats().slices > 0 && warnings(&store).iter().any(|w| w.contains("ends in the middle")));
}

pub(super) fn import(paths: &[PathBuf]) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    open(paths).unwrap().read_all(&mut store).unwrap();
    store
}

/// A real trace; without it the check is left out.
#[track_caller]
pub(super) fn data(name: &str) -> Option<PathBuf> {
    test_support::data(&format!("traces/{name}"))
}

pub(super) fn slices(track: &Track) -> impl Iterator<Item = SliceRef> + '_ {
    track.lanes.iter().flat_map(|lane| lane.slices(&(i64::MIN..i64::MAX)))
}

/// Every slice as `track: name start..end`, sorted.
pub(super) fn shown(store: &Store) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for track in store.tracks() {
        let line = |s: SliceRef| {
            let (from, to) = (s.start + store.origin_ns(), s.end + store.origin_ns());
            format!("{}: {} {from}..{to}", track.name, store.slice_name(&s))
        };
        lines.extend(slices(track).map(line));
    }
    lines.sort();
    lines
}

pub(super) fn warnings(store: &Store) -> Vec<&str> {
    store.warnings().iter().map(|w| &*w.text).collect()
}

fn check(json: &str, expected: &[&str], warned: &[&str]) {
    let store = import_bytes(json.as_bytes());
    assert_eq!(shown(&store), expected, "{json}");
    assert_eq!(warnings(&store), warned, "{json}");
}

#[test]
fn objects_and_arrays_closed_or_not() {
    let a = r#"{"ph":"X","name":"a","pid":1,"tid":2,"ts":1,"dur":1.5}"#;
    let b = r#"{"name":"b","ts":"3","ph":"X","tid":2,"pid":1,"dur":0.001,"args":{"x":[{"y":"}"}]}}"#;
    let both = ["thread 2: a 1000..2500", "thread 2: b 3000..3001"];
    for text in [
        format!("[{a},{b}]"),
        format!("[{a},\n{b}"),
        format!("[\n{a},\n{b},\n"),
        format!("[{a},,{b},]"),
        format!(r#"{{"traceEvents":[{a},{b}]}}"#),
        format!("\u{feff} {{\"displayTimeUnit\": \"ns\", \"traceEvents\" : [ {a} , {b} , ], \"otherData\": {{}} }}\n"),
        format!(r#"{{"metadata":{{"traceEvents":"no"}},"traceEvents":[{a}],"x":1}}{{"traceEvents":[{b}]}}"#),
    ] {
        check(&text, &both, &[]);
    }
    check(&format!(r#"{{"traceEvents":[{a},{b}"#), &both, &["the file ends in the middle of something, at byte 154"]);
    let cut = format!("[{a},{}", &b[..40]);
    check(&cut, &both[..1], &["the file ends in the middle of something, at byte 55"]);
}

#[test]
fn damage_costs_what_is_damaged() {
    let event = |name: &str, ts: u32| format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":2,"ts":{ts},"dur":1}}"#);
    let (a, b, c) = (event("a", 1), event("b", 3), event("c", 5));
    let text = format!("[{a},{{\"ph\":\"X\" \"name\":oops}},{b},{{\"ph\"::}},#!?,{c}]");
    check(
        &text,
        &["thread 2: a 1000..2000", "thread 2: b 3000..4000", "thread 2: c 5000..6000"],
        &["2 damaged places skipped, the first at byte 54"],
    );
    // A quote that is missing swallows its event only.
    let text = format!("[{a},{},{c}]", b.replace("\"b\"", "\"b"));
    let store = import_bytes(text.as_bytes());
    assert_eq!(shown(&store), ["thread 2: a 1000..2000", "thread 2: c 5000..6000"]);
}

#[test]
fn malformed_files_of_public_bug_reports() {
    let Some(folder) = data("malformed") else { return };
    let read = |name: &str| {
        let store = import(&[folder.join(name)]);
        let warnings = warnings(&store).join(" | ");
        (shown(&store), warnings)
    };
    let (shown, warned) = read("unescaped_quotes_pytorch_113001.json");
    assert_eq!((shown.len(), &*warned), (1, ""));
    assert_eq!(shown[0], "thread 1: lib = Library(\"_t\", \"IMPL\")\n(1): <module> 1000..1000");
    let (shown, warned) = read("control_char_pytorch_136180.json");
    assert_eq!((shown.len(), &*warned), (1, ""));
    let (shown, warned) = read("overlapping_x_perfetto_4280.json");
    assert_eq!(
        shown,
        ["thread 7: A 3000..6776", "thread 7: B 5000..7000"].map(|s| s.replace("thread 7", "GPU 0 stream 7"))
    );
    assert_eq!(warned, "");
    let (shown, warned) = read("kernel_before_launch_kineto_1380.json");
    assert_eq!(shown, ["GPU 0 stream 7: nccl 98500..118500", "thread 1: cudaLaunchKernel 100000..105000"]);
    assert_eq!(warned, "");
    let (shown, warned) = read("negative_dur_and_ts.json");
    assert_eq!(shown, ["GPU 0 stream 7: k -5000..-4000", "GPU 0 stream 7: k 5000..5000"]);
    assert!(warned.contains("1 slices end before they begin") && warned.contains("1 events with a time beyond"));
    let (shown, warned) = read("begin_without_end.json");
    assert_eq!(shown, ["thread 1: open 1000..2000"]);
    assert_eq!(warned, "1 ends without a begin left out; 1 slices without an end (closed at the trace's end)");
    assert_eq!(read("flow_without_start.json").1, "1 ends of arrows whose other end is missing");
    assert_eq!(read("trailing_comma.json").0.len(), 5);
    assert!(read("bare_array_no_close.json").0.len() > 10);
}

/// Counts and sums as Python's own JSON reader sees them: `tests/fixtures` has none of these, so they are computed here.
#[test]
fn kineto_files_as_serde_reads_them() {
    for name in ["hta_nccl_data.json.gz", "hta_multirank_sampled_rank-0.json.gz", "hta_critical_path_alexnet.json.gz"] {
        let Some(path) = data(name) else { return };
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()), &mut text)
            .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let mut expected: std::collections::BTreeMap<String, (u64, f64)> = Default::default();
        for event in json["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X") {
            let row = expected.entry(event["name"].as_str().unwrap().to_owned()).or_default();
            row.0 += 1;
            row.1 += event["dur"].as_f64().unwrap_or(0.0);
        }
        let store = import(std::slice::from_ref(&path));
        let mut found: std::collections::BTreeMap<String, (u64, f64)> = Default::default();
        for slice in store.tracks().iter().flat_map(slices) {
            let row = found.entry(store.slice_name(&slice).to_owned()).or_default();
            row.0 += 1;
            row.1 += slice.dur() as f64 / 1e3;
        }
        assert_eq!(found.len(), expected.len(), "{name}");
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            assert_eq!(found.0, expected.0, "{name}");
            assert!((found.1 - expected.1).abs() <= 1e-3 * expected.0 as f64, "{name}: {found:?} {expected:?}");
        }
    }
}

#[test]
fn a_kineto_trace_in_our_words() {
    let Some(path) = data("hta_nccl_data.json.gz") else { return };
    let store = import(&[path]);
    let n_of = |category| store.tracks().iter().flat_map(slices).filter(|s| store.category(s) == category).count();
    // As counted in the file by category.
    assert_eq!(n_of(Category::Op), 14_346);
    assert_eq!(n_of(Category::Kernel) + n_of(Category::Collective), 2_700);
    assert_eq!(n_of(Category::Copy), 960 + 114);
    assert_eq!(n_of(Category::Launch) + n_of(Category::Sync), 8_740);
    let streams: Vec<&Track> = store.tracks().iter().filter(|t| t.kind == TrackKind::Stream).collect();
    assert!(streams.iter().all(|t| t.device == "GPU 0 NVIDIA A100-PG509-200" && t.stream.is_some()));
    // Every kernel's launch is in its process, under its correlation.
    let launches: std::collections::HashSet<(u32, u32)> = store
        .tracks()
        .iter()
        .flat_map(|t| slices(t).filter(|s| store.category(s) == Category::Launch).map(|s| (t.process, s.correlation)))
        .collect();
    let kernels = streams.iter().flat_map(|t| slices(t).map(|s| (s, t.process)));
    let kernels = kernels.filter(|(s, _)| matches!(store.category(s), Category::Kernel | Category::Collective));
    let (found, lost): (Vec<_>, Vec<_>) = kernels.partition(|(s, p)| launches.contains(&(*p, s.correlation)));
    assert_eq!((found.len(), lost.len()), (2_700, 0));
    let args = store.args().get(found[0].0.args).unwrap();
    assert!(args.starts_with('{') && args.contains("\"correlation\""), "{args}");
    assert!(store.flows().filter(|f| f.from.is_some() && f.to.is_some()).count() > 3_000);
}

/// Kineto's process of a device may have other tracks than streams: its work is the launching process's all the same, which so finds its
/// launches, and is no peer of the host.
#[test]
fn a_devices_work_is_of_the_process_that_launched_it_whatever_else_the_device_has() {
    let slice = |cat: &str, name: &str, pid: u32, tid: i32, ts: u32, dur: u32, args: &str| {
        format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
        )
    };
    let label = |pid: u32, label: &str| {
        format!(r#"{{"ph":"M","name":"process_labels","pid":{pid},"tid":0,"args":{{"labels":"{label}"}}}}"#)
    };
    let work = [
        label(7, "CPU"),
        label(0, "GPU 0"),
        slice("cpu_op", "aten::mm", 7, 7, 0, 90, ""),
        slice("cuda_runtime", "cudaLaunchKernel", 7, 7, 10, 5, r#""correlation":1"#),
        slice("kernel", "gemm", 0, 20, 100, 400, r#""correlation":1,"device":0,"stream":20"#),
        slice("cuda_runtime", "cudaDeviceSynchronize", 7, 7, 95, 410, r#""correlation":2"#),
    ];
    let others = [
        slice("cuda_sync", "Context Sync", 0, -1, 500, 1, r#""correlation":2,"cuda_sync_kind":"Context Sync""#),
        slice("python_function", "threading.py(359): wait", 0, 0, 0, 500, ""),
    ];
    for more in [&others[..0], &others[..1], &others[1..], &others] {
        let store = import_bytes(format!("[{}]", [&work, more].concat().join(",")).as_bytes());
        let host = store.tracks().iter().find(|t| t.tid == 7).unwrap();
        let streams: Vec<&Track> = store.tracks().iter().filter(|t| t.kind == TrackKind::Stream).collect();
        assert!(streams.iter().all(|t| t.process == host.process && t.device == "GPU 0"), "{more:?}");
        let found = trace_analysis::report::analyse(&store, store.range());
        assert!(
            found.stalls.iter().all(|s| s.cause != trace_analysis::stalls::Cause::PeerLate),
            "{more:?}: {:?}",
            found.stalls
        );
        let kernel = found.findings.iter().find(|f| f.text.contains("`gemm`")).unwrap();
        assert_eq!(kernel.saves_ns, 200_000, "the call waits for the kernel: {more:?}, {:#?}", found.findings);
    }
}

#[test]
fn ranks_stay_apart_and_share_a_clock() {
    let (Some(a), Some(b)) =
        (data("hta_multirank_sampled_rank-0.json.gz"), data("hta_multirank_sampled_rank-1.json.gz"))
    else {
        return;
    };
    let (alone, other) = (import(std::slice::from_ref(&a)), import(std::slice::from_ref(&b)));
    let both = import(&[a, b]);
    assert_eq!(both.stats().slices, alone.stats().slices + other.stats().slices);
    let hosts: std::collections::BTreeSet<&str> = both.processes().iter().map(|p| &*p.host).collect();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), ["rank 0", "rank 1"]);
}

#[test]
fn bytes_that_were_changed_lose_what_they_touch() {
    let event = |i: u32| {
        format!(r#"{{"ph":"X","name":"e{i}","pid":1,"tid":2,"ts":{i}0,"dur":5,"args":{{"n":"{i}","l":[1,2]}}}}"#)
    };
    let whole = format!("{{\"traceEvents\":[\n{}\n]}}", (0..60).map(event).collect::<Vec<_>>().join(",\n"));
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..3_000 {
        let mut bytes = whole.clone().into_bytes();
        let at = 20 + next(bytes.len() - 20);
        bytes[at] = b"\"{}[],:\\ \x00\xff1a"[next(13)];
        let mut stage = Stage::new("x");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let input = Input { file: std::sync::Arc::new(file), length: bytes.len() as u64 };
        let mut reader = chrome::Chrome::new(&input);
        while reader.read(&mut stage).unwrap() {}
        let n: usize = stage.tracks.iter().map(|t| t.slices.len() + t.points.len() + t.marks.len()).sum();
        assert!(
            n >= 57,
            "{n} events left of {}",
            String::from_utf8_lossy(&bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())])
        );
    }
}

fn counter_line(store: &Store, c: &Counter) -> String {
    let site = &store.sites()[c.site as usize];
    let times: Vec<i64> = c.time.iter().map(|t| t + store.origin_ns()).collect();
    format!("counter {} {} {times:?} {:?}", site.category_name, site.name, c.value)
}

/// Everything that a store says, in words, for comparing two.
fn contents(store: &Store) -> Vec<String> {
    let origin = store.origin_ns();
    let mut lines = Vec::new();
    let args = |row| store.args().get(row).map_or(String::new(), std::borrow::Cow::into_owned);
    for track in store.tracks() {
        let process = &store.processes()[track.process as usize];
        let (name, kind, device, stream) = (&track.name, track.kind, &track.device, track.stream);
        lines.push(format!("track {} {name} {kind:?} {device} {stream:?} {} {}", process.name, track.order, track.tid));
        for s in slices(track) {
            let site = &store.sites()[s.site as usize];
            let (from, to) = (s.start + origin, s.end + origin);
            let numbers = (s.correlation, s.arg, s.id.lane);
            lines.push(format!(
                "{name}: {} {} {from}..{to} {numbers:?} {}",
                site.category_name,
                site.name,
                args(s.args)
            ));
        }
        for i in &track.instants {
            let site = &store.sites()[i.site as usize];
            let time = i.time + origin;
            lines.push(format!("{name}: instant {} {} {time} {}", site.category_name, site.name, args(i.args)));
        }
    }
    lines.extend(store.counters().iter().map(|c| counter_line(store, c)));
    for f in store.flows() {
        let end =
            |e: Option<trace_model::FlowEnd>| e.map(|e| (&store.tracks()[e.track.0 as usize].name, e.time + origin));
        let site = &store.sites()[f.site as usize];
        lines.push(format!("flow {} {:?} {:?}", site.name, end(f.from), end(f.to)));
    }
    for m in store.memory() {
        lines.push(format!("memory {} {} {}", store.sites()[m.site as usize].name, m.time + origin, m.bytes));
    }
    lines.sort();
    lines
}

pub(super) fn same(a: &Store, b: &Store) {
    let (a, b) = (contents(a), contents(b));
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a, b);
    }
    assert_eq!(a.len(), b.len());
}

#[test]
fn what_is_exported_comes_back() {
    for name in ["hta_nccl_data.json.gz", "catapult_nestable_async.json", "catapult_flow_simple.json"] {
        let Some(path) = data(name) else { return };
        let store = import(&[path]);
        let mut json = Vec::new();
        crate::export::export(&store, crate::export::ExportFormat::Chrome, &mut json, &mut |_| {}).unwrap();
        serde_json::from_slice::<serde_json::Value>(&json).unwrap();
        same(&store, &import_bytes(&json));
    }
}

/// What Perfetto's format has a place for: arguments in any order, arrows between slices, no numbers with them.
fn contents_for_perfetto(store: &Store) -> Vec<String> {
    let origin = store.origin_ns();
    let mut lines = Vec::new();
    let args = |row| store.args().get(row).and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let of_track = |track: &Track| {
        let process = &store.processes()[track.process as usize];
        format!("{} {} {} {:?}", process.name, process.host, track.name, track.kind)
    };
    for track in store.tracks().iter().filter(|t| t.n_slices() + t.instants.len() > 0) {
        let title = of_track(track);
        lines.push(format!("{title}: {} {:?} {} {}", track.device, track.stream, track.order, track.tid));
        for s in slices(track) {
            let site = &store.sites()[s.site as usize];
            let (from, to) = (s.start + origin, s.end + origin);
            let own = args(s.args);
            lines.push(format!("{title}: {} {} {from}..{to} {own:?}", site.category_name, store.slice_name(&s)));
        }
        for i in &track.instants {
            let site = &store.sites()[i.site as usize];
            lines.push(format!("{title}: at {} {} {:?}", i.time + origin, site.name, args(i.args)));
        }
    }
    lines.extend(store.counters().iter().map(|c| counter_line(store, c)));
    let end = |end: trace_model::FlowEnd| {
        let track = &store.tracks()[end.track.0 as usize];
        let running = slices(track).filter(|s| s.start <= end.time && (end.time < s.end || end.time == s.start));
        let start = running.map(|s| s.start).max().unwrap_or(end.time);
        format!("{} {}", of_track(track), start + origin)
    };
    lines.extend(store.flows().filter_map(|f| Some(format!("flow {} > {}", end(f.from?), end(f.to?)))));
    lines.sort();
    lines
}

#[test]
fn what_perfetto_can_hold_comes_back() {
    for name in ["hta_nccl_data.json.gz", "catapult_nestable_async.json", "catapult_flow_simple.json"] {
        let Some(path) = data(name) else { return };
        let store = import(&[path]);
        let mut bytes = Vec::new();
        crate::export::export(&store, crate::export::ExportFormat::Perfetto, &mut bytes, &mut |_| {}).unwrap();
        let back = import_bytes(&bytes);
        assert_eq!(warnings(&back), Vec::<&str>::new());
        let (a, b) = (contents_for_perfetto(&store), contents_for_perfetto(&back));
        let without = |these: &[String], those: &[String]| {
            these.iter().filter(|line| those.binary_search(line).is_err()).cloned().collect::<Vec<_>>()
        };
        assert_eq!(without(&a, &b), Vec::<String>::new(), "{name}: lost");
        // The end of an arrow where nothing runs is an instant there.
        assert!(without(&b, &a).iter().all(|line| line.contains(": at ")), "{name}: {:?}", without(&b, &a));
        assert_eq!(b.len() - a.len(), without(&b, &a).len(), "{name}: as many of each");
    }
}

/// Number and length of the slices of each name.
fn by_name(store: &Store) -> std::collections::BTreeMap<String, (u64, i64)> {
    let mut by_name = std::collections::BTreeMap::<String, (u64, i64)>::new();
    for slice in store.tracks().iter().flat_map(slices) {
        let row = by_name.entry(store.slice_name(&slice).to_owned()).or_default();
        *row = (row.0 + 1, row.1 + slice.dur());
    }
    by_name
}

/// A file of `tests/fixtures`, with what the tool whose format it has says is in it.
fn fixture(name: &str) -> Store {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let expected = std::fs::read_to_string(path.with_file_name(format!("{name}.expected.json"))).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let store = import(&[path]);
    let found: serde_json::Map<String, serde_json::Value> =
        by_name(&store).into_iter().map(|(name, (n, ns))| (name, serde_json::json!([n, ns]))).collect();
    assert_eq!(serde_json::Value::Object(found), expected["by_name"], "{name}: {:?}", warnings(&store));
    assert_eq!(expected["slices"], store.stats().slices);
    store
}

#[test]
fn xplane_as_tensorflow_reads_it() {
    let store = fixture("tensorflow.xplane.pb");
    let streams: Vec<&Track> = store.tracks().iter().filter(|t| t.device == "GPU:0").collect();
    assert_eq!(streams.iter().map(|t| t.stream).collect::<Vec<_>>(), [Some(13), Some(14)]);
    let steps: Vec<u32> = store.steps().iter().map(|s| s.id).collect();
    assert_eq!(steps, [0, 1, 2]);
    let kinds: std::collections::BTreeSet<_> =
        slices(streams[0]).map(|s| format!("{:?}", store.category(&s))).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["Collective", "Copy", "Kernel"]);
    assert!(slices(streams[1]).map(|s| s.correlation).eq(14_000..14_100));
    assert_eq!(warnings(&store), [""; 0]);
}

/// What JAX leaves of one session: the planes, the events made from them, and Perfetto's file made from these.
#[test]
fn the_files_of_a_session_are_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("plugins/profile/2026_01_02");
    std::fs::create_dir_all(&session).unwrap();
    let planes = session.join("h.xplane.pb");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tensorflow.xplane.pb"), &planes).unwrap();
    let alone = import(std::slice::from_ref(&planes));
    let mut json = Vec::new();
    crate::export::export(&alone, crate::export::ExportFormat::Chrome, &mut json, &mut |_| {}).unwrap();
    for name in ["h.trace.json", "perfetto_trace.json"] {
        std::fs::write(session.join(name), &json).unwrap();
    }
    let [found] = &traces(dir.path())[..] else { panic!("one session") };
    assert_eq!(found.files.len(), 3);
    let store = import(&found.files);
    same(&alone, &store);
    let hosts = |store: &Store| store.processes().iter().map(|p| p.host.clone()).collect::<Vec<_>>();
    assert_eq!(hosts(&store), hosts(&alone), "no ranks");
    let said =
        ["h.trace.json", "perfetto_trace.json"].map(|name| format!("{name} repeats h.xplane.pb, and is not read"));
    assert_eq!(warnings(&store), said);
    let located = crate::locate::trace_at(dir.path()).unwrap();
    assert_eq!((located.path, located.files), (session, found.files.clone()));
}

#[test]
fn run_metadata_as_tensorflow_reads_it() {
    let store = fixture("run_metadata.pb");
    let node = store.nodes().iter().find(|node| node.name == "layer/y");
    // TensorFlow replaced the op by one of its own making.
    assert_eq!(node.map(|n| n.op.as_str()), Some("_MklMatMul"));
    let Some(path) = data("../events/tf1_filewriter_runmetadata.tfevents") else { return };
    let mut stage = Stage::new("x");
    let input = Input::open(&path, &mut stage.problems).unwrap();
    let mut reader = step_stats::StepStats::new(&input);
    while reader.read(&mut stage).unwrap() {}
    assert!(stage.tracks.iter().any(|t| !t.slices.is_empty()), "event files have them too");
}

#[test]
fn perfetto_packets() {
    let store = fixture("packets.pftrace");
    assert_eq!(store.flows().filter(|f| f.from.is_some() && f.to.is_some()).count(), 50);
    let bytes = &store.counters()[0];
    assert_eq!((bytes.value.len(), bytes.value[49]), (50, 50.0 * 2.0 * 1024.0));
    let names: Vec<&str> = store.tracks().iter().map(|t| &*t.name).collect();
    assert_eq!(names.iter().filter(|n| **n == "requests").count(), 1, "tracks of one name are one: {names:?}");
    let main = store.tracks().iter().find(|t| t.name == "main").unwrap();
    assert_eq!((main.tid, &*store.processes()[main.process as usize].name), (78, "maker"));
    let first = slices(main).next().unwrap();
    assert_eq!(store.args().get(first.args).unwrap(), r#"{"size":0}"#);
    assert_eq!(store.sites()[first.site as usize].category_name, "work");
    assert_eq!(warnings(&store), ["2 records were lost while the trace was recorded"]);
}

#[test]
fn a_database_of_nsight_systems() {
    let store = fixture("nsys.sqlite");
    assert_eq!(warnings(&store), Vec::<&str>::new());
    // Launches and their work by process and correlation, though both processes count from 1 and kernels begin early.
    let arrows: Vec<_> = store.flows().filter_map(|f| Some((f.from?, f.to?))).collect();
    assert_eq!(arrows.len(), 80);
    for (from, to) in &arrows {
        let (from_track, to_track) = (&store.tracks()[from.track.0 as usize], &store.tracks()[to.track.0 as usize]);
        assert_eq!((from_track.process, to_track.kind), (to_track.process, TrackKind::Stream));
        assert!((0..1_300).contains(&(to.time - from.time)), "{from:?} {to:?}");
    }
    let mut names: Vec<String> = store.tracks().iter().map(|t| format!("{} {}", t.name, t.device)).collect();
    names.sort();
    names.dedup();
    let gpu = |n: u32, stream: u32| format!("GPU {n} (NVIDIA H200) stream {stream} GPU {n} (NVIDIA H200)");
    let streams = [gpu(0, 7), gpu(0, 8), gpu(1, 7), gpu(1, 8)];
    let threads =
        ["NVTX ranges ".to_owned(), "python3 ".to_owned(), "thread 305 ".to_owned(), "thread 306 ".to_owned()];
    assert_eq!(names, [streams, threads].concat());
    let hosts: Vec<_> = store.processes().iter().map(|p| (&*p.host, &*p.name)).collect();
    assert_eq!(hosts, [("node7", "rank0"), ("node7", "rank1")]);
    let of = |category| store.sites().iter().filter(|s| s.category == category).map(|s| &*s.name).collect::<Vec<_>>();
    assert_eq!(of(Category::Collective), ["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"]);
    assert_eq!(of(Category::Copy), ["Memcpy DtoH", "Memcpy HtoD", "Memset"]);
    let layer = store.tracks().iter().flat_map(slices).find(|s| store.slice_name(s) == "layer 3").unwrap();
    assert_eq!(store.args().get(layer.args).unwrap(), r#"{"domain":"pytorch","payload":3}"#);
    assert_eq!(store.tracks().iter().map(|t| t.instants.len()).sum::<usize>(), 2);
}

#[test]
fn a_perfetto_trace_of_its_python_package() {
    let Some(path) = data("synthetic_trackevent_flows.pftrace") else { return };
    let store = import(&[path]);
    // As counted in its packets.
    assert_eq!((store.stats().slices, store.tracks().len()), (4_000, 8));
    assert_eq!(store.flows().filter(|f| f.from.is_some() && f.to.is_some()).count(), 2_000);
}

#[test]
fn what_the_kernel_wrote() {
    let Some(path) = data("local_vm_sched_x86tsc_trace.txt.gz") else { return };
    let store = import(&[path]);
    let of = |category| -> Vec<(u32, SliceRef)> {
        let all = store.tracks().iter().flat_map(|t| slices(t).map(|s| (t.tid, s)));
        all.filter(|(_, s)| store.category(s) == category).collect()
    };
    let cpus = store.tracks().iter().filter(|t| t.kind == TrackKind::Cpu).count();
    assert_eq!(cpus, 2);
    // 287 switches; those from and to the idle task begin or end no stay.
    assert!(of(Category::Running).len() > 150);
    // `bash` 12170 slept in D from ...4459792, was woken by 12118 at ...5143462 and ran at ...5172400.
    let found: Vec<(i64, i64, u32, &str)> = of(Category::OffCpu)
        .iter()
        .filter(|(tid, _)| *tid == 12_170)
        .map(|(_, s)| (s.start + store.origin_ns(), s.dur(), s.correlation, store.slice_name(s)))
        .take(2)
        .collect();
    let expected =
        [(7_992_574_459_792, 683_670, 12_118, "uninterruptible"), (7_992_575_143_462, 28_938, 12_118, "runnable")];
    assert_eq!(found, expected);
    assert!(warnings(&store)[0].contains("ticks"));
    let Some(path) = data("catapult_android_systrace_ftrace.txt") else { return };
    let store = import(&[path]);
    assert_eq!(warnings(&store), [""; 0]);
    assert!(store.stats().slices > 50);
}

#[test]
fn what_perf_prints() {
    let text = "\
# header
python3 120/121 [001] 12.345678:     250000 cpu-clock:u: 
\t    55d0 inner+0x1b (/usr/bin/python3)
\t    55d1 main (/usr/bin/python3)

python3 120/121 [001] 12.345999:     250000 cpu-clock:u: 
\t    7f00 [unknown] ([unknown])

a b:c  7 [000] 13.000000001: sched:sched_switch: prev_comm=a b:c prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=python3 next_pid=121 next_prio=120
python3 120/121 [000] 13.000500: sched:sched_switch: prev_comm=python3 prev_pid=121 prev_prio=120 prev_state=R ==> next_comm=a b:c next_pid=7 next_prio=120
";
    let store = import_bytes(text.as_bytes());
    let python = store.tracks().iter().find(|t| t.tid == 121).unwrap();
    assert_eq!((&*python.name, store.processes()[python.process as usize].pid), ("python3", 120));
    let samples: Vec<(i64, &str)> =
        python.instants.iter().map(|i| (i.time + store.origin_ns(), &*store.sites()[i.site as usize].name)).collect();
    assert_eq!(samples, [(12_345_678_000, "inner"), (12_345_999_000, "[unknown]")]);
    let args: serde_json::Value = serde_json::from_str(&store.args().get(python.instants[0].args).unwrap()).unwrap();
    assert_eq!(args["stack"], serde_json::json!(["inner", "main"]));
    assert_eq!(by_name(&store)["python3"], (1, 499_999));
    assert_eq!(warnings(&store), [""; 0]);
}

#[test]
fn other_formats_survive_changed_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut random = 7_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    type Make = fn(Input) -> Box<dyn Reader>;
    let makes: [(&str, Make); 5] = [
        ("nsys.sqlite", |i| Box::new(nsys::Nsys::new(&i))),
        ("packets.pftrace", |i| Box::new(perfetto::Perfetto::new(&i))),
        ("tensorflow.xplane.pb", |i| Box::new(xplane::XPlane::new(&i))),
        ("xprof/tpu.xplane.pb", |i| Box::new(xplane::XPlane::new(&i))),
        ("run_metadata.pb", |i| Box::new(step_stats::StepStats::new(&i))),
    ];
    for (name, make) in makes {
        let whole = std::fs::read(folder.join(name)).unwrap();
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next(3) {
                let at = next(bytes.len());
                bytes[at] = next(256) as u8;
            }
            bytes.truncate(bytes.len() - next(2) * next(bytes.len()));
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            let mut stage = Stage::new("x");
            let mut reader = make(Input { file: std::sync::Arc::new(file), length: bytes.len() as u64 });
            while reader.read(&mut stage).unwrap() {}
            reader.finish(&mut stage);
            stage.finish(&mut 0);
            let n: usize = stage.tracks.iter().map(|t| t.slices.len()).sum();
            assert!(n < 2_000, "{n} slices out of nothing");
        }
    }
}
