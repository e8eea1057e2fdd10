//! What a traced step leaves in the rings.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{session, source};
use engine::graph::{Graph, Output};
use engine::{DType, Numerics, RunOptions, Session, SessionOptions, Tensor};
use events::Kind;
use events::meta::{Entry, MetaReader};
use events::record::{Decoder, Event};
use events::ring::RingReader;

/// A trace folder, read back: (thread, event) in order per thread, and the names.
struct Trace {
    events: Vec<(String, Event)>,
    sites: BTreeMap<u32, (String, String)>,
    nodes: BTreeMap<u32, (String, String)>,
}

fn read(dir: &Path) -> Trace {
    let mut trace = Trace { events: Vec::new(), sites: BTreeMap::new(), nodes: BTreeMap::new() };
    let mut entries = Vec::new();
    let files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("meta-") {
            MetaReader::open(file).unwrap().poll(&mut entries).unwrap();
        }
    }
    let mut threads = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::Site { id, category, name } => drop(trace.sites.insert(id, (category, name))),
            Entry::Node { id, name, op, .. } => drop(trace.nodes.insert(id, (name, op))),
            Entry::Thread { tid, name, .. } => drop(threads.insert(tid, name)),
            _ => {}
        }
    }
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "ring")) {
        let mut reader = RingReader::open(file).unwrap();
        let mut records = Vec::new();
        reader.drain(&mut records);
        assert_eq!(reader.dropped(), 0);
        let thread = threads.get(&reader.info().tid).cloned().unwrap_or_default();
        let mut decoder = Decoder::default();
        trace.events.extend(records.into_iter().filter_map(|r| Some((thread.clone(), decoder.push(r)?))));
    }
    trace
}

impl Trace {
    fn of(&self, category: &str) -> Vec<(&str, &str, &Event)> {
        let named = self.events.iter().filter_map(|(thread, event)| {
            let (of, name) = self.sites.get(&event.site.get())?;
            (of == category).then_some((&**thread, &**name, event))
        });
        named.collect()
    }

    fn node(&self, id: u32) -> &str {
        self.nodes.get(&id).map_or("-", |(name, _)| name)
    }
}

/// Chains of cheap and expensive nodes side by side, and an op in shards.
fn graph() -> (Graph, Vec<String>) {
    let g = Graph::new();
    let x = source(&g, "x", 1.0);
    let mut names = vec!["x".to_owned(), "shards".to_owned(), "y".to_owned()];
    let mut ends: Vec<Output> = vec![x];
    for chain in 0..4 {
        let mut last = x;
        for i in 0..5 {
            let name = format!("c{chain}_{i}");
            let work = if i == 2 { 30_000 } else { 0 };
            last = g.add_node("TestSum").name(&name).input(last).attr("work", work).output().unwrap();
            names.push(name);
        }
        ends.push(last);
    }
    ends.push(g.add_node("TestShards").name("shards").attr("n", 2_000).output().unwrap());
    common::sum(&g, "y", &ends);
    (g, names)
}

/// A process records one session at a time, and all of its steps.
static RECORDING: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

