//! Stores written as collected files mean the same when they are read.

use super::*;
use crate::follow::TraceReader;
use crate::store::StoreOptions;
use crate::testkit;
use trace_model::{Batch, Event, EventKind, Function, Name, TrackKey, Warning};

fn sorted(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().collect();
    lines.sort();
    lines
}

/// What a store says, by names and not by rows.
fn meant(store: &Store) -> Vec<(&'static str, Vec<String>)> {
    let node = |row: u32| store.nodes().get(row as usize).map_or("-".into(), |n| format!("{}@{}", n.name, n.device));
    let site = |row: u32| format!("{}:{}", store.sites()[row as usize].category_name, store.sites()[row as usize].name);
    let process = |row: u32| (store.processes()[row as usize].pid, store.processes()[row as usize].name.clone());
    let track = |id: TrackId| {
        let t = store.track(id).unwrap();
        format!("{} {:?} {} {:?} {} {:?} {}", t.name, process(t.process), t.tid, t.kind, t.device, t.stream, t.order)
    };
    let args = |row: u32| store.args().get(row).map(std::borrow::Cow::into_owned);
    let all = store.range().start..store.range().end + 1;
    let of_slice = |s: &SliceRef| {
        let op = store.category(s) == Category::Op;
        let correlation = if op { node(s.correlation) } else { s.correlation.to_string() };
        let place = format!("{} lane {} {}..{}", track(TrackId(s.id.track)), s.id.lane, s.start, s.end);
        format!("{place} {} {} {correlation} {} {:?}", site(s.site), node(s.node), s.arg, args(s.args))
    };
    let slices = store.tracks().iter().flat_map(|t| &t.lanes).flat_map(|l| l.slices(&all).collect::<Vec<_>>());
    let stack = |mut row: u64| {
        let mut frames = Vec::new();
        while let Some(stack) = store.stacks().get(row as usize) {
            frames.push(format!("{:?}", store.frames()[stack.frame as usize]));
            row = stack.parent.into();
        }
        frames
    };
    let instants = store.tracks().iter().flat_map(|t| t.instants.iter().map(move |i| (t.id, i)));
    let instants = instants.map(|(id, i)| {
        let is_sample = store.sites()[i.site as usize].category == Category::Sample;
        let arg = if is_sample { format!("{:?}", stack(i.arg)) } else { i.arg.to_string() };
        format!("{} {} {} {arg} {:?}", track(id), i.time, site(i.site), args(i.args))
    });
    let end = |e: Option<trace_model::FlowEnd>| e.map(|e| (track(e.track), e.time));
    let flows = store.flows().map(|f| format!("{} {} {:?} {:?}", site(f.site), f.correlation, end(f.from), end(f.to)));
    let counters = store.counters().iter().map(|c| {
        let of = c.track.map(&track);
        format!("{:?} {} {of:?} {:?} {:?}", process(c.process), site(c.site), c.time, c.value)
    });
    let memory = store.memory().iter();
    let memory = memory.map(|m| format!("{} {} {} {} {}", m.time, track(m.track), site(m.site), node(m.node), m.bytes));
    let transfers = store.transfers().iter().map(|t| {
        let ends = (t.from.map(&track), t.to.map(&track), node(t.sender), node(t.receiver));
        let plain = trace_model::Transfer {
            scope: if t.scope == u32::MAX { t.scope } else { 0 },
            sender: 0,
            receiver: 0,
            from: None,
            to: None,
            ..*t
        };
        format!("{plain:?} {ends:?}")
    });
    let steps =
        store.steps().iter().map(|s| format!("{} {} {} {}..{}", s.id, s.summary_step, site(s.site), s.start, s.end));
    vec![
        ("slices", sorted(slices.map(|s| of_slice(&s)))),
        ("instants", sorted(instants)),
        ("flows", sorted(flows)),
        ("counters", sorted(counters)),
        ("memory", sorted(memory)),
        ("transfers", sorted(transfers)),
        ("steps", sorted(steps)),
        ("tracks", sorted(store.tracks().iter().map(|t| format!("{} dropped {}", track(t.id), t.dropped)))),
        ("processes", sorted((0..store.processes().len() as u32).map(|row| format!("{:?}", process(row))))),
        ("warnings", sorted(store.warnings().iter().map(|w| format!("{w:?}")))),
    ]
}

