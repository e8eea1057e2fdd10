//! PyTorch traces: what we say of them compared with what HolisticTraceAnalysis says (`fixtures/hta/make.py` asked it).
//!
//! The traces are HTA's own; `test_support::data` says where they are looked for.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that says what it skips")]

use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace_analysis::breakdown::{Breakdown, DeviceBreakdown};
use trace_analysis::critical::{PathKind, Segment, critical_path_of_range};
use trace_analysis::report::analyse;
use trace_analysis::stalls;
use trace_analysis::stalls::Cause;
use trace_model::{Batch, Category, Event, NO_NODE, Name, SliceRef, TrackKey, TrackKind};
use trace_store::{Store, StoreOptions};

/// The folder of the traces; without it the check is left out.
#[track_caller]
fn traces() -> Option<PathBuf> {
    test_support::data("traces/hta_nccl_data.json.gz").and_then(|file| Some(file.parent()?.to_owned()))
}

/// What HTA says of a trace.
fn hta(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("fixtures/hta/hta.json")).unwrap();
    all[name].clone()
}

/// Complete events of a Kineto file as one process: threads, and a stream's track per stream.
fn read(file: &Path) -> Store {
    let trace: Value = serde_json::from_reader(GzDecoder::new(std::fs::File::open(file).unwrap())).unwrap();
    let mut batch = Batch::new();
    batch.set_origin(0);
    let (mut tracks, mut sites) = (BTreeMap::new(), BTreeMap::new());
    let mut events: Vec<(TrackKey, Event)> = Vec::new();
    for event in trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X") {
        let (name, args) = (event["name"].as_str().unwrap_or(""), &event["args"]);
        let category = match event["cat"].as_str().unwrap_or("") {
            "cpu_op" => "op",
            "kernel" if name.starts_with("nccl") => "collective",
            "kernel" => "kernel",
            "gpu_memcpy" | "gpu_memset" => "copy",
            "cuda_runtime" if name.contains("Synchronize") => "sync",
            "cuda_runtime" => "launch",
            "cuda_sync" => "sync",
            "user_annotation" if name.starts_with("ProfilerStep#") => "step",
            "gpu_user_annotation" | "Trace" => continue,
            other => other,
        };
        let stream = args["stream"].as_i64().filter(|s| *s >= 0).map(|s| s as u64);
        let n = tracks.len() as u32;
        let key = (event["pid"].to_string(), event["tid"].to_string(), stream);
        let key = TrackKey { pid: 1, ring: *tracks.entry(key).or_insert(n) };
        if key.ring == n {
            let (kind, name) = (TrackKind::Stream, format!("stream {stream:?}"));
            batch.name(match stream {
                None => Name::Thread { key, name: event["tid"].to_string(), tid: 0 },
                _ => Name::Track { key, kind, name, tid: 0, device: "GPU 0".into(), stream, order: 0 },
            });
        }
        let n = sites.len() as u32;
        let site = *sites.entry((category.to_owned(), name.to_owned())).or_insert(n);
        if site == n {
            batch.name(Name::Site { pid: 1, id: site, category: category.into(), name: name.into() });
        }
        // A double holds no nanoseconds of the years since 1970.
        let ns = |value: &Value| match value.as_i64() {
            Some(us) => us * 1000,
            None => (value.as_f64().unwrap() * 1e3).round() as i64,
        };
        let (start, correlation) = (ns(&event["ts"]), args["correlation"].as_u64().unwrap_or(0) as u32);
        let number = name.strip_prefix("ProfilerStep#").and_then(|n| n.parse().ok());
        let correlation = if category == "op" { NO_NODE } else { number.unwrap_or(correlation) };
        let args = batch.args(&args.to_string());
        events.push((key, Event { correlation, args, ..Event::slice(site, start, start + ns(&event["dur"])) }));
    }
    // Outer before inner.
    events.sort_by_key(|(_, e)| (e.start, std::cmp::Reverse(e.end)));
    for (key, event) in events {
        batch.track(key).events.push(event);
    }
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    store.apply(batch);
    store
}