#[test]
fn every_executed_node_is_one_slice_within_its_step() {
    let _alone = RECORDING.lock();
    const N_STEPS: i64 = 12;
    for threads in [1, 3] {
        let (g, names) = graph();
        let s = session(&g, threads);
        let y = s.prepare(&[], &["y"], &[]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let recording = events::start(dir.path(), events::Options::default()).unwrap();
        for step in 0..N_STEPS {
            let options = RunOptions { label: "train", summary_step: Some(100 + step), ..RunOptions::default() };
            y.run_step(&options, &[]).unwrap();
        }
        drop(s); // joins the workers
        drop(recording);
        y_run_untraced(&g);
        check(&read(dir.path()), names, N_STEPS as usize, threads);
    }
}

fn y_run_untraced(g: &Graph) {
    session(g, 2).run(&[], &["y"], &[]).unwrap();
}

fn check(trace: &Trace, mut names: Vec<String>, n_steps: usize, threads: usize) {
    names.sort();
    let steps = trace.of("step");
    assert_eq!(steps.len(), n_steps);
    let caller = steps[0].0;
    for (i, (thread, label, step)) in steps.iter().enumerate() {
        assert_eq!((*thread, *label, step.arg, step.kind), (caller, "train", 100 + i as u64, Kind::Slice));
        let end = step.begin + step.dur;
        let ops: Vec<_> =
            trace.of("op").into_iter().filter(|op| op.2.arg >> 32 == u64::from(step.correlation)).collect();
        let mut ran: Vec<String> = ops.iter().map(|op| trace.node(op.2.node.get()).to_owned()).collect();
        ran.sort();
        assert_eq!(ran, names, "each node is one slice");
        let mut last_end: BTreeMap<&str, u64> = BTreeMap::new();
        for (thread, op, slice) in ops {
            let node = trace.node(slice.node.get());
            assert_eq!(trace.nodes[&slice.node.get()].1, op);
            assert!(step.begin <= slice.begin && slice.begin + slice.dur <= end, "{node} is within its step");
            assert!(*last_end.get(thread).unwrap_or(&0) <= slice.begin, "ops of a thread do not overlap");
            last_end.insert(thread, slice.begin + slice.dur);
            assert_eq!(slice.depth, if thread == caller { 1 } else { 0 }, "{node} on {thread}");
            check_cause(node, trace.node(slice.correlation));
        }
    }
    check_shards(trace, caller, threads);
}

/// The node whose end made `node` ready.
fn check_cause(node: &str, by: &str) {
    match node.split_once('_') {
        Some((_, "0")) => assert_eq!(by, "x"),
        Some((chain, i)) => assert_eq!(by, format!("{chain}_{}", i.parse::<usize>().unwrap() - 1)),
        None if node == "y" => assert!(by == "shards" || by.ends_with("_4") || by == "x", "{by}"),
        None => assert_eq!(by, "-"),
    }
}

fn check_shards(trace: &Trace, caller: &str, threads: usize) {
    let shards = trace.of("shard");
    assert_eq!(shards.is_empty(), threads == 1);
    for (thread, op, shard) in &shards {
        assert_eq!((*op, trace.node(shard.node.get())), ("TestShards", "shards"));
        assert!(*thread == caller || thread.starts_with("worker "), "{thread}");
    }
    let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, _, shard) in &shards {
        *rows.entry(shard.arg >> 32).or_default() += shard.arg & 0xffff_ffff;
    }
    assert!(rows.values().all(|rows| *rows == 2_000), "the shards of a step cover its work: {rows:?}");
    let steps: Vec<_> = trace.of("step").iter().map(|s| (s.2.begin, s.2.begin + s.2.dur, s.2.correlation)).collect();
    for (_, name, idle) in trace.of("wait") {
        let within =
            |s: &&(u64, u64, u32)| s.0 <= idle.begin && idle.begin + idle.dur <= s.1 && s.2 == idle.correlation;
        assert_eq!(name, "idle");
        assert!(steps.iter().any(|s| within(&s)), "idle within its step");
    }
}