fn check(store: &Store) {
    let dir = tempfile::tempdir().unwrap();
    unseal(store, dir.path()).unwrap();
    let mut again = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(dir.path()).unwrap().read_all(&mut again).unwrap();
    assert_eq!(again.origin_ns(), store.origin_ns());
    for ((what, found), (_, want)) in meant(&again).into_iter().zip(meant(store)) {
        assert_eq!(found, want, "{what}");
    }
    let files = || {
        let entries = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
        entries
            .map(|path| (path.file_name().unwrap().to_owned(), std::fs::read(&path).unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    let first = files();
    let other = tempfile::tempdir().unwrap();
    unseal(store, other.path()).unwrap();
    for (name, bytes) in first {
        assert_eq!(std::fs::read(other.path().join(&name)).unwrap(), bytes, "{name:?}: the same bytes each time");
    }
}

#[test]
fn a_trace_means_the_same() {
    check(&testkit::store(
        "step 7: 0..4000000000000
         w0 a/A 0..10
         w0 a/B 12..28 by a/A queue 2
         >w0 a/Inner 13..20
         w1 shard a/B 13..20
         w1 idle 0..13
         w0 parked a/B 29..35 empty
         w0 a/Long 100..4000000000000
         gpu7 kernel: gemm 20..30 c 5
         gpu7 wait 31..32 for 20 record 11
         main synced 40..50 for 20 c 9
         2.w0 b/C 5..9
         flow 1 main 10 -> 2.w0 12
         flow 2 2.w0 10 -> w1 12
         transfer 3 a/_Send w0 1 2 3 -> b/_Recv 2.w0 8 9
         w0 count page-faults 1 4
         w0 count page-faults 9 44
         w0 alloc cpu:0 a/A 12 1024
         w0 alloc cpu:0 a/A 20 -1024",
    ));
}

#[test]
fn texts_samples_and_other_peoples_threads_do_too() {
    let mut batch = Batch::new();
    batch.set_origin(1_000_000);
    let key = |pid, ring| TrackKey { pid, ring };
    let process = |pid, name: &str| Name::Process { pid, host: "h".into(), name: name.into(), ns_per_tick: 1.0 };
    batch.name(process(40, "kernel"));
    batch.name(process(50, "first life"));
    batch.name(process(1 << 22, "second life"));
    batch.name(Name::Pid { process: 1 << 22, pid: 50 });
    batch.name(Name::Other { pid: 60, host: "h".into(), name: "sh -c true".into() });
    for (pid, ring, of) in [(40, 0, 60), (40, 1, 40), (50, 0, 50), (1 << 22, 0, 1 << 22)] {
        let (key, kind, name) = (key(pid, ring), TrackKind::Thread, format!("thread {pid} {ring}"));
        batch.name(Name::Track { key, kind, name, tid: pid + ring, device: String::new(), stream: None, order: 5 });
        batch.name(Name::Owner { key, pid: of });
    }
    for (pid, id, category, name) in [
        (40, 0, "sample", "CPU clock"),
        (40, 1, "counter", "faults"),
        (50, 0, "app::x", "event"),
        (1 << 22, 0, "app", "run"),
    ] {
        batch.name(Name::Site { pid, id, category: category.into(), name: name.into() });
    }
    for (id, parent) in [(0, u32::MAX), (1, 0)] {
        batch.name(Name::Frame { pid: 40, id, module: "/lib/x.so".into(), address: 16 * u64::from(id) });
        let function = Function { name: format!("f{id}"), file: "a.rs".into(), line: id };
        batch.name(Name::Function { pid: 40, frame: id, function });
        batch.name(Name::Stack { pid: 40, id, parent, frame: id });
    }
    let text = "counters: not recorded; run as root";
    batch.warnings.push(Warning::new(WarningKind::Unavailable, "perf", 1, text));
    let event = |kind, at: i64| Event::at(kind, 0, 1_000_000 + at);
    let (log, args) = (
        batch.args(r#"{"message":"said \"yes\" and more, in many words: größer als 28"}"#),
        batch.args(r#"{"a":[1,2]}"#),
    );
    let sample = |at, arg| Event { arg, ..event(EventKind::Instant, at) };
    batch.track(key(40, 0)).events = vec![sample(3, 1), sample(5, u64::from(u32::MAX))];
    batch.track(key(40, 0)).events.push(Event { site: 1, arg: 2.5f64.to_bits(), ..event(EventKind::Counter, 9) });
    batch.track(key(40, 0)).dropped = Some(3);
    batch.track(key(50, 0)).events = vec![Event { args: log, ..event(EventKind::Instant, 4) }];
    let slices =
        (0..10_000).map(|n| Event { end: 1_000_007 + 10 * n, args, arg: n as u64, ..event(EventKind::Slice, 10 * n) });
    batch.track(key(1 << 22, 0)).events = slices.collect();
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    store.apply(batch);
    check(&store);
}
