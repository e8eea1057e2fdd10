//! Planted traces whose first findings an expert would name.

use super::Finding;
use crate::critical::PathKind;
use crate::report::{Analysis, analyse, analyse_step};
use crate::tests::{Random, random, slices_of_random};
use proptest::prelude::*;
use trace_store::{Store, testkit};

fn analysis(text: &str) -> (Store, Analysis) {
    let store = testkit::store(text);
    let range = store.range();
    let found = analyse(&store, range);
    (store, found)
}

fn titles(analysis: &Analysis) -> Vec<&str> {
    analysis.findings.iter().map(|f| f.title.as_str()).collect()
}

fn of<'a>(analysis: &'a Analysis, title: &str) -> &'a Finding {
    let found = analysis.findings.iter().find(|f| f.title == title);
    found.unwrap_or_else(|| panic!("no {title:?} in {:#?}", analysis.findings))
}

/// The names of the slices of all findings with a title.
fn culprits_of<'a>(store: &'a Store, analysis: &Analysis, title: &str) -> Vec<&'a str> {
    let slices = analysis.findings.iter().filter(|f| f.title == title).flat_map(|f| &f.slices);
    slices.filter_map(|id| store.slice(*id)).map(|slice| store.slice_name(&slice)).collect()
}

fn check_text(finding: &Finding, has: &[&str], lacks: &[&str]) {
    let text = &finding.text;
    assert!(has.iter().all(|part| text.contains(part)) && !lacks.iter().any(|part| text.contains(part)), "{text}");
}

fn check_titles(analysis: &Analysis, has: &[&str], lacks: &[&str]) {
    let titles = titles(analysis);
    assert!(has.iter().all(|t| titles.contains(t)) && !lacks.iter().any(|t| titles.contains(t)), "{titles:?}");
}

/// Steps of a host that launches a kernel after something else.
fn steps(before: &str) -> String {
    let mut text = String::new();
    for i in 0..4_i64 {
        let (begin, call) = (i * 100_000_000, i + 1);
        let at = |ms: i64| begin + ms * 1_000_000;
        text += &format!("step {call}: {begin}..{}\n", at(99));
        text += &format!(">{before} {}..{}\n", at(1), at(81));
        text += &format!(">main launch: cudaLaunchKernel {}..{} c {call}\n", at(82), at(83));
        text += &format!("gpu7 kernel: gemm {}..{} c {call}\n", at(83), at(98));
    }
    text
}

#[test]
fn the_wait_for_a_loader_is_input_whoever_made_it() {
    for span in [
        "main user_annotation: enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "main user_annotation: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "main op: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "main host: IteratorGetNextOp::DoCompute",
        "main host: InfeedEnqueueTuple",
    ] {
        let (store, found) = analysis(&steps(span));
        let first = &found.findings[0];
        assert_eq!(first.title, "input", "{span}: {:#?}", found.findings);
        assert!(first.text.starts_with("Steps wait for their input: 80.0 ms a step"), "{}", first.text);
        assert!(found.breakdown.input_ns >= 320_000_000);
        let gap = found.stalls.iter().find(|s| s.track.0 != 0 && s.dur() == 80_000_000).expect("the stream waited");
        assert_eq!(gap.cause, crate::stalls::Cause::InputLate, "{}", gap.text(&store));
    }
    // Code of the user's own is not.
    let (_, found) = analysis(&steps("main user_annotation: augment"));
    assert_eq!(found.findings[0].title, "host code");
}

#[test]
fn what_runs_in_the_fetch_of_a_batch_is_input_too() {
    let (_, found) = analysis(
        "step 1: 0..100000
         >main user_annotation: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 0..80000
         >>main op: aten::stack 1000..79000
         >main launch: cudaLaunchKernel 81000..82000 c 1
         gpu7 kernel: gemm 83000..99000 c 1",
    );
    assert_eq!((titles(&found)[0], found.findings[0].saves_ns), ("input", 80_000));
}

