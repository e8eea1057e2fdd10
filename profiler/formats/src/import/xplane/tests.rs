//! Recordings of JAX and of a TPU's host: tracks, steps, launches, clocks, memory, names.

use super::super::tests::{import, slices, warnings};
use super::super::traces;
use formats::profile::{XSpace, x_stat};
use prost::Message;
use std::path::{Path, PathBuf};
use trace_model::{Category, SliceRef, TrackKind};
use trace_store::{Store, Track};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/xprof/tpu.xplane.pb")
}

fn track<'a>(store: &'a Store, name: &str) -> &'a Track {
    store.tracks().iter().find(|track| track.name == name).unwrap()
}

#[test]
fn lines_of_a_tpu() {
    let store = import(&[fixture()]);
    let kind = |name: &str| track(&store, name).kind;
    assert_eq!((kind("TPU:1 XLA Ops"), &*track(&store, "TPU:1 XLA Ops").device), (TrackKind::Stream, "TPU:1"));
    for line in ["Steps", "XLA Modules", "Async XLA Ops"] {
        assert_eq!(kind(&format!("TPU:1 {line}")), TrackKind::Async, "{line} is no work of its own");
    }
    let steps: Vec<u32> = store.steps().iter().map(|step| step.id).collect();
    assert_eq!(steps, [0, 1, 2], "the host's, not those of each device again");
    assert_eq!(warnings(&store), [""; 0]);
}

/// The host enqueues each program on each core; the runtime is called back when it ends.
#[test]
fn programs_are_joined_with_their_launches() {
    let store = import(&[fixture()]);
    let launches: Vec<SliceRef> =
        slices(track(&store, "main/11")).filter(|slice| store.category(slice) == Category::Launch).collect();
    assert_eq!(launches.len(), 6);
    let mut numbers: Vec<u32> = launches.iter().map(|launch| launch.correlation).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 6, "each has its own");
    for (row, launch) in launches.iter().enumerate() {
        let line = track(&store, &format!("TPU:{} XLA Ops", row % 2));
        let work: Vec<SliceRef> = slices(line).filter(|slice| slice.correlation == launch.correlation).collect();
        assert_eq!(work.len(), 10, "the work of one step");
        assert!(work.iter().all(|slice| slice.start >= launch.end));
    }
    let arrows: Vec<_> = store.flows().collect();
    assert_eq!(arrows.len(), 6, "one to each callback");
    let segments = &trace_analysis::ops::critical_paths(&store, store.range())[0].segments;
    let names: Vec<&str> = segments
        .iter()
        .filter_map(|segment| segment.slice.and_then(|id| store.slice(id)))
        .map(|slice| store.slice_name(&slice))
        .collect();
    let first = names.iter().position(|name| *name == "fusion.1").unwrap();
    assert!(names[..first].contains(&"DoEnqueueProgram"), "{names:?}");
}

/// The files of a session's hosts are one job on one clock: each says when its recording began.
#[test]
fn the_hosts_of_a_session_share_a_clock() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("plugins/profile/2026_01_02");
    std::fs::create_dir_all(&session).unwrap();
    let recorded = "../../tests/fixtures/clients/jax_profiler/plugins/profile/2026_11_23_18_12_09/vm.xplane.pb";
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(recorded)).unwrap();
    for (number, host) in [(0, "a"), (1, "b")] {
        let mut space = XSpace::decode(&*bytes).unwrap();
        space.hostnames = vec![host.to_owned()];
        let environment = space.planes.iter_mut().find(|plane| plane.name == "Task Environment").unwrap();
        // The times of the begin and of the end.
        for stat in &mut environment.stats {
            if let Some(x_stat::Value::Uint64Value(ns)) = &mut stat.value {
                *ns += 1_500 * number;
            }
        }
        std::fs::write(session.join(format!("{host}.xplane.pb")), space.encode_to_vec()).unwrap();
    }
    let [found] = &traces(dir.path())[..] else { panic!("one session") };
    let store = import(&found.files);
    let hosts: Vec<&str> = store.processes().iter().map(|process| process.host.as_str()).collect();
    assert_eq!(hosts, ["a, rank 0", "b, rank 1"]);
    let begins: Vec<i64> = store
        .tracks()
        .iter()
        .filter(|track| track.name == "python")
        .map(|track| slices(track).map(|slice| slice.start).min().unwrap())
        .collect();
    assert_eq!(begins[1] - begins[0], 1_500);
}

#[test]
fn a_recording_of_a_gpu() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/h200/jax.xplane.pb.gz");
    let store = import(std::slice::from_ref(&recorded));
    let stream = track(&store, "GPU:0 Stream #14(Compute)");
    let kernels: Vec<SliceRef> = slices(stream).collect();
    let calls: std::collections::HashSet<u32> = store
        .tracks()
        .iter()
        .flat_map(slices)
        .filter(|slice| store.category(slice) == Category::Launch)
        .map(|call| call.correlation)
        .collect();
    assert!(kernels.iter().all(|kernel| calls.contains(&kernel.correlation)));
    // A kernel keeps its name, and has the scopes of the instruction that it was compiled from.
    let kernel = kernels.iter().find(|kernel| store.slice_name(kernel) == "fusion_248").unwrap();
    let node = store.node_of(kernel).unwrap();
    assert!(node.name.starts_with("jit(train)/transpose(jvp(block3))/attention/"), "{}", node.name);
    assert!(node.name.ends_with("/fusion.248") && node.device == "GPU:0", "{node:?}");
    let graph = formats::graph_file::read(&recorded).unwrap();
    assert!(graph.node.iter().any(|of| of.name == node.name), "the same name as in the program's graph");
    let args: serde_json::Value = serde_json::from_str(&store.args().get(kernel.args).unwrap()).unwrap();
    assert_eq!(
        (&*node.op, args["hlo_category"].as_str(), args["hlo_module"].as_str()),
        ("custom fusion", Some("custom fusion"), Some("jit_train"))
    );
    assert!(args["source"].as_str().unwrap().contains(".py:"), "{args}");
    let memory = trace_analysis::memory::memory_timelines(&store);
    assert!(memory.iter().any(|of| of.device == "GPU_0_bfc" && of.peak_bytes > 400 << 20));
}
