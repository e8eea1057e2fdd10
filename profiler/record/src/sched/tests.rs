//! Slices that a list of scheduler events makes.

use crate::collect::Tracks;
use crate::{Collector, CollectorOptions};
use events::clock::Source;
use parking_lot::Mutex;
use std::sync::Arc;
use trace_analysis::threads::thread_times;
use trace_model::ThreadState;
use trace_model::scheduling::derive::{SchedCounts, Scheduling};
use trace_model::scheduling::{Comm, SchedEvent, SchedKind};
use trace_store::{Store, testkit};

const MS: u64 = 1_000_000;

/// Track, name, start and end (ms), and who took the CPU, woke the thread or ran.
type SliceRow = (String, String, i64, i64, u32);

/// The trace that a list of events (ms, CPU, what) makes, and where 0 ms lies in it.
fn trace(events: &[(u64, u32, SchedKind)]) -> (Store, i64, SchedCounts) {
    let dir = tempfile::tempdir().unwrap();
    let tracks = Tracks::create(dir.path(), 1, "kernel", Source::MonotonicRaw).unwrap();
    let base = tracks.now();
    let tracks = Arc::new(Mutex::new(tracks));
    let collector = Collector::start_with(dir.path(), CollectorOptions::default(), Some(Arc::clone(&tracks))).unwrap();
    let mut scheduling = Scheduling::<Tracks>::default();
    scheduling.follow_thread(7, 7, Comm::new(b"seven"));
    for (time, cpu, what) in events {
        scheduling.handle_event(&SchedEvent { time: base + time * MS, cpu: *cpu, kind: *what }, &mut tracks.lock());
    }
    tracks.lock().write_anchor_if_due(true);
    assert_eq!(collector.stop().dropped, 0);
    let store = testkit::read(dir.path());
    let zero = base as i64 - store.origin_ns();
    (store, zero, scheduling.counts)
}

/// The slices that a list of events makes, in order.
fn slices(events: &[(u64, u32, SchedKind)]) -> (Vec<SliceRow>, SchedCounts) {
    let (store, zero, seen) = trace(events);
    let mut found = Vec::new();
    for slice in testkit::slices(&store) {
        let at = |time: i64| (time - zero + 1000).div_euclid(MS as i64);
        let track = store.tracks()[slice.id.track as usize].name.clone();
        found.push((track, store.slice_name(&slice).to_owned(), at(slice.start), at(slice.end), slice.correlation));
    }
    found.sort();
    (found, seen)
}

fn switch(prev: u32, left: ThreadState, next: u32) -> SchedKind {
    let name = |id: u32| Comm::new(if id == 7 { b"seven" } else { b"other" });
    SchedKind::Switch { prev, prev_name: name(prev), left, next, next_name: name(next) }
}

fn row(track: &str, name: &str, start: i64, end: i64, by: u32) -> SliceRow {
    (track.to_owned(), name.to_owned(), start, end, by)
}

const SEVEN: &str = "seven 7, scheduling";

#[test]
fn a_sleep_ends_with_its_wake_up_and_the_wait_for_a_cpu_begins() {
    let (found, seen) = slices(&[
        (0, 1, switch(0, ThreadState::Preempted, 7)),
        (10, 1, switch(7, ThreadState::Sleeping, 0)),
        (40, 0, SchedKind::Waking { by: 9, thread: 7, cpu: 1 }),
        (45, 1, switch(0, ThreadState::Preempted, 7)),
        (60, 1, switch(7, ThreadState::Preempted, 8)),
        (70, 1, switch(8, ThreadState::Sleeping, 7)),
    ]);
    let wanted = [
        row("CPU 1", "other", 60, 70, 8),
        row("CPU 1", "seven", 0, 10, 7),
        row("CPU 1", "seven", 45, 60, 7),
        row(SEVEN, "preempted", 60, 70, 8),
        row(SEVEN, "runnable", 40, 45, 9),
        row(SEVEN, "sleeping", 10, 40, 9),
    ];
    assert_eq!(found, wanted);
    assert_eq!((seen.wakeups, seen.unreported), (1, 0));
}