#[test]
fn a_span_around_everything_is_no_culprit() {
    // The host's own code within `backward`, between what it holds: `inner`, which is no label and half of nothing.
    let (store, found) = analysis(
        "step 1: 0..100000
         >main user_annotation: ##backward## 1000..99000
         >>main python: inner 2000..9000
         >>main launch: cudaLaunchKernel 80000..81000 c 1
         gpu7 kernel: gemm 82000..98000 c 1",
    );
    // What only the span encloses, and the function, which is large enough to be named by itself.
    assert_eq!(culprits_of(&store, &found, "host code"), ["inner"]);
    let host = of(&found, "host code");
    check_text(host, &["within `##backward##` on main"], &["at `##backward##`"]);
    let culprits = found.stalls.iter().filter_map(|s| s.culprit.and_then(|id| store.slice(id)));
    assert!(culprits.map(|slice| store.slice_name(&slice).to_owned()).all(|name| name != "##backward##"));
}

#[test]
fn a_threads_whole_life_is_no_culprit_and_a_function_within_is() {
    let (store, found) = analysis(
        "main python: <module> 0..1000000
         >main python: load 10000..700000
         >>main python: read 20000..30000
         >main python: fit 800000..990000",
    );
    let names = culprits_of(&store, &found, "host code");
    assert!(names.contains(&"fit") && !names.contains(&"<module>"), "{names:?}");
    check_text(of(&found, "host code"), &[], &["Steps"]);
}

#[test]
fn one_late_kernel_is_not_many_launches() {
    // Its kernel began 493 ms after the launch; another's 4 us.
    let (_, found) = analysis(
        "main launch: cudaLaunchKernel 0..5000 c 1
         gpu7 kernel: first 4000..90000 c 1
         main launch: cudaLaunchKernel 200000000..200005000 c 2
         gpu7 kernel: late 693000000..693090000 c 2",
    );
    let late = of(&found, "work that began late");
    assert_eq!(late.saves_ns, 493_000_000);
    check_text(late, &["It is one piece, at `cudaLaunchKernel` on main"], &["Fused"]);
    check_titles(&found, &[], &["launch overhead"]);
    // A call that blocks is not many launches either.
    let (_, found) = analysis(
        "main launch: cudaLaunchKernel 0..400000000 c 1
         gpu7 kernel: first 400001000..450000000 c 1",
    );
    check_titles(&found, &["long launch calls"], &["launches"]);
}

#[test]
fn many_short_launches_are_launch_overhead() {
    let mut text = String::new();
    for i in 0..1_000_i64 {
        let at = i * 30_000;
        text += &format!("main launch: cudaLaunchKernel {at}..{} c {}\n", at + 25_000, i + 1);
        text += &format!("gpu7 kernel: tiny {}..{} c {}\n", at + 28_000, at + 29_000, i + 1);
    }
    let (_, found) = analysis(&text);
    let first = &found.findings[0];
    assert!(
        ["launches", "launch overhead"].contains(&first.title.as_str()) && first.text.contains("Fused kernels"),
        "{first:?}"
    );
    assert!(first.text.contains("The longest of "), "{}", first.text);
}

#[test]
fn communication_that_nothing_hides_is_reported_when_it_is_large() {
    // Half of each rank's time; the path is the hosts', which end last and wait for nothing.
    let mut text = String::new();
    for rank in [1, 2] {
        for i in 0..10_i64 {
            let at = i * 1_000_000;
            let (kernel, reduce) = (2 * i + 1, 2 * i + 2);
            text += &format!("{rank}.main launch: cudaLaunchKernel {at}..{} c {kernel}\n", at + 1_000);
            text += &format!("{rank}.main launch: cudaLaunchKernel {}..{} c {reduce}\n", at + 2_000, at + 3_000);
            text += &format!("{rank}.main python: log {}..{}\n", at + 3_000, at + 1_000_000);
            text += &format!("{rank}.gpu7 kernel: gemm {}..{} c {kernel}\n", at + 4_000, at + 490_000);
            text += &format!("{rank}.gpu20 collective: ncclAllReduce {}..{} c {reduce}\n", at + 495_000, at + 999_000);
        }
    }
    let (_, found) = analysis(&text);
    assert_eq!(titles(&found).iter().filter(|t| **t == "exposed communication").count(), 1);
    let exposed = of(&found, "exposed communication");
    assert!(exposed.share > 0.4 && exposed.share <= 1.0, "{exposed:?}");
    let position = titles(&found).iter().position(|t| *t == "exposed communication");
    assert!(position < Some(3), "{:?}", titles(&found));
}

