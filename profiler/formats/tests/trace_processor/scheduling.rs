//! The states of threads as trace_processor's `thread_state` has them, next to ours: the same switches and wake-ups, which trace-cmd
//! recorded, from each format that says scheduling.

use super::TraceProcessor;
use formats::perfetto::ftrace_event_bundle::CompactSched;
use formats::perfetto::{
    FtraceEvent, FtraceEventBundle, ProcessTree, SchedSwitchFtraceEvent, SchedWakingFtraceEvent, TracePacket,
    process_tree,
};
use prost::Message;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use trace_analysis::threads::thread_times;
use trace_model::{Category, ThreadState, TrackKind};
use trace_store::Store;

/// A stay in a state: begin, end (none where it was still going on), state, and who woke the thread.
type CpuRun = (i64, Option<i64>, String, Option<i64>);
/// By thread id.
type CpuRuns = BTreeMap<i64, BTreeSet<CpuRun>>;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/trace-cmd").join(name)
}

/// What both say apart.
fn ours_of(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Running => "running",
        state if state.is_ready() => "ready",
        ThreadState::Sleeping => "sleeping",
        ThreadState::Uninterruptible => "uninterruptible",
        ThreadState::Stopped => "stopped",
        _ => "other",
    }
}

fn theirs_of(state: &str) -> &'static str {
    match state {
        "Running" => "running",
        "R" | "R+" => "ready",
        "S" => "sleeping",
        "D" => "uninterruptible",
        "T" | "t" => "stopped",
        _ => "other",
    }
}

const STATES: &str = "select thread.tid, s.ts, s.dur, s.state, waker.tid from thread_state s join thread using (utid)
    left join thread waker on s.waker_utid = waker.utid where thread.tid != 0 and s.state not in ('X', 'Z')";

/// What goes on until the recording's `last` event has no end.
fn theirs(rows: &[Vec<Value>], last: i64) -> CpuRuns {
    let mut runs = CpuRuns::new();
    for row in rows.iter().filter(|row| row[1].as_i64().unwrap() < last) {
        let number = |i: usize| row[i].as_i64().unwrap();
        let end = (number(2) >= 0).then(|| number(1) + number(2)).filter(|end| *end < last);
        let state = theirs_of(row[3].as_str().unwrap());
        runs.entry(number(0)).or_default().insert((number(1), end, state.to_owned(), row[4].as_i64()));
    }
    runs
}

fn ours(store: &Store, last: i64) -> CpuRuns {
    let (mut runs, last) = (CpuRuns::new(), last - store.origin_ns());
    for track in store.tracks() {
        let before = i64::MIN..last;
        for slice in track.lanes.iter().flat_map(|lane| lane.slices(&before)) {
            let (Some(state), category) = (store.thread_state(&slice), store.category(&slice)) else { continue };
            let tid = if category == Category::Running { slice.correlation } else { track.tid };
            // Also the thread that took its CPU is a slice's correlation: that is no waker.
            let waker = (state == ThreadState::Runnable).then_some(i64::from(slice.correlation));
            let end = (slice.end < last).then(|| slice.end + store.origin_ns());
            let stay = (slice.start + store.origin_ns(), end, ours_of(state).to_owned(), waker);
            runs.entry(tid.into()).or_default().insert(stay);
        }
    }
    runs
}

/// An event of the text that trace-cmd prints: thread, CPU, time, name, and its fields.
struct Event {
    comm: String,
    tid: u32,
    cpu: u32,
    time: u64,
    name: String,
    fields: BTreeMap<String, String>,
    rest: String,
}

impl Event {
    /// With the fields that the text has.
    fn new(comm: String, (tid, cpu, time): (u32, u32, u64), name: &str, rest: &str) -> Event {
        let fields = rest.split_whitespace().filter_map(|word| word.split_once('='));
        let fields = fields.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Event { comm, tid, cpu, time, name: name.to_owned(), fields, rest: rest.to_owned() }
    }

    fn number(&self, field: &str) -> i32 {
        self.fields[field].parse().unwrap()
    }
}