fn device(store: &Store) -> DeviceBreakdown {
    let mut devices = analyse(store, store.range()).devices;
    assert_eq!(devices.len(), 1);
    devices.remove(0)
}

/// Communication and copies that nothing hides: HTA's "non-compute".
fn non_compute_ns(times: &Breakdown) -> i64 {
    times.communication_exposed_ns + times.copy_exposed_ns
}

/// Microseconds, as HTA rounds them.
fn us(ns: i64) -> f64 {
    (ns as f64 / 1e3).round()
}

/// HTA's number of the temporal breakdown, us.
fn temporal(name: &str, key: &str) -> f64 {
    hta(name)["temporal"][format!("{key}_time(us)")].as_f64().unwrap()
}

/// HTA's idle time of a stream, us.
fn idle(name: &str, stream: u64) -> f64 {
    let rows = hta(name)["idle"].as_array().unwrap().clone();
    rows.iter().filter(|r| r["stream"] == stream).map(|r| r["idle_time"].as_f64().unwrap()).sum()
}

#[test]
fn breakdown_idle_and_overlap_are_hta_s() {
    let Some(folder) = traces() else { return };
    for name in ["hta_multirank_sampled_rank-0", "hta_multirank_sampled_rank-1"] {
        let store = read(&folder.join(format!("{name}.json.gz")));
        let found = device(&store);
        let t = &found.times;
        let ours = [t.total_ns(), t.compute_ns, non_compute_ns(t), t.idle_ns].map(us);
        let theirs = ["kernel", "compute", "non_compute", "idle"].map(|key| temporal(name, key));
        assert_eq!(ours, theirs, "{name}");
        for (track, _, idle_ns) in &found.streams {
            let stream = store.track(*track).unwrap().stream.unwrap();
            assert_eq!(us(*idle_ns), idle(name, stream), "{name}, stream {stream}");
        }
        let communication = t.communication_exposed_ns + t.communication_overlapped_ns;
        let overlap = t.communication_overlapped_ns as f64 / communication as f64 * 100.0;
        let theirs = hta(name)["overlap"]["comp_comm_overlap_pctg"].as_f64().unwrap();
        assert!((overlap - theirs).abs() < 0.005, "{name}: {overlap} and {theirs}");
    }
}

/// HTA counts synchronisation records as what a device does: "Stream Wait Event" (2 us) as compute, "Stream Sync" else.
#[test]
fn synchronisation_records_are_no_work() {
    let Some(folder) = traces() else { return };
    let name = "hta_event_sync_multi_stream";
    let found = device(&read(&folder.join(format!("{name}.json.gz"))));
    assert_eq!(us(found.times.compute_ns) + 2.0, temporal(name, "compute"));
    assert_eq!(us(found.times.idle_ns) - 2.0, temporal(name, "idle"));
    assert_eq!(us(non_compute_ns(&found.times)), temporal(name, "non_compute"));
    let name = "hta_critical_path_alexnet";
    let store = read(&folder.join(format!("{name}.json.gz")));
    for (track, _, idle_ns) in device(&store).streams {
        let stream = store.track(track).unwrap().stream.unwrap();
        assert_eq!(us(idle_ns), idle(name, stream), "stream {stream}");
    }
}

/// HTA cuts the begin and end of each slice to whole microseconds, so that each kernel loses up to one.
#[test]
fn nanoseconds_are_kept() {
    let Some(folder) = traces() else { return };
    let name = "hta_nccl_data";
    let store = read(&folder.join(format!("{name}.json.gz")));
    let found = device(&store).times;
    let kernels: usize =
        store.tracks().iter().filter(|t| t.kind == TrackKind::Stream).map(trace_store::Track::n_slices).sum();
    for (ours, key) in [(found.compute_ns, "compute"), (non_compute_ns(&found), "non_compute")] {
        let lost = us(ours) - temporal(name, key);
        assert!((0.0..kernels as f64).contains(&lost), "{key}: {lost} us on {kernels} kernels");
    }
    assert!((us(found.total_ns()) - temporal(name, "kernel")).abs() <= 1.0);
}

