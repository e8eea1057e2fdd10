//! Planted stalls, recovered exactly.

use super::*;
use proptest::prelude::*;
use trace_store::testkit;

/// The stalls of a trace by track and time: `track start..end cause culprit`.
fn check(trace: &str, want: &str) {
    let store = testkit::store(trace);
    let mut found = stalls(&store, store.range());
    found.sort_by_key(|s| (s.track, s.start));
    let lines: Vec<String> = found
        .iter()
        .map(|s| {
            let track = &store.track(s.track).unwrap().name;
            // The cause stands before the sentence wherever stalls are listed: it is not repeated.
            assert!(!s.text(&store).starts_with(s.cause.name()), "{}", s.text(&store));
            let culprit = s.culprit.map(|c| format!(" {}", store.slice_name(&store.slice(c).unwrap())));
            format!("{track} {}..{} {:?}{}", s.start, s.end, s.cause, culprit.unwrap_or_default())
        })
        .collect();
    assert_eq!(lines, crate::tests::trimmed(want), "in\n{trace}");
}

#[test]
fn a_call_that_lasts_longer_than_the_work_before_is_the_launchs() {
    // B's launch began while A ran and returned after A's end; so did C's, but C began long after; D was given in time.
    check(
        "main launch: cudaLaunchKernel 0..1000 c 1
         main launch: cudaLaunchKernel 2000..16000 c 2
         main launch: cudaLaunchKernel 17000..23000 c 3
         main launch: cudaLaunchKernel 23000..24000 c 4
         gpu7 kernel: A 1500..4000 c 1
         gpu7 kernel: B 18000..20000 c 2
         gpu7 kernel: C 53000..60000 c 3
         gpu7 kernel: D 72000..73000 c 4",
        "main 1000..2000 Unexplained
         main 16000..17000 Unexplained
         gpu7 4000..16000 Launch cudaLaunchKernel
         gpu7 16000..18000 Launch cudaLaunchKernel
         gpu7 20000..23000 Launch cudaLaunchKernel
         gpu7 23000..53000 Unexplained
         gpu7 60000..72000 Unexplained",
    );
}

#[test]
fn between_its_steps_a_worker_waits_for_its_master_and_so_for_the_slowest_peer() {
    // The master (process 3) begins its second step when the last worker's answer is there. X is another step's, next
    // to both.
    let store = testkit::store(
        "step 9: on w1 0..130
         w1 X 0..130
         step 1: on w0 10..40
         flow 1 3.main 5 -> w0 8
         w0 A 12..38
         flow 2 w0 42 -> 3.main 45
         step 1: on 2.w0 11..80
         flow 3 3.main 6 -> 2.w0 9
         2.w0 B 12..78
         flow 4 2.w0 82 -> 3.main 86
         step 2: on w0 95..120
         flow 5 3.main 90 -> w0 93
         w0 C 97..118",
    );
    let of = |name: &str| store.tracks().iter().find(|t| t.name == name).expect("a track").id;
    let found = stalls(&store, store.range());
    let mut gap: Vec<&Stall> = found.iter().filter(|s| s.track == of("w0") && s.gap == (38..97)).collect();
    gap.sort_by_key(|s| s.start);
    let culprit = |s: &Stall| s.culprit.map(|id| store.slice_name(&store.slice(id).unwrap()).to_owned());
    let parts: Vec<_> = gap.iter().map(|s| (s.start..s.end, s.cause, culprit(s))).collect();
    let want = [
        (38..78, Cause::PeerLate, Some("B".to_owned())),
        (78..80, Cause::PeerLate, None),
        (80..82, Cause::PeerLate, None),
        (82..86, Cause::Network, None),
        (86..90, Cause::PeerLate, None),
        (90..93, Cause::Network, None),
        (93..95, Cause::Dispatch, None),
        (95..97, Cause::StepBegin, None),
    ];
    assert_eq!(parts, want);
    assert!(found.iter().all(|s| s.text(&store).len() > 10), "each has words");
}

#[test]
fn between_two_steps_of_a_thread_was_the_end_of_the_first_and_its_callers_code() {
    check(
        "step 9: on w1 0..100
         w1 X 0..100
         step 1: on w0 5..40
         w0 A 6..30
         step 2: on w0 50..100
         w0 B 52..100",
        "w0 0..5 Unexplained
         w0 5..6 StepBegin
         w0 30..40 StepEnd
         w0 40..50 HostLate
         w0 50..52 StepBegin",
    );
}

