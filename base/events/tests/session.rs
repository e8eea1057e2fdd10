//! Starting, stopping, switching, and folders that go away under the program.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{numbered, one_at_a_time, rings, start, the_ring};
use events::control::{ClaimError, Collector, Control};
use events::meta::{Entry, MetaReader};
use events::ring::RingReader;
use events::{Options, StartError, TicksToNs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn meta(dir: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    MetaReader::open(&events::meta::path(dir, std::process::id())).unwrap().poll(&mut entries).unwrap();
    entries
}

fn wait_for(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn names_reach_every_folder_whenever_they_were_made() {
    let _one = one_at_a_time();
    let before = events::site("session", "before");
    for _ in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let session = start(dir.path(), 16);
        let (during, node) = (events::site("session", "during"), events::node("s/n", "Mul", "cpu:1"));
        assert!(matches!(events::start(dir.path(), Options::default()), Err(StartError::AlreadyRecording(_))));
        numbered::emit(0);
        drop(session);
        assert!(!events::is_on());
        let entries = meta(dir.path());
        let site =
            |id: u32, category: &str, name: &str| Entry::Site { id, category: category.into(), name: name.into() };
        assert!(entries.contains(&site(before.get(), "session", "before")));
        assert!(entries.contains(&site(during.get(), "session", "during")));
        let node = Entry::Node { id: node.get(), name: "s/n".into(), op: "Mul".into(), device: "cpu:1".into() };
        assert!(entries.contains(&node));
        let anchors: Vec<_> =
            entries.iter().filter_map(|e| if let Entry::Anchor(a) = e { Some(*a) } else { None }).collect();
        assert!(anchors.len() >= 3);
        assert_eq!(TicksToNs::from_anchors(&anchors).anchors().len(), anchors.len(), "{anchors:?}");
        let Entry::Process { pid, exe, host, .. } = &entries[0] else { panic!("{:?}", entries[0]) };
        assert_eq!(*pid, std::process::id());
        assert!(exe.contains("session") && !host.is_empty());
    }
}

/// Before the first 10 ms are over, and after a kill in them, ticks convert already.
#[test]
fn the_clock_has_a_rate_from_the_first_event_on() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 16);
    let anchors: Vec<_> =
        meta(dir.path()).into_iter().filter_map(|e| if let Entry::Anchor(a) = e { Some(a) } else { None }).collect();
    assert!(anchors.len() >= 2);
    let line = TicksToNs::from_anchors(&anchors);
    std::thread::sleep(Duration::from_millis(50));
    // The tightest of nine readings of both clocks.
    let now = events::clock::anchor();
    // Loose, for a busy machine; a counter of 2 GHz taken for nanoseconds would be off by as much as the sleep.
    assert!((line.ns(now.ticks) - now.mono_ns).abs() < 20_000_000, "{anchors:?}");
}

#[test]
fn the_control_page_switches() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let control = Control::open_or_create(dir.path(), false).unwrap();
    let session = start(dir.path(), 16);
    assert!(!events::is_on(), "an existing page's switch is obeyed");
    numbered::emit(0);
    control.switch(true);
    wait_for(events::is_on);
    numbered::emit(1);
    session.switch(false);
    numbered::emit(2);
    session.switch(true);
    numbered::emit(3);
    let mut reader = RingReader::open(&the_ring(dir.path())).unwrap();
    assert_eq!(common::Tail::of(&mut reader).numbers(), [1, 3], "one ring, on both sides of the pause");
}

#[test]
fn a_slice_survives_the_switch_but_not_the_session() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let site = events::site("session", "slice");
    let session = start(dir.path(), 16);
    let kept = events::slice(site);
    session.switch(false);
    let never = events::slice(site);
    drop((kept, never));
    session.switch(true);
    let other = events::slice(site);
    drop(session);
    let second = tempfile::tempdir().unwrap();
    let _session = start(second.path(), 16);
    numbered::emit(7);
    drop(other); // began in the first session, whose ring this thread has left
    let mut reader = RingReader::open(&the_ring(dir.path())).unwrap();
    assert_eq!(common::Tail::of(&mut reader).0.len(), 1);
    let mut reader = RingReader::open(&the_ring(second.path())).unwrap();
    assert_eq!(common::Tail::of(&mut reader).numbers(), [7]);
}