fn events(text: &str) -> Vec<Event> {
    let line = |line: &str| {
        let (task, after) = line.trim().split_once(" [")?;
        let (comm, tid) = task.trim().rsplit_once('-')?;
        let (cpu, after) = after.split_once("] ")?;
        let (time, after) = after.trim().split_once(": ")?;
        let (name, rest) = after.split_once(':')?;
        let (seconds, ns) = time.split_once('.')?;
        let time = seconds.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?;
        Some(Event::new(comm.trim().to_owned(), (tid.parse().ok()?, cpu.parse().ok()?, time), name, rest.trim()))
    };
    text.lines().filter_map(line).filter(|e| e.name.starts_with("sched_")).collect()
}

/// As trace_processor knows the kernel's text.
fn as_ftrace(events: &[Event]) -> Vec<u8> {
    let mut text = "# tracer: nop\n#\n".to_owned();
    for e in events {
        let (seconds, ns) = (e.time / 1_000_000_000, e.time % 1_000_000_000);
        text += &format!("{:>16}-{} [{:03}] .... {seconds}.{ns:09}: {}: {}\n", e.comm, e.tid, e.cpu, e.name, e.rest);
    }
    text.into_bytes()
}

fn as_perf_script(events: &[Event]) -> Vec<u8> {
    let mut text = String::new();
    for e in events {
        let (seconds, ns) = (e.time / 1_000_000_000, e.time % 1_000_000_000);
        text += &format!("{} {} [{:03}] {seconds}.{ns:09}: sched:{}: {}\n", e.comm, e.tid, e.cpu, e.name, e.rest);
    }
    text.into_bytes()
}

/// `prev_state` as bits: those of the letters `RSDTtXZPI`.
fn bits(letters: &str) -> i64 {
    let n = "RSDTtXZPI".find(&letters[..1]).unwrap();
    let more = if letters.ends_with('+') { 0x100 } else { 0 };
    more | if n == 0 { 0 } else { 1 << (n - 1) }
}

/// A packet with the kernel's name and version, by which trace_processor knows what the bits of a state mean:
/// `system_info` (45) has `utsname` (1) with `sysname` (1) and `release` (3).
fn kernel() -> Vec<u8> {
    let field = |tag: &[u8], content: &[u8]| [tag, &[content.len() as u8], content].concat();
    let names = [field(&[0x0a], b"Linux"), field(&[0x1a], b"6.1.0")].concat();
    // 45 << 3 | 2 as a varint; and the number of the writer (10), which each packet has.
    let packet = [field(&[0xea, 0x02], &field(&[0x0a], &names)), vec![0x50, 1]].concat();
    field(&[0x0a], &packet)
}

/// Bundles of each CPU's events, with every thread in process 77 as the recorder's list of processes says.
fn as_perfetto(events: &[Event], is_compact: bool) -> Vec<u8> {
    let mut bundles: BTreeMap<u32, FtraceEventBundle> = BTreeMap::new();
    for e in events {
        let bundle = bundles.entry(e.cpu).or_insert(FtraceEventBundle { cpu: Some(e.cpu), ..Default::default() });
        if is_compact { compact(e, bundle.compact_sched.get_or_insert_default()) } else { bundle.event.push(plain(e)) }
    }
    for compact in bundles.values_mut().filter_map(|bundle| bundle.compact_sched.as_mut()) {
        for times in [&mut compact.switch_timestamp, &mut compact.waking_timestamp] {
            (1..times.len()).rev().for_each(|i| times[i] -= times[i - 1]);
        }
    }
    let tids: BTreeSet<u32> = events.iter().map(|e| e.tid).filter(|tid| *tid != 0).collect();
    let thread = |tid: u32| process_tree::Thread { tid: Some(tid as i32), tgid: Some(77), ..Default::default() };
    let tree = ProcessTree {
        processes: vec![process_tree::Process { pid: Some(77), ..Default::default() }],
        threads: tids.into_iter().map(thread).collect(),
    };
    let tree = TracePacket { process_tree: Some(tree), timestamp: Some(events[0].time), ..Default::default() };
    let packets = bundles.into_values().map(|bundle| TracePacket {
        ftrace_events: Some(bundle),
        trusted_packet_sequence_id: Some(1),
        ..Default::default()
    });
    let mut bytes = kernel();
    for packet in std::iter::once(tree).chain(packets) {
        // Field 1 of the trace.
        bytes.push(0x0a);
        packet.encode_length_delimited(&mut bytes).unwrap();
    }
    bytes
}