/// As a kernel says it that leaves out every switch of its idle thread.
#[test]
fn where_the_idle_thread_is_silent_a_wake_up_stands_for_its_switch() {
    let (found, seen) = slices(&[
        (0, 1, switch(8, ThreadState::Preempted, 7)),
        (10, 1, switch(7, ThreadState::Sleeping, 0)),
        (40, 0, SchedKind::Waking { by: 9, thread: 7, cpu: 1 }),
        (60, 1, switch(7, ThreadState::Sleeping, 0)),
        (70, 0, SchedKind::Waking { by: 9, thread: 8, cpu: 1 }),
        (80, 1, switch(8, ThreadState::Sleeping, 0)),
        (90, 1, switch(7, ThreadState::Sleeping, 0)),
    ]);
    let wanted = [
        row("CPU 1", "other", 70, 80, 8),
        row("CPU 1", "seven", 0, 10, 7),
        row("CPU 1", "seven", 40, 60, 7),
        row(SEVEN, "sleeping", 10, 40, 9),
    ];
    assert_eq!(found, wanted);
    assert_eq!(seen.unreported, 2, "the last one has not even a wake-up: no slice");
}

/// Whoever wakes another, starts one or ends has got a CPU, reported or not.
#[test]
fn what_a_thread_does_shows_that_it_runs() {
    let name = Comm::new(b"nine");
    let born = SchedKind::Fork { parent: 7, thread: 9, in_process: true, name };
    for act in [SchedKind::Exit { thread: 7 }, SchedKind::Waking { by: 7, thread: 8, cpu: 0 }, born] {
        let (found, seen) = slices(&[
            (0, 1, switch(8, ThreadState::Preempted, 7)),
            (10, 1, switch(7, ThreadState::Sleeping, 0)),
            (40, 0, SchedKind::Waking { by: 9, thread: 7, cpu: 1 }),
            (50, 1, act),
            (60, 1, switch(7, ThreadState::Dead, 0)),
        ]);
        let wanted =
            [row("CPU 1", "seven", 0, 10, 7), row("CPU 1", "seven", 40, 60, 7), row(SEVEN, "sleeping", 10, 40, 9)];
        assert_eq!(found, wanted, "{act:?}");
        assert_eq!(seen.unreported, 1);
    }
}

#[test]
fn a_threads_time_is_split_as_it_was_scheduled() {
    let (store, zero, _) = trace(&[
        (0, 1, switch(0, ThreadState::Preempted, 7)),
        (10, 1, switch(7, ThreadState::Sleeping, 0)),
        (40, 0, SchedKind::Waking { by: 9, thread: 7, cpu: 1 }),
        (45, 1, switch(0, ThreadState::Preempted, 7)),
        (60, 1, switch(7, ThreadState::Preempted, 8)),
        (70, 1, switch(8, ThreadState::Sleeping, 7)),
        (75, 1, switch(7, ThreadState::Uninterruptible, 0)),
        (95, 1, SchedKind::Waking { by: 0, thread: 7, cpu: 1 }),
        (95, 1, switch(0, ThreadState::Preempted, 7)),
        (96, 1, switch(7, ThreadState::Dead, 0)),
    ]);
    let ms = |ns: i64| (ns + 500_000).div_euclid(1_000_000);
    let of = |from: i64, to: i64| {
        let range = zero + from * 1_000_000..zero + to * 1_000_000;
        let all = thread_times(&store, &range);
        assert_eq!(all.len(), 1, "thread 8 is another program's");
        let t = all[0];
        let times = [t.running_ns, t.ready_ns, t.sleeping_ns, t.uninterruptible_ns, t.other_ns].map(ms);
        (times, t.woken_by.map(|(by, ns)| (by, ms(ns))))
    };
    assert_eq!(of(0, 100), ([31, 15, 30, 20, 0], Some((9, 30))));
    assert_eq!(of(20, 50), ([5, 5, 20, 0, 0], Some((9, 20))), "what lies in the range");
}