#[test]
fn the_profilers_own_work_is_nobodys_to_change() {
    let (_, found) = analysis(
        "main host: train 0..1000000
         main host: ProfilerSession::Stop 1000000..9000000
         >main host: inner 1100000..8900000",
    );
    assert!(
        found.findings.iter().all(|f| !f.text.contains("Profiler") && !f.text.contains("inner")),
        "{:#?}",
        found.findings
    );
    let kinds = |kind: PathKind| {
        let segments = found.paths.iter().flat_map(|p| &p.segments).filter(|s| s.kind == kind);
        segments.map(crate::critical::Segment::dur).sum::<i64>()
    };
    assert_eq!((kinds(PathKind::Profiler), kinds(PathKind::Host)), (8_000_000, 1_000_000));
    assert_eq!(of(&found, "host code").share, 1.0, "of what is the program's");
}

/// `main` waits for a lock that `w0` holds while it burns, then burns a little itself; `w1` is pushed off its CPU by
/// `w0`.
const PLAIN: &str = "main off-cpu: sleeping 100000000..900000000 c 101
    w0 off-cpu: sleeping 0..50000000 c 100
    w1 off-cpu: preempted 100000000..400000000 c 101
    helper off-cpu: sleeping 0..997000000 c 0
    main off-cpu: runnable 900000000..901000000 c 101
    w0 off-cpu: sleeping 950000000..1000000000 c 0
    w1 off-cpu: sleeping 500000000..1000000000 c 0
    cpu0 runs main 0..100000000
    cpu0 runs main 901000000..1000000000
    cpu1 runs w0 50000000..950000000
    cpu2 runs w1 0..100000000
    cpu2 runs w1 400000000..500000000
    cpu3 runs helper 997000000..998000000";

fn thread_name(with_samples: bool) -> (Store, Analysis) {
    let mut text = PLAIN.to_owned();
    for ms in (50..950).filter(|_| with_samples) {
        let stack = if ms % 10 == 0 { "start;work;other" } else { "start;work;burn" };
        text += &format!("\nw0 sample {} {stack}", ms * 1_000_000 + 500_000);
    }
    analysis(&text)
}

#[test]
fn a_program_without_steps_gets_findings_from_samples_waits_and_threads() {
    let (_, found) = thread_name(true);
    let all: Vec<String> = found.findings.iter().map(|f| format!("{}: {}", f.title, f.text)).collect();
    assert!(all.iter().all(|text| !text.to_lowercase().contains("step")), "{all:#?}");
    let burn = of(&found, "hot function");
    assert!(
        burn.text.starts_with("`burn`, called by `work` ← `start` has 90.0 % of the samples (810 of 900, 810 ms"),
        "{}",
        burn.text
    );
    assert!((400_000_000..=450_000_000).contains(&burn.saves_ns), "{burn:?}");
    let asleep = found.findings.iter().find(|f| f.text.contains("`main` slept for 800 ms")).expect("who slept");
    assert!(asleep.text.contains("`w0` ended 800 ms of that, which ran `burn` meanwhile"), "{}", asleep.text);
    let no_cpu = of(&found, "no CPU");
    check_text(no_cpu, &["`w1` could run for 300 ms", "`w0` took it"], &[]);
    assert!(!titles(&found).contains(&"unexplained"));
}