fn plain(e: &Event) -> FtraceEvent {
    let mut event = FtraceEvent { timestamp: Some(e.time), pid: Some(e.tid), ..Default::default() };
    if e.name == "sched_switch" {
        event.sched_switch = Some(SchedSwitchFtraceEvent {
            prev_comm: Some(e.fields["prev_comm"].clone()),
            prev_pid: Some(e.number("prev_pid")),
            prev_prio: Some(120),
            prev_state: Some(bits(&e.fields["prev_state"])),
            next_comm: Some(e.fields["next_comm"].clone()),
            next_pid: Some(e.number("next_pid")),
        });
    } else {
        event.sched_waking = Some(SchedWakingFtraceEvent {
            comm: Some(e.fields["comm"].clone()),
            pid: Some(e.number("pid")),
            prio: Some(120),
            success: Some(1),
            target_cpu: Some(e.number("target_cpu")),
        });
    }
    event
}

fn compact(e: &Event, c: &mut CompactSched) {
    let comm = e.fields.get("next_comm").or(e.fields.get("comm")).unwrap();
    let index = c.intern_table.iter().position(|known| known == comm).unwrap_or(c.intern_table.len());
    if index == c.intern_table.len() {
        c.intern_table.push(comm.clone());
    }
    if e.name == "sched_switch" {
        c.switch_timestamp.push(e.time);
        c.switch_prev_state.push(bits(&e.fields["prev_state"]));
        c.switch_next_pid.push(e.number("next_pid"));
        c.switch_next_prio.push(120);
        c.switch_next_comm_index.push(index as u32);
    } else {
        c.waking_timestamp.push(e.time);
        c.waking_pid.push(e.number("pid"));
        c.waking_target_cpu.push(e.number("target_cpu"));
        c.waking_comm_index.push(index as u32);
    }
}

/// The sums by thread that the analysis gives: no thread runs 0 ns that ran, and all of its time is there.
fn sums(store: &Store, runs: &CpuRuns, what: &str) {
    let all = thread_times(store, &store.range());
    let end = store.origin_ns() + store.range().end;
    let mut n_compared = 0;
    for times in all {
        let tid = i64::from(store.track(times.track).unwrap().tid);
        let sum = |wanted: &str| -> i64 {
            let of_state = runs[&tid].iter().filter(|(_, _, state, _)| state == wanted);
            of_state.map(|(from, to, ..)| to.unwrap_or(end) - from).sum()
        };
        let own = [times.running_ns, times.ready_ns, times.sleeping_ns, times.uninterruptible_ns];
        let theirs = ["running", "ready", "sleeping", "uninterruptible"].map(sum);
        assert_eq!(own, theirs, "{what}: thread {tid}");
        n_compared += 1;
    }
    assert!(n_compared > 4, "{what}: {n_compared} threads");
}

/// Compact switches do not say who had the CPU before: nobody knows why the first thread of each CPU left it.
fn without_first(runs: &CpuRuns, events: &[Event]) -> CpuRuns {
    let mut runs = runs.clone();
    let mut cpus = BTreeSet::new();
    for e in events.iter().filter(|e| e.name == "sched_switch" && cpus.insert(e.cpu)) {
        if let Some(own) = runs.get_mut(&i64::from(e.tid)) {
            own.retain(|(from, ..)| *from != e.time as i64);
        }
    }
    runs.retain(|_, own| !own.is_empty());
    runs
}