#[test]
fn transfers_are_stamped_from_enqueue_to_unblocked() {
    let _alone = RECORDING.lock();
    const N_STEPS: usize = 3;
    let g = Graph::new();
    let x = source(&g.with_device("/cpu:0"), "tx", 1.0);
    let y = common::sum(&g.with_device("/cpu:1"), "ty", &[x]);
    common::sum(&g.with_device("/cpu:0"), "tz", &[y]);
    let options =
        SessionOptions { threads: Some(1), passes: engine::compile::Passes::none(), ..SessionOptions::devices(2) };
    let s = Session::new(&g, options).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let recording = events::start(dir.path(), events::Options::default()).unwrap();
    for _ in 0..N_STEPS {
        s.run(&[], &["tz"], &[]).unwrap();
    }
    drop(s);
    drop(recording);
    let trace = read(dir.path());
    let stamps: Vec<_> = trace.of("transfer").into_iter().map(|(_, name, event)| (name, *event)).collect();
    let of = |name: &str, kind: Kind| -> Vec<Event> {
        stamps.iter().filter(|(n, e)| *n == name && e.kind == kind).map(|(_, e)| *e).collect()
    };
    let sent: Vec<Event> =
        of("edge", Kind::FlowOut).into_iter().filter(|e| trace.node(e.node.get()).starts_with('t')).collect();
    assert_eq!(sent.len(), 2 * N_STEPS);
    for out in sent {
        let one = |name: &str, kind: Kind| {
            let found: Vec<Event> = of(name, kind).into_iter().filter(|e| e.correlation == out.correlation).collect();
            assert_eq!(found.len(), 1, "{name}");
            found[0]
        };
        let (enqueued, sending) = (one("enqueue", Kind::Instant), one("send", Kind::Instant));
        let (arrived, unblocked) = (one("arrive", Kind::Instant), one("edge", Kind::FlowIn));
        let times = [enqueued.begin, sending.begin, out.begin, arrived.begin, unblocked.begin];
        assert!(times.is_sorted(), "{times:?}");
        // The edge by the nodes at its ends, its step and its bytes.
        let edge = (trace.node(out.node.get()), trace.node(unblocked.node.get()));
        assert!(edge == ("tx/_0/_send_1", "tx/_0/_recv_1") || edge == ("ty/_0/_send_0", "ty/_0/_recv_0"), "{edge:?}");
        assert_eq!((out.arg & 0xffff_ffff, out.arg), (4, unblocked.arg));
        assert!(trace.of("step").iter().any(|(_, _, step)| u64::from(step.correlation) == out.arg >> 32));
    }
}

/// A queue for one row, with the ops of both sides.
fn queue(g: &Graph) {
    let f32s = engine::graph::Attr::ListType(vec![DType::F32]);
    let queue = g.add_node("FIFOQueueV2").name("input").attr("component_types", f32s.clone()).attr("capacity", 1i64);
    let queue = queue.value();
    let row = g.named_constant("row", 1f32);
    let put = g.add_node("QueueEnqueueV2").name("put").input(queue).inputs(&[row]);
    put.attr("Tcomponents", f32s.clone()).value();
    let take = g.add_node("QueueDequeueV2").name("take").input(queue).attr("component_types", f32s);
    g.add_node("Neg").name("taken").input(take.value()).value();
}

/// Runs `first` in a thread of its own and, once that sleeps and has slept for a while, `second`.
/// Gives when `first` slept, ticks.
fn waiting(first: &(dyn Fn() + Sync), second: &dyn Fn()) -> u64 {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            sender.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            first();
        });
        let status = Path::new("/proc").join(receiver.recv().unwrap()).join("status");
        // A thread that is ready and has no CPU counts as running.
        let sleeps = || std::fs::read_to_string(&status).unwrap().contains("State:\tS");
        let mut in_a_row = 0;
        while in_a_row < 10 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            in_a_row = if sleeps() { in_a_row + 1 } else { 0 };
        }
        let asleep_at = events::clock::now();
        second();
        asleep_at
    })
}

#[test]
fn waits_at_a_queue_are_slices_that_name_it() {
    let _alone = RECORDING.lock();
    let g = Graph::new();
    queue(&g);
    let s = session(&g, 1);
    let dir = tempfile::tempdir().unwrap();
    let recording = events::start(dir.path(), events::Options::default()).unwrap();
    // Whoever comes first waits: once for a row, once for room.
    let waits = RunOptions { label: "waits", ..RunOptions::default() };
    let take = || drop(s.run_step(&waits, &[], &["taken"], &[]).unwrap());
    let put = || drop(s.run_step(&waits, &[], &[], &["put"]).unwrap());
    let for_a_row = waiting(&take, &|| drop(s.run(&[], &[], &["put"]).unwrap()));
    s.run(&[], &[], &["put"]).unwrap();
    let for_room = waiting(&put, &|| drop(s.run(&[], &["taken"], &[]).unwrap()));
    drop(s);
    drop(recording);
    let trace = read(dir.path());
    let steps = trace.of("step");
    // Of the steps that had to. Who loses the processor while it takes a row that is there seems to wait too.
    let had_to =
        |e: &Event| steps.iter().any(|(_, label, step)| *label == "waits" && step.correlation == e.correlation);
    let waits: Vec<_> = trace.of("parked").into_iter().filter(|(_, _, e)| had_to(e)).collect();
    let mut reported: Vec<_> = waits.iter().map(|(_, name, e)| (*name, trace.node(e.node.get()), e.arg)).collect();
    reported.sort_unstable();
    assert_eq!(reported, [("queue input empty", "take", 1), ("queue input full", "put", 2)]);
    for (_, _, wait) in waits {
        let of = |step: &&(&str, &str, &Event)| step.2.correlation == wait.correlation;
        let (_, _, step) = steps.iter().find(of).unwrap();
        let (end, step_end) = (wait.begin + wait.dur, step.begin + step.dur);
        assert!(step.begin <= wait.begin && end <= step_end, "within its step");
        let asleep_at = if wait.arg == 1 { for_a_row } else { for_room };
        assert!(wait.begin <= asleep_at && asleep_at <= end, "it slept at {asleep_at}: {} to {end}", wait.begin);
    }
}

