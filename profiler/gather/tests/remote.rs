//! Remote viewers see what is there: a collector's trace, and the folders that `serve` serves.
#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{Folder, gathering, loopback, read, sender, wait_until};
use gather::{Connection, Host, LogdirCopy};
use parking_lot::RwLock;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trace_model::lod::Span;
use trace_store::remote::Viewer;
use trace_store::{Residency, Store, StoreOptions};

/// A thread's slices and a counter.
fn recorded(dir: &Path, n: i64) -> Folder {
    let begin = events::clock::mono_now();
    let mut folder = Folder::create(dir, 31, begin);
    for i in 0..n {
        folder.slice(begin + i * 2_000, 300 + (i % 7) as u32 * 200, i as u64);
        if i % 10 == 0 {
            folder.counter(begin + i * 2_000, (i % 1_000) as f64);
        }
        if i % 4_000 == 3_999 {
            folder.flush(0);
        }
    }
    folder
}

fn spans(store: &Store, view: &Range<i64>, px: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    for lane in store.tracks().iter().flat_map(|track| &track.lanes) {
        lane.spans(view.clone(), px, &mut spans);
    }
    spans
}

/// Polls until the remote store has as many slices, and what is next to them.
fn follow(viewer: &mut Viewer, near: &Store) -> Store {
    let remote = RwLock::new(Store::with_options(StoreOptions::UNBOUNDED));
    let viewer = RwLock::new(viewer);
    let points = |store: &Store| store.counters().iter().map(|c| c.time.len()).sum::<usize>();
    let all = |store: &Store| (store.stats().slices, points(store), store.range());
    wait_until("all is there", || {
        let batch = viewer.write().poll().unwrap();
        remote.write().apply(batch);
        all(&remote.read()) == all(near)
    });
    remote.into_inner()
}

fn load(store: &Store) {
    while store.pager().is_some_and(|pages| pages.load_requested()) {}
}

fn slices(store: &Store, range: &Range<i64>) -> Vec<(i64, i64, u64, String)> {
    while store.residency(range) == Residency::Loading {
        assert!(store.pager().unwrap().load_requested());
    }
    let lanes = store.tracks().iter().flat_map(|track| &track.lanes);
    let slices = lanes.flat_map(|lane| lane.slices(range));
    slices.map(|s| (s.start, s.end, s.arg, store.slice_name(&s).to_owned())).collect()
}