/// The stalls of a stream are its idle time, to the nanosecond.
#[test]
fn stalls_of_streams_are_their_idle_time() {
    let Some(folder) = traces() else { return };
    for name in ["hta_critical_path_alexnet", "hta_event_sync_multi_stream", "hta_nccl_data"] {
        let store = read(&folder.join(format!("{name}.json.gz")));
        let found = stalls(&store, store.range());
        for (track, _, idle_ns) in device(&store).streams {
            let parts = found.iter().filter(|s| s.track == track);
            assert_eq!(parts.map(stalls::Stall::dur).sum::<i64>(), idle_ns, "{name}");
        }
    }
}

/// HTA's path of the same range is 43,283 ms of the host, 60.6 ms of the device and gaps between. Ours differs by what is between:
/// it goes to whatever came last, HTA's is the longest path through a graph in which waits weigh nothing.
#[test]
fn the_critical_path_is_the_hosts_as_hta_says() {
    let Some(folder) = traces() else { return };
    let name = "hta_critical_path_alexnet";
    let store = read(&folder.join(format!("{name}.json.gz")));
    let path = critical_path_of_range(&store, store.range());
    let sum =
        |is_it: fn(PathKind) -> bool| us(path.segments.iter().filter(|s| is_it(s.kind)).map(Segment::dur).sum()) / 1e3;
    let host = sum(|k| {
        matches!(k, PathKind::Host | PathKind::Launch | PathKind::Memory | PathKind::Input | PathKind::Profiler)
    });
    let device = sum(|k| matches!(k, PathKind::Kernel | PathKind::Copy | PathKind::Collective));
    let theirs = &hta(name)["critical_path"]["weight_us"];
    let (their_host, their_device) = (theirs["HOST"].as_f64().unwrap() / 1e3, theirs["DEVICE"].as_f64().unwrap() / 1e3);
    assert!((host - their_host).abs() < 0.003 * their_host, "host {host} ms, HTA {their_host} ms");
    assert!((device - their_device).abs() < 0.1 * their_device, "device {device} ms, HTA {their_device} ms");
    assert_eq!(path.segments.iter().map(Segment::dur).sum::<i64>(), path.range.end - path.range.start);
}

/// A launch that had not returned when the stream's work before ended is why nothing ran: no gap is unexplained while one lasts.
#[test]
fn no_gap_is_unexplained_while_its_work_is_being_launched() {
    let Some(traces) = traces() else { return };
    let mut n_launch = 0;
    for name in ["hta_nccl_data.json.gz", "hta_critical_path_alexnet.json.gz", "hta_event_sync_multi_stream.json.gz"] {
        let store = read(&traces.join(name));
        let is_launch = |s: &SliceRef| store.category(s) == Category::Launch;
        let mut launches: BTreeMap<u32, std::ops::Range<i64>> = BTreeMap::new();
        for lane in store.tracks().iter().flat_map(|t| &t.lanes) {
            let slices = (0..lane.len() as u32).filter_map(|i| lane.slice(i));
            launches.extend(slices.filter(is_launch).map(|s| (s.correlation, s.start..s.end)));
        }
        for stall in stalls(&store, store.range()) {
            let Some(blocked) = stall.blocked.and_then(|id| store.slice(id)) else { continue };
            let on_device = store.track(stall.track).is_some_and(|t| t.kind == TrackKind::Stream);
            let Some(launch) = launches.get(&blocked.correlation).filter(|_| on_device) else { continue };
            n_launch += u32::from(stall.cause == Cause::Launch);
            let is_being_launched = launch.start < stall.end && launch.end > stall.start;
            assert!(stall.cause != Cause::Unexplained || !is_being_launched, "{name}: {stall:?}, launched {launch:?}");
        }
    }
    assert!(n_launch > 1_000, "{n_launch}");
}