#[test]
fn further_threads_are_counted() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let session = events::start(dir.path(), Options { ring_records: 16, max_rings: 2 }).unwrap();
    let emit = |n| std::thread::spawn(move || (0..n).for_each(numbered::emit)).join().unwrap();
    (0..4).for_each(|_| emit(5));
    assert_eq!(rings(dir.path()).len(), 2);
    // The two are added one after the other.
    wait_for(|| session.control().lost().events == 10 && session.control().lost().threads > 1);
    assert_eq!(session.control().lost().threads, 2);
    // Retired rings make room.
    for path in rings(dir.path()) {
        RingReader::open(&path).unwrap().retire().unwrap();
    }
    emit(5);
    assert_eq!(rings(dir.path()).len(), 1);
}

#[test]
fn a_removed_folder_does_not_stop_the_program() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let session = start(dir.path(), 16);
    numbered::emit(0);
    std::fs::remove_dir_all(dir.path()).unwrap();
    numbered::emit(1);
    let _ = events::site("session", "after the folder went");
    std::thread::spawn(|| numbered::emit(2)).join().unwrap();
    wait_for(|| session.control().lost().events == 1);
}

#[test]
fn no_folder_can_be_made() {
    let _one = one_at_a_time();
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("trace");
    let error = events::start(&below, Options::default()).err().unwrap();
    assert!(error.to_string().starts_with(&format!("cannot make the trace folder {}", below.display())), "{error}");
    assert!(!events::is_on());
}

/// As a full disk: files may not grow beyond a limit. Runs in a process of its own, which the limit is for.
#[test]
fn no_space_for_a_ring() {
    const CHILD: &str = "EVENTS_TEST_NO_SPACE";
    if let Some(dir) = std::env::var_os(CHILD) {
        let limit = libc::rlimit { rlim_cur: 65_536, rlim_max: 65_536 };
        // SAFETY: a valid struct; and ignoring a signal installs no handler.
        unsafe {
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        }
        let session = start(Path::new(&dir), 65_536);
        (0..100).for_each(numbered::emit);
        assert!(rings(Path::new(&dir)).is_empty());
        wait_for(|| session.control().lost().events == 100);
        return;
    }
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let child = child.args(["no_space_for_a_ring", "--exact"]).env(CHILD, dir.path()).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert_eq!(Control::open(dir.path()).unwrap().lost().threads, 1);
}

#[test]
fn recorded_by_the_environment_until_it_exits() {
    const CHILD: &str = "EVENTS_TEST_ENV";
    if std::env::var_os(CHILD).is_some() {
        assert!(events::start_from_env().unwrap());
        numbered::emit(0);
        return;
    }
    let _one = one_at_a_time();
    assert!(!events::start_from_env().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["recorded_by_the_environment_until_it_exits", "--exact"]).env(CHILD, "1");
    let child = child.env(events::control::ENV, dir.path()).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let ring = events::ring::peek(&the_ring(dir.path())).unwrap();
    assert_eq!(ring.records.len(), 1);
    assert!(ring.finished);
}

#[test]
fn a_forked_child_is_not_recorded() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 16);
    numbered::emit(0);
    in_forked_child(|| {
        numbered::emit(1);
        i32::from(events::is_on())
    });
    numbered::emit(2);
    let mut reader = RingReader::open(&the_ring(dir.path())).unwrap();
    assert_eq!(common::Tail::of(&mut reader).numbers(), [0, 2]);
}

#[test]
fn a_slice_that_is_open_at_a_fork_is_the_parents() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 16);
    let site = events::site("session", "slice");
    let (first, second) = (events::slice(site), events::slice(site));
    let ring = RingReader::open(&the_ring(dir.path())).unwrap();
    let mut slices = Some((first, second));
    in_forked_child(|| {
        let Some((first, second)) = slices.take() else { return 1 };
        drop(second);
        events::emit_close_with_args(first, events::now(), "{}");
        0
    });
    assert_eq!((ring.published(), ring.open_slices().len()), (0, 2));
    drop(slices);
    assert_eq!((ring.published(), ring.open_slices().len()), (2, 0));
}

#[test]
fn arguments_of_a_slice_that_was_not_recorded_are_no_lost_event() {
    let _one = one_at_a_time();
    let lost = std::thread::spawn(|| {
        let never = events::slice(events::site("session", "slice"));
        events::emit_close_with_args(never, events::now(), "{}");
        let dir = tempfile::tempdir().unwrap();
        let session = start(dir.path(), 16);
        let control = Control::open(dir.path()).unwrap();
        drop(session);
        control.lost().events
    });
    assert_eq!(lost.join().unwrap(), 0);
}