#[test]
fn threads_of_the_kernel_that_sleep_are_no_finding() {
    let (_, found) = analysis(
        "main off-cpu: sleeping 100000000..400000000 c 0
         kworker/0 off-cpu: sleeping 0..900000000 c 0
         cpu0 runs main 0..100000000
         cpu0 runs main 400000000..1000000000
         cpu1 runs kworker/0 900000000..1000000000",
    );
    let asleep: Vec<&str> =
        found.findings.iter().map(|f| f.text.as_str()).filter(|t| t.contains("slept for")).collect();
    assert!(asleep.len() == 1 && asleep[0].starts_with("`main` slept for 300 ms"), "{asleep:?}");
}

#[test]
fn the_path_of_a_plain_program_leads_through_who_woke_it() {
    let (store, found) = thread_name(false);
    let [path] = &found.paths[..] else { panic!("{:?}", found.paths) };
    let name = |s: &crate::critical::Segment| store.track(s.track).map_or("?", |t| &t.name).to_owned();
    let on_cpu = |track: &str| {
        let segments = path.segments.iter().filter(|s| s.kind == PathKind::Running && name(s) == track);
        segments.map(crate::critical::Segment::dur).sum::<i64>()
    };
    assert!(on_cpu("w0") >= 800_000_000 && on_cpu("main") >= 98_000_000, "{:#?}", path.segments);
    assert!(titles(&found).contains(&"asleep"), "{:#?}", found.findings);
}

#[test]
fn a_step_is_shown_to_the_end_of_what_it_launched() {
    let store = testkit::store(
        "step 1: 0..100
         main launch: cudaLaunchKernel 10..20 c 1
         gpu7 kernel: long 30..150 c 1
         step 2: 100..200
         main launch: cudaLaunchKernel 110..120 c 2
         gpu7 kernel: long 160..240 c 2",
    );
    let whole = analyse(&store, store.range());
    let length: i64 = whole.paths.iter().map(|p| p.range.end - p.range.start).sum();
    assert_eq!(length, 240, "not 150 and 140");
    let first = analyse_step(&store, &store.steps()[0]);
    assert_eq!((first.range.clone(), first.paths.len(), first.paths[0].range.clone()), (0..150, 1, 0..150));
}

/// Random slices, with steps of these begins and lengths.
fn random_steps(slices: &[Random], lengths: &[(i64, i64)]) -> String {
    let mut text = String::new();
    for (i, (start, length)) in lengths.iter().enumerate() {
        let track = ["main", "2.main", "w1"][i % 3];
        text += &format!("step {}: on {track} {start}..{}\n", i / 3 + 1, start + length);
    }
    text + &random(slices)
}

proptest! {
    /// Whatever the trace, its steps and the part of it that is looked at: no share is above one, and no sum above what
    /// is shown.
    #[test]
    fn shares_are_of_what_is_shown(
        slices in slices_of_random(),
        lengths in prop::collection::vec((0i64..300, 1i64..200), 0..7),
        part in prop::option::of((0i64..200, 1i64..300)),
    ) {
        let store = testkit::store(&random_steps(&slices, &lengths));
        let shown = part.map_or(store.range(), |(start, length)| start..start + length);
        let mut all = vec![analyse(&store, shown)];
        all.extend(store.steps().first().map(|step| analyse_step(&store, step)));
        for found in all {
            let extent = found.range.end - found.range.start;
            let path: i64 = found.paths.iter().map(|p| p.range.end - p.range.start).sum();
            prop_assert!(path <= extent, "a path of {path} in {extent}");
            prop_assert_eq!(found.breakdown.total_ns(), extent);
            for finding in &found.findings {
                prop_assert!((0.0..=1.0).contains(&finding.share), "{:?}", finding);
                prop_assert!((0..=path).contains(&finding.saves_ns), "{:?} of {}", finding, path);
            }
            let critical: i64 = found.ops.iter().map(|op| op.critical_ns).sum();
            prop_assert!(critical <= path);
            prop_assert!(found.ops.iter().all(|op| (0.0..=1.0).contains(&op.critical_share)));
            for device in &found.devices {
                prop_assert!(device.times.total_ns() <= extent);
                prop_assert!(device.streams.iter().all(|(_, busy, idle)| *busy >= 0 && *idle >= 0 && busy + idle <= extent));
            }
        }
    }
}
