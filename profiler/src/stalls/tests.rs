//! Planted stalls, recovered exactly.

use super::*;
use crate::testkit;
use proptest::prelude::*;

/// The stalls of a trace by track and time: `track start..end cause culprit`.
fn check(trace: &str, want: &str) {
    let store = testkit::store(trace);
    let mut found = stalls(&store, store.range());
    found.sort_by_key(|s| (s.track, s.start));
    let lines: Vec<String> = found
        .iter()
        .map(|s| {
            let track = &store.track(s.track).unwrap().name;
            let culprit = s.culprit.map(|c| format!(" {}", store.slice_name(&store.slice(c).unwrap())));
            format!("{track} {}..{} {:?}{}", s.start, s.end, s.cause, culprit.unwrap_or_default())
        })
        .collect();
    let want: Vec<&str> = want.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(lines, want, "in\n{trace}");
}

#[test]
fn an_input_on_another_worker_and_the_wake_up_after_it() {
    check(
        "step 1: 0..100
         w0 A 0..10
         w1 l/B 10..40 by A
         w1 idle 0..8
         w0 idle 12..45
         w0 C 48..100 by l/B queue 8",
        "w0 10..40 InputLate l/B
         w0 40..45 WakeUp
         w0 45..48 Dispatch
         w1 0..10 InputLate A
         w1 40..100 NothingReady C",
    );
}

#[test]
fn a_chain_of_inputs_is_followed_to_the_gaps_begin() {
    check(
        "step 1: 0..100
         w0 A 0..10
         w0 X 10..20 by A
         w1 B 12..30 by A
         w1 C 34..60 by B
         w0 D 61..90 by C
         w1 E 60..90 by C",
        "w0 20..30 InputLate B
         w0 30..34 Dispatch C
         w0 34..60 InputLate C
         w0 60..61 Dispatch
         w0 90..100 StepEnd
         w1 0..10 InputLate A
         w1 10..12 Dispatch
         w1 30..34 Dispatch
         w1 90..100 StepEnd",
    );
}

#[test]
fn begin_and_end_of_a_step() {
    check(
        "step 1: 0..100
         w0 A 20..50 queue 5
         w1 B 60..80 by A",
        "w0 0..15 StepBegin
         w0 15..20 Dispatch
         w0 50..80 NothingReady B
         w0 80..100 StepEnd
         w1 0..15 StepBegin
         w1 15..20 Dispatch A
         w1 20..50 InputLate A
         w1 50..60 Dispatch
         w1 80..100 StepEnd",
    );
}

#[test]
fn a_shard_waits_for_its_op_to_start() {
    check(
        "step 1: 0..50
         w0 A 0..20
         w0 B 20..50 by A
         w1 shard B 25..50",
        "w1 0..20 InputLate A
         w1 20..25 Dispatch",
    );
}

#[test]
fn what_the_trace_does_not_tell_is_unexplained() {
    // The slice of A was dropped.
    check(
        "step 1: 0..50
         w0 B 20..50 by A",
        "w0 0..20 Unexplained",
    );
    // Two ops that claim to have made each other ready.
    check(
        "step 1: 0..50
         w0 A 20..20 by B
         w1 B 20..20 by A
         w0 C 30..50 by A",
        "w0 0..20 Unexplained
         w0 20..30 Dispatch
         w1 0..20 Unexplained
         w1 20..50 NothingReady C",
    );
}

#[test]
fn steps_are_kept_apart_and_totals_add_up() {
    let store = testkit::store(
        "step 1: 0..50
         w0 A 0..50
         step 2: 100..150
         w0 A 110..150 queue 10
         w0 B 150..150 by A",
    );
    let found = stalls(&store, 0..60);
    assert!(found.is_empty(), "{found:?}");
    let found = stalls(&store, 60..200);
    assert_eq!(by_cause(&found), [CauseTotal { cause: Cause::Dispatch, count: 1, total_ns: 10 }]);
    assert_eq!((found[0].step_id, found[0].text.as_str()), (2, "w0 took 10 ns to start `A`, which was ready"));
}

#[test]
fn a_thread_that_ran_another_step_is_no_worker_of_this_one() {
    check(
        "step 1: on init 0..10
         init A 0..10
         step 2: 20..40
         w0 B 20..30
         w1 C 20..40",
        "w0 0..10 NothingReady A
         w0 30..40 NothingReady C
         w1 0..10 NothingReady A",
    );
}

#[test]
fn texts_name_op_node_and_worker() {
    let store = testkit::store(
        "step 1: 0..40
         worker-1 layer2/MatMul 0..30
         worker-2 Relu 30..40 by layer2/MatMul
         worker-1 Loss 35..40 by layer2/MatMul queue 5",
    );
    let found = stalls(&store, store.range());
    assert_eq!(found[0].text, "worker-2 waited for MatMul `layer2/MatMul` on worker-1");
    let waits = queue_waits(&store, store.range(), 1);
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].text, "`Loss` was ready 5 ns before it ran: worker-1 ran nothing meanwhile");
}

proptest! {
    /// Whatever the trace, the parts of each gap follow each other from its begin to its end, and the gaps with the
    /// busy time make the step.
    #[test]
    fn parts_add_up_to_the_gaps(
        ops in prop::collection::vec((0usize..3, 0i64..30, 0i64..20, 0usize..20, 0u32..10, any::<bool>()), 1..40),
    ) {
        let mut at = [0i64; 3];
        let mut text = String::from("step 1: 0..900\n");
        for (i, (w, gap, dur, by, queue, idle)) in ops.iter().enumerate() {
            let start = at[*w] + gap;
            if *idle && *gap > 2 {
                text += &format!("w{w} idle {}..{}\n", at[*w] + 1, start - 1);
            }
            at[*w] = start + dur;
            let by = if *by < i { format!("by n{by}x") } else { String::new() };
            text += &format!("w{w} n{i}x {start}..{} {by} queue {queue}\n", start + dur);
        }
        let store = testkit::store(&text);
        let mut found = stalls(&store, store.range());
        found.sort_by_key(|s| (s.track, s.gap.start, s.start));
        for track in store.tracks().iter().filter(|t| t.name != "main") {
            let mut until: Option<(Range<i64>, i64)> = None;
            let mut idle = 0;
            for stall in found.iter().filter(|s| s.track == track.id) {
                prop_assert!(stall.start < stall.end);
                match until.clone() {
                    Some((gap, end)) if gap == stall.gap => prop_assert_eq!(end, stall.start),
                    previous => {
                        prop_assert!(previous.is_none_or(|(gap, end)| gap.end == end));
                        prop_assert_eq!(stall.start, stall.gap.start);
                    }
                }
                until = Some((stall.gap.clone(), stall.end));
                idle += stall.dur();
            }
            let busy: i64 = crate::stats::track_use(&store, 0..900).iter().find(|u| u.track == track.id).unwrap().busy_ns;
            prop_assert_eq!(idle + busy, 900);
        }
    }
}