fn assert_same(remote: &Store, near: &Store) {
    assert_eq!((remote.origin_ns(), remote.range()), (near.origin_ns(), near.range()));
    assert_eq!((remote.processes(), remote.sites()), (near.processes(), near.sites()));
    let points = |store: &Store| store.counters().iter().map(|c| (c.time.clone(), c.value.clone())).collect::<Vec<_>>();
    assert_eq!(points(remote), points(near));
    let all = near.range();
    // Wider than a pixel at every zoom: each span is a slice, and both have the same.
    let few = all.start + 1_000_000..all.start + 1_100_000;
    spans(remote, &few, 640);
    load(remote);
    assert_eq!(spans(remote, &few, 640), spans(near, &few, 640));
    let count = |spans: &[Span]| {
        spans.iter().map(|s| (u64::from(s.count), s.busy_ns)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    };
    spans(remote, &all, 1_000);
    load(remote);
    assert_eq!(count(&spans(remote, &all, 1_000)), count(&spans(near, &all, 1_000)));
    assert_eq!(slices(remote, &few), slices(near, &few));
}

#[test]
fn a_collector_shows_what_it_gathers() {
    let (dir, gathered, server) = gathering();
    let mut folder = recorded(&dir.path().join("a"), 40_000);
    folder.end();
    assert!(sender(&folder.dir, &server).finish(Duration::from_secs(30)).finished);
    let connection = Connection::to_address(&server.address().to_string()).unwrap();
    let listing = connection.list().unwrap();
    assert_eq!((listing.traces.len(), listing.files.len()), (1, 0));
    let near = read(&gathered);
    assert_eq!(near.stats().slices, 40_000);
    assert_same(&follow(&mut Viewer::new(connection.trace("")), &near), &near);
    assert!(connection.read("chunks-31.bin", 0, 10).is_err(), "a collector gives no files");
    server.stop();
}

#[test]
fn a_served_run_is_followed_while_it_grows() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("logs/run");
    let mut folder = recorded(&run.join("trace"), 8_000);
    let events = run.join("events.out.tfevents.1.host");
    std::fs::write(&events, b"first").unwrap();
    std::fs::write(run.join("secret.txt"), b"not served").unwrap();
    std::fs::write(dir.path().join("outside.txt"), b"not served").unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside.txt"), run.join("events.out.tfevents.2.link")).unwrap();
    let host = Host::start(&dir.path().join("logs"), loopback()).unwrap();
    let connection = Connection::to_address(&host.address().to_string()).unwrap();
    let listing = connection.list().unwrap();
    assert_eq!(listing.traces.iter().map(|t| t.path.as_str()).collect::<Vec<_>>(), ["run/trace"]);
    for outside in
        ["../outside.txt", "/etc/hostname", "run/../../outside.txt", "run/events.out.tfevents.2.link", "run/secret.txt"]
    {
        assert!(connection.read(outside, 0, 10).is_err(), "{outside}");
    }
    std::fs::remove_file(run.join("events.out.tfevents.2.link")).unwrap();

    let mut viewer = Viewer::new(connection.trace("run/trace"));
    let near = read(&folder.dir);
    assert_eq!(near.stats().slices, 8_000);
    assert_same(&follow(&mut viewer, &near), &near);
    let begin = events::clock::mono_now() + 1_000_000_000;
    (0..500).for_each(|n| folder.slice(begin + n as i64 * 1_000, 500, n));
    folder.end();
    let near = read(&folder.dir);
    assert_eq!(near.stats().slices, 8_500);
    assert_same(&follow(&mut viewer, &near), &near);

    let mut copy = LogdirCopy::new(Arc::clone(&connection)).unwrap();
    let fetched = copy.fetch().unwrap();
    assert_eq!((fetched.n_files, fetched.n_bytes), (1, 5));
    let path = copy.folder().join("run/events.out.tfevents.1.host");
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
    // It grows, then another file takes its name.
    let big = [b"first".as_slice(), &vec![7; 3 << 20]].concat();
    std::fs::write(&events, &big).unwrap();
    assert_eq!(copy.fetch().unwrap().n_bytes, 3 << 20);
    assert!(std::fs::read(&path).unwrap() == big);
    std::fs::write(run.join("new"), b"another one").unwrap();
    std::fs::rename(run.join("new"), &events).unwrap();
    assert_eq!(copy.fetch().unwrap().n_bytes, 11);
    assert_eq!(std::fs::read(&path).unwrap(), b"another one");
    assert_eq!(copy.fetch().unwrap().n_bytes, 0);
}

#[test]
fn nobody_there_and_nothing_to_show_are_said() {
    // Where nobody listens, and no other test does for a moment.
    let error = Connection::to_address("127.0.0.1:1").unwrap().list().unwrap_err().to_string();
    assert!(error.contains("refused"), "{error}");
    for wrong in ["", "nonsense", "host:", ":80", "host:99999"] {
        assert!(Connection::to_address(wrong).is_err(), "{wrong}");
    }
    let program = ["/no/such/program".to_owned()];
    let error = Connection::to_program("there", &program).unwrap().list().unwrap_err().to_string();
    assert!(error.contains("/no/such/program"), "{error}");
    let program = ["sh".to_owned(), "-c".to_owned(), "echo no such host >&2; exit 255".to_owned()];
    assert!(Connection::to_program("there", &program).unwrap().list().is_err());
    let dir = tempfile::tempdir().unwrap();
    assert!(Host::start(dir.path(), loopback()).is_err(), "an empty folder");
    assert!(Host::start(&dir.path().join("none"), loopback()).is_err());
}