/// Once for each node with numbers, and again whenever it changes.
#[test]
fn what_is_no_number_is_reported_of_each_node_when_it_changes() {
    let _alone = RECORDING.lock();
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [2]);
    let log = g.add_node("Log").name("net/log").input(x).value();
    let twice = g.add_node("AddV2").name("net/twice").input(log).input(log).value();
    g.add_node("ArgMax").name("best").input(twice).input(g.constant(Tensor::scalar(0i32))).value();
    let options = SessionOptions { threads: Some(1), numerics: Numerics::Trace, ..SessionOptions::default() };
    let s = Session::new(&g, options).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let recording = events::start(dir.path(), events::Options::default()).unwrap();
    for values in [[1.0f32, 2.0], [2.0, 1.0], [0.0, -1.0], [0.0, -2.0], [0.0, 3.0], [1.0, 1.0]] {
        s.run(&[("x", Tensor::vector(&values))], &["best"], &[]).unwrap();
    }
    drop(s);
    drop(recording);
    let trace = read(dir.path());
    // ln 0 is minus infinity (4), that of a negative number NaN (1).
    let of = |node: &str| {
        let reported = trace.of("numerics").into_iter().filter(|(_, name, _)| *name == node);
        reported.map(|(_, _, e)| (e.kind, e.arg)).collect::<Vec<_>>()
    };
    for node in ["net/log", "net/twice"] {
        assert_eq!(of(node), [0, 5, 4, 0].map(|arg| (Kind::Instant, arg)), "{node}");
    }
    assert_eq!(of("best"), [], "whole numbers are always finite");
}

/// Who looks at the graph as it was written finds what a pass fused: each node by its name, on the device that ran it.
#[test]
fn fused_nodes_are_named_with_their_device() {
    let _alone = RECORDING.lock();
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [64]);
    let chain = ["Tanh", "Neg", "Exp"].iter().fold(x, |x, op| {
        let node = g.add_node(op).name(&format!("chain/{op}"));
        node.input(x).value()
    });
    let fetch = g.node(chain.node()).unwrap().name.to_string();
    let s = Session::new(&g, SessionOptions { threads: Some(1), ..SessionOptions::default() }).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let recording = events::start(dir.path(), events::Options::default()).unwrap();
    s.run(&[("x", Tensor::vector(&[0.5f32; 64]))], &[&fetch], &[]).unwrap();
    drop(s);
    drop(recording);
    let (mut devices, mut entries) = (BTreeMap::new(), Vec::new());
    for file in std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with("meta-") {
            MetaReader::open(&file).unwrap().poll(&mut entries).unwrap();
        }
    }
    for entry in entries {
        if let Entry::Node { name, device, .. } = entry {
            devices.insert(name, device);
        }
    }
    let trace = read(dir.path());
    let ran = trace.of("op").iter().filter(|(_, _, e)| trace.node(e.node.get()).starts_with("chain/")).count();
    assert_eq!(ran, 1, "one node does the work of three");
    for name in ["chain/Tanh", "chain/Neg", "chain/Exp"] {
        assert!(devices.get(name).is_some_and(|device| device.ends_with("cpu:0")), "{name}: {devices:?}");
    }
}