/// Waits are coarser than stamps: the first op of a step may seem ready before it.
#[test]
fn an_op_that_seems_ready_before_its_step_is_of_that_step() {
    check(
        "step 9: on w1 0..100
         w1 X 0..100
         step 1: on w0 5..40
         w0 A 6..30
         step 2: on w0 50..100
         w0 B 52..100 queue 3",
        "w0 0..5 Unexplained
         w0 5..6 StepBegin
         w0 30..40 StepEnd
         w0 40..49 HostLate
         w0 49..52 Dispatch",
    );
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
         w0 40..45 WakeUp l/B
         w0 45..48 Dispatch l/B
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
         w0 60..61 Dispatch C
         w0 90..100 StepEnd
         w1 0..10 InputLate A
         w1 10..12 Dispatch A
         w1 30..34 Dispatch B
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
         w1 50..60 Dispatch A
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
fn a_wait_at_a_queue_names_the_queue() {
    let trace = "step 1: 0..100
         w0 Dequeue 0..2
         w0 parked Dequeue 1..60 empty
         w0 idle 3..63
         w0 A 65..90 by Dequeue";
    check(
        trace,
        "w0 2..60 QueueEmpty Dequeue
         w0 60..63 WakeUp
         w0 63..65 Dispatch
         w0 90..100 StepEnd",
    );
    let store = testkit::store(trace);
    let found = stalls(&store, store.range());
    assert_eq!(found[0].text(&store), "w0 had nothing to do while `Dequeue` waited 58 ns: queue q empty");
    // Nothing comes after it.
    check(
        "step 1: 0..100
         w0 A 0..10
         w0 Enqueue 10..12 by A
         w0 parked Enqueue 11..95 full",
        "w0 12..95 QueueFull Enqueue
         w0 95..100 StepEnd",
    );
}

#[test]
fn what_the_trace_lacks_is_unexplained() {
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
         w0 20..30 Dispatch A
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
    assert_eq!(
        (found[0].step_id, found[0].text(&store).as_str()),
        (Some(2), "w0 took 10 ns to start `A`, which was ready")
    );
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
    assert_eq!(found[0].text(&store), "worker-2 waited for MatMul `layer2/MatMul` on worker-1");
}

#[test]
fn a_stream_waits_for_its_host() {
    // The host synchronised, then ran an op and other code, then launched.
    check(
        "main launch: cudaLaunchKernel 0..4 c 1
         gpu7 kernel: first 6..20 c 1
         main synced 5..24 for 7 c 2
         main op: aten::mm 30..40
         >main launch: cudaLaunchKernel 34..38 c 3
         gpu7 kernel: second 37..50 c 3",
        "main 4..6 Launch cudaLaunchKernel
         main 6..20 Synchronisation first
         main 20..24 Synchronisation cudaStreamSynchronize
         main 24..30 Unexplained
         gpu7 20..24 Synchronisation cudaStreamSynchronize
         gpu7 24..30 HostLate
         gpu7 30..34 HostLate aten::mm
         gpu7 34..37 Launch cudaLaunchKernel",
    );
}

#[test]
fn input_memory_and_copies_hold_a_stream_up() {
    check(
        "main launch: cudaLaunchKernel 0..2 c 1
         gpu7 kernel: first 2..10 c 1
         main input: next 10..30
         >main python: decode 12..28
         main launch: cudaMalloc 30..40 c 2
         main launch: cudaMemcpyAsync 40..60 c 3
         gpu8 copy: HtoD 42..58 c 3
         main launch: cudaLaunchKernel 60..61 c 4
         gpu7 kernel: second 63..70 c 4",
        "main 2..10 Unexplained
         gpu7 10..30 InputLate next
         gpu7 30..40 Memory cudaMalloc
         gpu7 40..42 Launch cudaMemcpyAsync
         gpu7 42..58 Dma HtoD
         gpu7 58..60 Launch cudaMemcpyAsync
         gpu7 60..63 Launch cudaLaunchKernel",
    );
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    // The record says which recording of the event: kernel `b`, not `c`, which was launched after it.
    check(
        "main launch: cudaLaunchKernel 0..2 c 1
         gpu7 kernel: a 3..10 c 1
         main launch: cudaLaunchKernel 2..4 c 2
         gpu8 kernel: b 5..40 c 2
         main launch: cudaEventRecord 4..5 c 3
         main launch: cudaLaunchKernel 5..6 c 4
         gpu8 kernel: c 40..90 c 4
         gpu7 wait 6..7 for 8 record 3
         main launch: cudaLaunchKernel 8..9 c 5
         gpu7 kernel: d 43..60 c 5",
        "main 6..8 Unexplained
         gpu7 10..40 Synchronisation b
         gpu7 40..43 Synchronisation b",
    );
}

#[test]
fn a_collective_waits_for_its_last_peer() {
    check(
        "main launch: cudaLaunchKernel 0..2 c 1
         gpu7 collective: AllReduce 4..50 c 1
         2.main op: data 0..28
         2.main launch: cudaLaunchKernel 28..29 c 1
         2.gpu7 collective: AllReduce 30..50 c 1
         main launch: cudaLaunchKernel 2..3 c 2
         gpu8 kernel: k 3..6 c 2
         gpu8 wait 3..3 for 7 record 3
         main launch: cudaEventRecord 3..4 c 3
         gpu8 wait 4..4 for 7 record 3
         main launch: cudaLaunchKernel 5..6 c 4
         gpu8 kernel: l 52..60 c 4",
        "main 4..5 Unexplained
         gpu7 4..30 PeerLate AllReduce
         gpu8 6..28 PeerLate data
         gpu8 28..30 PeerLate cudaLaunchKernel
         gpu8 30..50 Network AllReduce
         gpu8 50..52 Synchronisation AllReduce",
    );
}

#[test]
fn a_value_from_another_device() {
    check(
        "step 1: 0..100
         w1 grad 0..40
         w1 a/_Send 42..46 by grad
         transfer 3 a/_Send w1 40 43 46 -> b/_Recv w0 70 74
         w0 first 0..10
         w0 b/_Recv 10..11
         w0 apply 80..100 by b/_Recv",
        "w1 40..42 Dispatch grad
         w1 46..100 NothingReady apply
         w0 11..40 InputLate grad
         w0 40..43 Dispatch a/_Send
         w0 43..70 Dma a/_Send
         w0 70..74 Dispatch a/_Send
         w0 74..80 Dispatch a/_Send",
    );
}

#[test]
fn a_value_from_another_process() {
    check(
        "step 1: 0..100
         step 1: on 2.w0 0..100
         2.w0 grad 0..40
         2.w0 a/_Send 42..46 by grad
         transfer 3 a/_Send 2.w0 40 43 46 -> b/_Recv w0 70 74
         w0 first 0..10
         w0 b/_Recv 10..11
         w0 apply 80..100 by b/_Recv",
        "w0 40..42 Dispatch grad
         w0 46..100 StepEnd
         w0 11..40 PeerLate grad
         w0 40..43 PeerLate a/_Send
         w0 43..70 Network a/_Send
         w0 70..74 Dispatch a/_Send
         w0 74..80 Dispatch a/_Send",
    );
}

#[test]
fn the_scheduler_and_wakers() {
    // w1 runs `B` but is preempted in it; the host thread sleeps until w1 wakes it.
    check(
        "2.main op: x 0..10
         2.main off-cpu: futex 10..40 c 201
         2.main op: y 44..50
         2.t2 op: work 5..38
         2.t2 op: more 39..60
         2.t2 off-cpu: runnable 20..30",
        "main 10..20 InputLate work
         main 20..30 ScheduledOut runnable
         main 30..38 InputLate work
         main 38..39 Unexplained
         main 39..40 InputLate more
         main 40..44 Unexplained
         t2 20..30 ScheduledOut runnable
         t2 38..39 Unexplained",
    );
}

#[test]
fn a_flow_between_threads() {
    check(
        "main op: parse 0..30
         flow 1 main 25 -> other 40
         other op: a 0..5
         other op: b 40..50
         2.main op: z 0..60
         flow 2 2.main 20 -> third 33
         third op: c 0..1
         third op: d 33..34",
        "other 5..25 InputLate parse
         other 25..40 Dispatch parse
         third 1..20 PeerLate z
         third 20..33 Network z",
    );
}

#[test]
fn a_long_chain_is_explained_up_to_a_point() {
    let mut text = String::from("step 1: 0..2000\nw1 last 1000..2000 by n99x\nw1 first 0..10\n");
    for i in 0..100 {
        let by = if i > 0 { format!("by n{}x", i - 1) } else { String::new() };
        text += &format!("w0 n{i}x {}..{} {by}\n", i * 10, i * 10 + 10);
    }
    let store = testkit::store(&text);
    let found: Vec<Stall> = stalls(&store, store.range()).into_iter().filter(|s| s.end <= 1000).collect();
    assert_eq!((found.len(), found[0].start, found[0].cause), (65, 10, Cause::InputLate));
    assert_eq!(found.iter().map(Stall::dur).sum::<i64>(), 990);
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