/// Runs `f` in a forked child, which exits with what it gives.
fn in_forked_child(f: impl FnOnce() -> i32) {
    // SAFETY: glibc's allocator works in the child, and the test holds no lock that `f` takes.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = f();
        // SAFETY: ends the child without running the parent's handlers.
        unsafe { libc::_exit(code) };
    }
    let mut status = -1;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0);
}

#[test]
fn a_forked_child_can_go_on_with_rings_of_its_own() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 16);
    numbered::emit(0);
    in_forked_child(|| {
        let Ok(Some(session)) = events::start_after_fork() else { return 1 };
        numbered::emit(1);
        let again = events::start_after_fork();
        // The child ends as `kill -9` would end it: its ring stays.
        std::mem::forget(session);
        i32::from(!events::is_on() || !matches!(again, Ok(None)))
    });
    numbered::emit(2);
    let numbers = |path: &std::path::PathBuf| common::Tail::of(&mut RingReader::open(path).unwrap()).numbers();
    let mut numbers: Vec<Vec<u64>> = rings(dir.path()).iter().map(numbers).collect();
    numbers.sort();
    assert_eq!(numbers, [vec![0, 2], vec![1]]);
}

#[test]
fn after_a_fork_without_a_recording_nothing_is_recorded() {
    let _one = one_at_a_time();
    assert!(matches!(events::start_after_fork(), Ok(None)), "this is no forked child");
    let dir = tempfile::tempdir().unwrap();
    drop(start(dir.path(), 16));
    in_forked_child(|| i32::from(!matches!(events::start_after_fork(), Ok(None)) || events::is_on()));
}

#[test]
fn a_forked_child_finds_no_lock_taken() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let session = start(dir.path(), 16);
    /// Ends the threads also where an assertion fails.
    struct Busy<'a>(&'a AtomicBool);
    impl Drop for Busy<'_> {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }
    let is_busy = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let _busy = Busy(&is_busy);
        let is_busy = &is_busy;
        for prefix in ["a", "b"] {
            // They hold the names' lock and the session's nearly all the time.
            scope.spawn(move || {
                let mut names = (0..1000).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().into_iter().cycle();
                while is_busy.load(Ordering::Relaxed) {
                    let name = names.next().unwrap_or_default();
                    let _ = (events::site("session", &name), events::current_trace_dir());
                }
            });
        }
        for _ in 0..200 {
            in_forked_child(|| {
                // SAFETY: ends a child that waits for ever, which the parent reports.
                unsafe { libc::alarm(60) };
                let _ = events::site("session", "child");
                let Ok(Some(session)) = events::start_after_fork() else { return 1 };
                numbered::emit(1);
                drop(session);
                i32::from(events::is_on() || events::current_trace_dir().is_some())
            });
        }
    });
    drop(session);
}

#[test]
fn a_forked_child_can_record_into_another_folder() {
    let _one = one_at_a_time();
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let session = start(dir.path(), 16);
    let mut track = events::Track::open(events::track::TrackSubject::Operations, "requests", 0).unwrap();
    let mut inherited = Some(session);
    in_forked_child(|| {
        let session = start(other.path(), 16);
        numbered::emit(1);
        // Neither ends the recording of this process or of the parent.
        drop(inherited.take());
        numbered::emit(2);
        track.point(events::Kind::Instant, events::now(), events::SiteId::OTHER, events::NodeId::NONE, 0, "");
        drop(session);
        i32::from(events::is_on())
    });
    assert!(events::is_on());
    numbered::emit(0);
    drop((track, inherited));
    let events_of = |dir: &Path| -> Vec<usize> {
        rings(dir).iter().map(|ring| events::ring::peek(ring).unwrap().records.len()).collect()
    };
    let (mut own, child) = (events_of(dir.path()), events_of(other.path()));
    own.sort_unstable();
    assert_eq!((own, child), (vec![0, 1], vec![2]));
}

#[test]
fn one_collector_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::claim(dir.path()).unwrap();
    let Err(ClaimError::Taken { pid }) = Collector::claim(dir.path()) else { panic!("two collectors") };
    assert_eq!(pid, std::process::id());
    let control = Control::open(dir.path()).unwrap();
    assert!(control.is_on() && !control.collector().finished);
    assert!(events::clock::mono_now() - control.collector().heartbeat_ns < 10_000_000_000);
    collector.finish();
    assert!(control.collector().finished);
    Collector::claim(dir.path()).unwrap();
    assert!(!control.collector().finished);
}
