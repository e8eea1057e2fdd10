//! Flight recorders: the newest records stay, whole, while their producer goes on; and steps that are recorded by number.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{numbered, one_at_a_time, start, the_ring};
use events::control::Control;
use events::ring::{RingReader, peek};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn the_newest_stay() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    Control::open_or_create(dir.path(), true).unwrap().enable_flight_recorder(0, 0);
    let _session = start(dir.path(), 1024);
    (0..5000).for_each(numbered::emit);
    let path = the_ring(dir.path());
    let look = peek(&path).unwrap();
    let mut reader = RingReader::open(&path).unwrap();
    let snapshot = reader.snapshot();
    assert!(look.overwrites && reader.dropped() == 0);
    for (first, records) in [(look.first, &look.records), (snapshot.first, &snapshot.records)] {
        let numbers: Vec<u64> = records.iter().map(numbered::check).collect();
        assert_eq!(numbers, (first..5000).collect::<Vec<u64>>());
        assert!((900..=1024).contains(&numbers.len()), "{}", numbers.len());
    }
    assert_eq!(snapshot.overwritten, snapshot.first);
    // What was not consumed comes again; the next has what came since.
    assert_eq!(reader.snapshot().first, snapshot.first);
    reader.consume_to(5000);
    (5000..5100).for_each(numbered::emit);
    let next = reader.snapshot();
    assert_eq!((next.first, next.records.len(), next.overwritten), (5000, 100, 0));
}

#[test]
fn a_look_never_shows_a_torn_record() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    Control::open_or_create(dir.path(), true).unwrap().enable_flight_recorder(0, 0);
    let _session = start(dir.path(), 256);
    static ENOUGH: AtomicBool = AtomicBool::new(false);
    // So many at least, and until the reader has seen some, whoever gets the processor first. (The upper bound takes minutes.)
    let producer = std::thread::spawn(|| {
        let more = |n: &u64| *n < 2_000_000 || (!ENOUGH.load(Ordering::Relaxed) && *n < 2_000_000_000);
        (0..).take_while(more).for_each(numbered::emit);
    });
    let path = the_ring(dir.path());
    let (mut reader, mut seen, mut last) = (RingReader::open(&path).unwrap(), 0, None);
    while !producer.is_finished() {
        let snapshot = reader.snapshot();
        for (n, record) in (snapshot.first..).zip(&snapshot.records) {
            assert_eq!(numbered::check(record), n);
            assert!(last < Some(n), "{n} twice");
            last = Some(n);
        }
        seen += snapshot.records.len();
        ENOUGH.fetch_or(seen > 1000, Ordering::Relaxed);
        reader.consume_to(snapshot.first + snapshot.records.len() as u64);
        let look = peek(&path).unwrap();
        look.records.iter().for_each(|r| assert!(numbered::check(r) < reader.published()));
    }
    producer.join().unwrap();
    assert!(seen > 1000, "{seen}");
}

#[test]
fn the_next_steps_are_recorded_and_no_more() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let session = start(dir.path(), 1024);
    let step = |n: u64| {
        let mark = events::begin_step();
        events::instant(events::site!("test", "step"), n);
        events::end_step(mark);
    };
    let control = Control::open(dir.path()).unwrap();
    step(0);
    control.record_steps(3);
    // A step that runs already when they are asked for is none of them; the keeper sees the switch within 10 ms.
    while events::is_on() {
        std::thread::yield_now();
    }
    (1..10).for_each(step);
    assert!(!events::is_on() && control.n_steps_left() == 0);
    session.switch(true);
    step(10);
    let mut records = Vec::new();
    RingReader::open(&the_ring(dir.path())).unwrap().drain(&mut records);
    assert_eq!(records.iter().map(|r| r.arg).collect::<Vec<_>>(), [0, 1, 2, 3, 10]);
}

#[test]
fn a_slow_step_asks_for_a_dump() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let control = Control::open_or_create(dir.path(), true).unwrap();
    // An hour, so that this one is quick even where it loses the processor.
    control.enable_flight_recorder(0, 3_600_000_000_000);
    let _session = start(dir.path(), 1024);
    events::end_step(events::begin_step());
    assert_eq!(control.dumps(), (0, 0));
    control.enable_flight_recorder(0, 20_000_000);
    let mark = events::begin_step();
    std::thread::sleep(std::time::Duration::from_millis(25));
    events::end_step(mark);
    assert_eq!(control.dumps(), (1, 0));
    assert!(events::dump());
    let hook = std::panic::catch_unwind(|| panic!("on purpose"));
    assert!(hook.is_err());
    assert_eq!(control.dumps(), (3, 0));
}
