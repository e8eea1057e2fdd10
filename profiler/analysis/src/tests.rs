//! Paths and tables of traces whose answers are known, and what holds of every trace.

use super::breakdown::breakdown;
use super::critical::{CriticalPath, critical_path, critical_path_of_range};
use super::diff::diff;
use super::memory::memory_timelines;
use super::ops::{critical_paths, op_table, scope_table};
use super::report::analyse;
use proptest::prelude::*;
use trace_store::{Store, testkit};

/// `start..end kind slice` of each segment.
fn lines(store: &Store, path: &CriticalPath) -> Vec<String> {
    let line = |s: &super::critical::Segment| {
        let slice = s.slice.and_then(|id| store.slice(id));
        let name = slice.map_or_else(String::new, |slice| format!(" {}", store.slice_name(&slice)));
        format!("{}..{} {:?}{name}", s.start, s.end, s.kind)
    };
    path.segments.iter().map(line).collect()
}

/// The lines of a text, without their indentation.
pub(crate) fn trimmed(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

fn check(trace: &str, want: &str) {
    let store = testkit::store(trace);
    let path = match store.steps().first() {
        Some(step) => critical_path(&store, step),
        None => critical_path_of_range(&store, store.range()),
    };
    assert_eq!(lines(&store, &path), trimmed(want), "in\n{trace}");
}

#[test]
fn the_path_changes_threads_with_the_last_arrival() {
    // D needed B and C; C came last. B and X delay nothing.
    check(
        "step 1: 0..100
         w0 A 5..20 queue 3
         w1 B 22..40 by A
         w2 C 24..60 by A
         w3 X 5..55
         w1 D 62..90 by C",
        "0..2 Stall(StepBegin)
         2..5 Stall(Dispatch)
         5..20 Op A
         20..24 Stall(Dispatch) A
         24..60 Op C
         60..62 Stall(Dispatch) C
         62..90 Op D
         90..100 Stall(StepEnd)",
    );
}

#[test]
fn a_step_among_others_has_a_path_of_its_own() {
    // Step 2 fills a queue; what the training step runs meanwhile is none of its business, though it ends later.
    let store = testkit::store(
        "step 1: 0..100
         w0 A 5..20
         w0 B 20..79 by A
         step 2: on w1 10..80
         w1 q/Enqueue 12..14
         w1 parked q/Enqueue 13..70 full",
    );
    let of = |id: u32| lines(&store, &critical_path(&store, store.steps().iter().find(|step| step.id == id).unwrap()));
    assert_eq!(of(1), ["0..5 Stall(StepBegin)", "5..20 Op A", "20..79 Op B", "79..100 Stall(StepEnd)"]);
    let own = ["10..12 Stall(StepBegin)", "12..13 Op q/Enqueue", "13..70 Stall(QueueFull) q/Enqueue"];
    assert_eq!(of(2), [&own[..], &["70..80 Stall(StepEnd)"]].concat());
    // The range's is that of the step that did not wait for room.
    let paths = critical_paths(&store, store.range());
    assert_eq!(paths.iter().map(|path| (path.step_id, path.range.clone())).collect::<Vec<_>>(), [(Some(1), 0..100)]);
}

#[test]
fn an_op_that_queued_was_held_up_by_what_its_worker_ran() {
    check(
        "step 1: 0..60
         w0 A 0..10
         w0 Long 10..40 by A
         w0 B 40..60 by A queue 30",
        "0..10 Op A
         10..40 Op Long
         40..60 Op B",
    );
}

#[test]
fn a_step_of_a_host_ends_with_what_it_launched() {
    check(
        "step 7: 0..50
         main op: aten::mm 10..40
         >main launch: cudaLaunchKernel 20..25 c 1
         gpu7 kernel: gemm 28..90 c 1
         main op: next 60..70
         gpu7 kernel: later 95..99 c 2",
        "0..10 Stall(Unexplained)
         10..20 Host aten::mm
         20..28 Stall(Launch) cudaLaunchKernel
         28..90 Kernel gemm",
    );
}

#[test]
fn a_host_that_synchronises_waits_for_the_stream() {
    check(
        "main launch: cudaLaunchKernel 0..5 c 1
         gpu7 kernel: gemm 8..60 c 1
         main synced 6..64 for 7 c 2
         main op: print 64..80",
        "0..8 Stall(Launch) cudaLaunchKernel
         8..60 Kernel gemm
         60..64 Stall(Synchronisation) cudaStreamSynchronize
         64..80 Host print",
    );
}

#[test]
fn the_path_crosses_to_the_peer_that_came_last() {
    check(
        "main launch: cudaLaunchKernel 0..2 c 1
         gpu7 collective: AllReduce 4..50 c 1
         2.main input: next 0..28
         2.main launch: cudaLaunchKernel 28..29 c 1
         2.gpu7 collective: AllReduce 30..50 c 1",
        "0..28 Input next
         28..30 Stall(Launch) cudaLaunchKernel
         30..50 Collective AllReduce",
    );
}

#[test]
fn a_breakdown_by_hand() {
    let store = testkit::store(
        "main input: next 0..10
         main op: aten::add 10..20
         gpu7 kernel: k 15..40 c 1
         gpu8 collective: AllReduce 30..60 c 2
         gpu9 copy: HtoD 35..65 c 3
         main op: log 60..80
         gpu7 kernel: l 90..100 c 4",
    );
    let b = breakdown(&store, 0..100, None);
    let exposed = (b.compute_ns, b.communication_exposed_ns, b.copy_exposed_ns, b.input_ns, b.host_ns, b.idle_ns);
    assert_eq!(exposed, (35, 20, 5, 10, 20, 10));
    assert_eq!((b.communication_overlapped_ns, b.copy_overlapped_ns), (10, 25));
    let devices = analyse(&store, 0..100).devices;
    assert_eq!(devices.len(), 1);
    let d = &devices[0].times;
    assert_eq!(
        (d.range.clone(), d.compute_ns, d.communication_exposed_ns + d.copy_exposed_ns, d.idle_ns),
        (15..100, 35, 25, 25)
    );
    let streams: Vec<(i64, i64)> = devices[0].streams.iter().map(|(_, busy, idle)| (*busy, *idle)).collect();
    assert_eq!(streams, [(35, 50), (30, 0), (30, 0)]);
}

#[test]
fn tables_by_hand() {
    let store = testkit::store(
        "step 1: 0..100
         w0 l/a/MatMul 0..40
         w1 l/b/MatMul 10..30
         >w1 l/Cast 15..20
         w0 l/a/Add 40..100 by l/a/MatMul",
    );
    let paths = critical_paths(&store, store.range());
    let (_, ops) = op_table(&store, store.range(), &paths);
    let row = |name: &str| ops.iter().find(|o| o.name == name).unwrap();
    let (matmul, add) = (row("MatMul"), row("Add"));
    assert_eq!((matmul.figures.count, matmul.figures.total_ns, matmul.figures.self_ns), (2, 60, 55));
    assert_eq!((matmul.critical_ns, add.critical_ns, row("Cast").critical_ns), (40, 60, 0));
    assert_eq!((matmul.critical_share, matmul.device.as_str()), (0.4, "cpu:0"));
    assert!((ops.iter().map(|o| o.figures.share).sum::<f64>() - 1.0).abs() < 1e-12);
    let scopes = scope_table(&store, store.range(), &paths);
    let rows: Vec<_> = scopes.iter().map(|s| (s.scope.as_str(), s.count, s.self_ns, s.critical_ns)).collect();
    assert_eq!(rows, [("l", 4, 120, 100), ("l/a", 2, 100, 100), ("l/b", 1, 15, 0)]);
}

#[test]
fn memory_at_the_peak() {
    let store = testkit::store(
        "w0 alloc gpu:0 A 10 100
         w0 alloc gpu:0 B 20 50
         w1 alloc gpu:0 A 15 -100
         w0 alloc gpu:0 C 30 80
         w0 alloc gpu:0 B 30 -50
         w0 alloc cpu:0 A 5 7",
    );
    let found = memory_timelines(&store);
    assert_eq!(found.iter().map(|m| m.device.as_str()).collect::<Vec<_>>(), ["gpu:0", "cpu:0"]);
    assert_eq!((found[0].peak_bytes, found[0].peak_time), (130, 30));
    assert_eq!(found[0].live_at_peak, [("C".to_owned(), 80), ("B".to_owned(), 50)]);
    assert_eq!(found[0].points, [(10, 100), (15, 0), (20, 50), (30, 80)]);
    assert!(found.iter().all(|device| device.rest_at_peak == 0));
}

/// The total that events report counts where there is one: it has what was taken before the recording, and small
/// pieces.
#[test]
fn memory_that_was_taken_before_the_recording() {
    let store = testkit::store(
        "w0 alloc cpu:0 A 10 128 of 1152
         w0 alloc cpu:0 Old 20 -512 of 640
         w0 alloc cpu:0 B 30 1024 of 1728
         w0 alloc cpu:0 A 40 -128 of 1600
         2.w0 alloc cpu:0 B 30 64 of 64",
    );
    let found = memory_timelines(&store);
    assert_eq!(found.len(), 2);
    let first = &found[0];
    assert!(first.device.starts_with("cpu:0 of "), "{}", first.device);
    assert_eq!(first.points, [(10, 1152), (20, 640), (30, 1728), (40, 1600)]);
    assert_eq!((first.peak_bytes, first.peak_time), (1728, 30));
    assert_eq!(first.live_at_peak, [("B".to_owned(), 1024), ("A".to_owned(), 128)]);
    assert_eq!(first.rest_at_peak, 1728 - 1024 - 128);
    assert_eq!((found[1].peak_bytes, found[1].rest_at_peak), (64, 0));
}

#[test]
fn who_came_last() {
    let store = testkit::store(
        "gpu7 collective: AllReduce 0..20 c 1
         2.gpu7 collective: AllReduce 5..20 c 1
         3.gpu7 collective: AllReduce 9..20 c 1
         gpu7 collective: AllReduce 30..50 c 2
         2.gpu7 collective: AllReduce 31..50 c 2
         3.gpu7 collective: AllReduce 41..50 c 2
         step 4: 0..60
         step 4: on 2.main 0..75",
    );
    let found = analyse(&store, store.range()).stragglers;
    let pid = |row: u32| store.processes()[row as usize].pid;
    let late: Vec<_> = found.collectives.iter().map(|l| (pid(l.process), l.late_ns, l.waited_ns)).collect();
    assert_eq!(late, [(3, 9, 13), (3, 11, 21)]);
    assert_eq!(found.steps.iter().map(|l| (pid(l.process), l.late_ns)).collect::<Vec<_>>(), [(2, 15)]);
    let worst: Vec<_> = found.processes.iter().map(|p| (pid(p.process), p.times_last, p.waited_ns)).collect();
    assert_eq!(worst, [(3, 2, 34), (2, 1, 15)]);
}

#[test]
fn findings_are_ranked_by_what_the_steps_waited_for() {
    // Busy has more time than Slow, but no step waits for it.
    let store = testkit::store(
        "step 1: 0..100
         w0 Slow 0..80
         w1 Busy 0..99
         main input: next 0..1
         w0 Last 90..100 by Slow",
    );
    let found = analyse(&store, store.range());
    let titles: Vec<(&str, i64)> = found.findings.iter().map(|f| (f.title.as_str(), f.saves_ns)).collect();
    assert_eq!(titles, [("slow op", 40), ("dispatch", 10), ("slow op", 5)]);
    assert!(found.findings[0].text.contains("`Slow` is 80.0 % of the critical path"), "{}", found.findings[0].text);
    let slow = store.slice(found.findings[0].slices[0]).unwrap();
    assert_eq!((store.slice_name(&slow), found.findings[0].range.clone()), ("Slow", 0..80));
}

#[test]
fn what_changed_is_distinguished_from_what_varies() {
    // `Slow` takes 30 longer in B, `Noisy` varies in both.
    let trace = |slow: i64, noise: [i64; 6]| {
        let mut text = String::new();
        for (i, noise) in noise.into_iter().enumerate() {
            let (begin, slow) = (i as i64 * 1000, slow + i as i64 % 2);
            text += &format!("step {}: {begin}..{}\n", i + 1, begin + 500 + slow);
            text += &format!("w0 net/Slow {begin}..{}\nw1 net/Noisy {begin}..{}\n", begin + slow, begin + noise);
        }
        testkit::store(&text)
    };
    let (a, b) = (trace(50, [10, 90, 40, 60, 20, 80]), trace(80, [90, 30, 50, 20, 70, 60]));
    let found = diff(&a, &b);
    let row = |changes: &[super::diff::Change], name: &str| changes.iter().find(|c| c.name == name).unwrap().clone();
    assert_eq!((found.a_steps, found.step.change_ns(), found.step.is_certain()), (6, 30.0, true));
    let slow = row(&found.ops, "Slow");
    assert!(slow.is_certain() && slow.change_ns() == 30.0, "{slow:?}");
    assert!(!row(&found.ops, "Noisy").is_certain());
    assert!(row(&found.scopes, "net").change_ns() > 30.0);
    let one = diff(&trace(50, [1; 6]), &testkit::store("step 1: 0..10\nw0 net/New 0..5"));
    assert_eq!((one.b_steps, one.step.interval_ns), (1, None));
    assert_eq!((row(&one.ops, "New").a_ns, row(&one.ops, "New").b_ns), (0.0, 5.0));
}

/// A slice of a random trace: its track, the pause before it, its length, its number, its category.
pub(crate) type Random = (usize, i64, i64, u32, usize);

pub(crate) fn slices_of_random() -> impl Strategy<Value = Vec<Random>> {
    prop::collection::vec((0usize..6, 0i64..30, 0i64..20, 0u32..8, 0usize..8), 1..60)
}

/// The lines of random slices on hosts, a worker and streams of two processes.
pub(crate) fn random(slices: &[Random]) -> String {
    let (mut at, mut text) = ([0i64; 6], String::new());
    for (i, (track, gap, dur, number, category)) in slices.iter().enumerate() {
        let start = at[*track] + gap;
        at[*track] = start + dur;
        let end = at[*track];
        let name = ["main", "w0", "gpu7", "gpu8", "2.main", "2.gpu7"][*track];
        let category =
            ["launch:", "kernel:", "copy:", "collective:", "input:", "off-cpu:", "python:", "op:"][*category];
        match name {
            "w0" => text += &format!("w0 n{i}x {start}..{end} by n{number}x\n"),
            _ => text += &format!("{name} {category} x {start}..{end} c {number}\n"),
        }
    }
    text
}

proptest! {
    /// Whatever the trace: paths have no holes, and breakdowns add up.
    #[test]
    fn paths_and_breakdowns_add_up(slices in slices_of_random()) {
        let text = format!("step 1: 0..400\n{}", random(&slices));
        let store = testkit::store(&text);
        for path in critical_paths(&store, store.range()).iter().chain([&critical_path_of_range(&store, 0..300)]) {
            let mut until = path.range.start;
            for segment in &path.segments {
                prop_assert!(segment.start == until && segment.end > segment.start);
                until = segment.end;
            }
            prop_assert_eq!(until, path.range.end);
        }
        let b = breakdown(&store, 0..500, None);
        let sum = b.compute_ns + b.communication_exposed_ns + b.copy_exposed_ns + b.input_ns + b.host_ns + b.idle_ns;
        prop_assert_eq!(sum, 500);
        for device in analyse(&store, store.range()).devices {
            let t = &device.times;
            prop_assert_eq!(t.compute_ns + t.communication_exposed_ns + t.copy_exposed_ns + t.input_ns + t.idle_ns, t.total_ns());
        }
        // Every gap is divided without holes, on every kind of track.
        let mut parts: std::collections::BTreeMap<_, Vec<_>> = std::collections::BTreeMap::new();
        for stall in crate::stalls(&store, store.range()) {
            parts.entry((stall.track, stall.gap.start, stall.gap.end)).or_default().push((stall.start, stall.end));
        }
        for ((_, start, end), mut parts) in parts {
            parts.sort_unstable();
            prop_assert!(parts[0].0 == start && parts[parts.len() - 1].1 == end);
            prop_assert!(parts.windows(2).all(|pair| pair[0].1 == pair[1].0), "{:?}", parts);
        }
    }
}
