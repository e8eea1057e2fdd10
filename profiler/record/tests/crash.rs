//! `kill -9` of the recorded program and of the collector, and damaged files: nothing acknowledged is missing, nothing
//! comes twice, nothing is wrong without a warning.

#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{again, wait_until};
use events::{NodeId, Options, emit_slice, now};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;
use trace_record::{Collector, CollectorOptions};
use trace_store::Store;
use trace_store::testkit::{read, slices};

const ROLE: &str = "STEPSCOPE_CRASH_TEST_ROLE";
const DIR: &str = "STEPSCOPE_CRASH_TEST_DIR";
const THREADS: u64 = 2;

/// This test binary again, as another process that plays `role`.
fn spawn(role: &str, dir: &Path) -> Child {
    again("other_process").env(ROLE, role).env(DIR, dir).spawn().unwrap()
}

/// The other process; nothing when the test harness runs this as a test.
#[test]
fn other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let dir = std::env::var_os(DIR).unwrap();
    let dir = Path::new(&dir);
    let _collector = role.contains("collect").then(|| Collector::start(dir, CollectorOptions::default()).unwrap());
    let _session = role.contains("emit").then(|| {
        let session = events::start(dir, Options::default()).unwrap();
        for thread in 0..THREADS {
            let dir = dir.to_owned();
            std::thread::spawn(move || emit_and_acknowledge(&dir, thread));
        }
        session
    });
    std::thread::sleep(Duration::from_secs(300));
}

/// Emits slices with `arg` = 0, 1, ...; after each 500 writes how many there are.
fn emit_and_acknowledge(dir: &Path, thread: u64) {
    let acknowledged = std::fs::File::create(dir.join(format!("acknowledged-{thread}"))).unwrap();
    let site = events::site("test", &format!("thread {thread}"));
    for n in 0u64.. {
        let begin = now();
        emit_slice(begin, now(), site, NodeId::NONE, 0, n);
        if n % 500 == 499 {
            acknowledged.write_at(&(n + 1).to_le_bytes(), 0).unwrap();
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

fn acknowledged(dir: &Path, thread: u64) -> u64 {
    let bytes = std::fs::read(dir.join(format!("acknowledged-{thread}"))).unwrap_or_default();
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Waits until the program's threads have acknowledged so many slices in all.
fn wait_for_acknowledged(dir: &Path, n: u64) {
    let acknowledged = || (0..THREADS).map(|thread| acknowledged(dir, thread)).sum::<u64>();
    wait_until(&format!("{n} slices"), || acknowledged() >= n);
}

/// The `arg`s by site name, in the order of time.
fn args(store: &Store) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for slice in slices(store) {
        found.entry(store.slice_name(&slice).to_owned()).or_default().push(slice.arg);
    }
    found
}

/// Everything that was acknowledged is there (or was dropped and counted), once, in order.
fn check(dir: &Path) -> u64 {
    let store = read(dir);
    let found = args(&store);
    let mut total = 0;
    for thread in 0..THREADS {
        let promised = acknowledged(dir, thread);
        let args = found.get(&format!("thread {thread}")).cloned().unwrap_or_default();
        assert!(args.windows(2).all(|p| p[0] < p[1]), "none twice, in order");
        let track = store.tracks().iter().find(|t| t.n_slices() == args.len() && t.n_slices() > 0);
        let dropped = track.map_or(0, |t| t.dropped);
        assert!(args.len() as u64 + dropped >= promised, "{} of {promised}; {:?}", args.len(), store.warnings());
        if dropped == 0
            && let Some(last) = args.last()
        {
            assert_eq!(args.len() as u64, last + 1, "no hole");
        }
        total += args.len() as u64;
    }
    total
}

/// Milliseconds from 20 to 300, the same in each run.
fn moments(n: u32) -> impl Iterator<Item = Duration> {
    (1..=n).map(|i| Duration::from_millis(20 + u64::from(i * 7919 % 281)))
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_program_with_its_collector_loses_nothing() {
    let mut total = 0;
    for (round, moment) in moments(10).enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let child = spawn("emit and collect", dir.path());
        // Every other one is killed so long after its start, whatever it has come to; the others once they are at work.
        if round % 2 == 1 {
            wait_for_acknowledged(dir.path(), 20_000);
        }
        std::thread::sleep(moment);
        kill(child);
        if std::fs::exists(dir.path().join("control")).unwrap() {
            total += check(dir.path());
        }
    }
    assert!(total > 50_000, "{total}");
}

#[test]
fn a_killed_program_is_collected_from_outside() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    let child = spawn("emit", dir.path());
    wait_for_acknowledged(dir.path(), 20_000);
    kill(child);
    collector.stop();
    assert!(check(dir.path()) > 10_000);
}

#[test]
fn killed_collectors_lose_and_repeat_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let program = spawn("emit", dir.path());
    for moment in moments(5) {
        let collector = spawn("collect", dir.path());
        std::thread::sleep(moment);
        kill(collector);
    }
    wait_for_acknowledged(dir.path(), 20_000);
    kill(program);
    assert!(check(dir.path()) > 10_000);
}

/// Damages each file of a trace in many ways. Every slice that is read is one that was written, and where some are
/// missing there is a warning.
#[test]
fn damaged_files_give_warnings_and_no_wrong_slice() {
    let dir = tempfile::tempdir().unwrap();
    // All 300 fit, should the collector not get a CPU for a while.
    let session = events::start(dir.path(), Options { ring_records: 512, ..Options::default() }).unwrap();
    let collector = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    for part in 0..6 {
        let site = events::site("test", "part");
        for i in 0..50 {
            emit_slice(now(), now(), site, NodeId::NONE, 7, part * 50 + i);
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    drop(session);
    collector.stop();
    let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    let whole: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(f).unwrap()).collect();
    assert_eq!(args(&read(dir.path()))["part"], (0..300).collect::<Vec<u64>>());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for round in 0..600 {
        let file = round % files.len();
        let mut bytes = whole[file].clone();
        let at = next(bytes.len());
        let end = (at + 1 + next(400)).min(bytes.len());
        match next(4) {
            0 => bytes[at] ^= 1 << next(8),
            1 => bytes[at..end].fill(0),
            2 => bytes.truncate(at),
            _ => bytes.copy_within(at..end, at / 2),
        }
        std::fs::write(&files[file], &bytes).unwrap();
        let store = read(dir.path());
        let found: Vec<u64> = args(&store).into_values().flatten().collect();
        assert!(found.windows(2).all(|p| p[0] < p[1]) && found.iter().all(|a| *a < 300), "round {round}: {found:?}");
        let is_control = files[file].ends_with("control");
        assert!(found.len() == 300 || !store.warnings().is_empty() || is_control, "round {round}: lost without a word");
        std::fs::write(&files[file], &whole[file]).unwrap();
    }
}