#[track_caller]
fn same(own: &CpuRuns, theirs: &CpuRuns, what: &str) {
    for (tid, runs) in theirs {
        let own = own.get(tid).unwrap_or_else(|| panic!("{what}: thread {tid} is missing"));
        let missing: Vec<_> = runs.difference(own).collect();
        let more: Vec<_> = own.difference(runs).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "{what}: thread {tid}: not here {missing:?}, only here {more:?}"
        );
    }
    assert_eq!(own.len(), theirs.len(), "{what}");
}

/// A schedule of 40 threads on 4 CPUs in which every state occurs, made up.
fn made_up() -> Vec<Event> {
    let mut seed = 18_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let (mut on, mut ready, mut blocked) = ([0_u32; 4], (101..141).collect::<Vec<u32>>(), Vec::new());
    let name = |tid: u32| if tid == 0 { "swapper".to_owned() } else { format!("thread{tid}") };
    let mut events = Vec::new();
    for n in 0..4_000_u64 {
        let cpu = random(4);
        let tid = on[cpu];
        let (event, rest) = if random(3) > 0 && !ready.is_empty() {
            let next = ready.swap_remove(random(ready.len()));
            let state = if tid == 0 { "R" } else { ["S", "S", "D", "R", "R+", "T", "t", "I", "P"][random(9)] };
            match (tid, state) {
                (0, _) => {}
                (_, "R" | "R+") => ready.push(tid),
                _ => blocked.push(tid),
            }
            on[cpu] = next;
            let prev = format!("prev_comm={} prev_pid={tid} prev_prio=120 prev_state={state}", name(tid));
            ("sched_switch", format!("{prev} ==> next_comm={} next_pid={next} next_prio=120", name(next)))
        } else if tid != 0 && !blocked.is_empty() {
            let woken = blocked.swap_remove(random(blocked.len()));
            ready.push(woken);
            ("sched_waking", format!("comm={} pid={woken} prio=120 target_cpu={:03}", name(woken), random(4)))
        } else {
            continue;
        };
        events.push(Event::new(name(tid), (tid, cpu as u32, 5_000_000_000 + n * 1_733), event, &rest));
    }
    events
}

/// Of the recordings the one whose kernel reported every switch; the others lack those of the idle thread.
#[test]
fn each_source_has_the_states_that_trace_processor_has() {
    let Some(peer) = TraceProcessor::find() else { return };
    let dir = tempfile::tempdir().unwrap();
    let recorded = events(&std::fs::read_to_string(fixture("v6.dat.txt")).unwrap());
    for (recording, events) in [("v6", recorded), ("made up", made_up())] {
        assert!(events.len() > 60, "{recording}: {}", events.len());
        let write = |name: &str, bytes: Vec<u8>| {
            let path = dir.path().join(format!("{recording}{name}"));
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let text = write(".txt", as_ftrace(&events));
        let packets = write(".pftrace", as_perfetto(&events, false));
        let last = events.iter().map(|e| e.time).max().unwrap() as i64;
        let by_text = theirs(&peer.ask(&text, &[STATES])[0], last);
        let by_packets = theirs(&peer.ask(&packets, &[STATES])[0], last);
        same(&by_text, &by_packets, "trace_processor reads both alike");
        let sources = [
            ("ftrace", text),
            ("perf script", write(".perf", as_perf_script(&events))),
            ("Perfetto", packets),
            ("Perfetto, compact", write("-compact.pftrace", as_perfetto(&events, true))),
        ];
        let binary = (recording == "v6").then(|| ("trace.dat", fixture("v6.dat")));
        for (source, path) in sources.into_iter().chain(binary) {
            let what = format!("{recording}, {source}");
            let store = super::read(&path);
            let compact = source.ends_with("compact").then(|| without_first(&by_text, &events));
            let expected = compact.as_ref().unwrap_or(&by_text);
            same(&ours(&store, last), expected, &what);
            sums(&store, expected, &what);
            if source.starts_with("Perfetto") {
                let threads = store.tracks().iter().filter(|t| t.kind == TrackKind::Thread);
                let processes: BTreeSet<u32> = threads.map(|t| store.processes()[t.process as usize].pid).collect();
                assert!(processes.contains(&77), "{what}: threads are in their processes: {processes:?}");
            }
        }
    }
}
