//! `kill -9` at random moments: every event that the program had emitted, as it says in a page of its own, is in
//! the ring or was drained, whole and in order.
//!
//! The test program starts itself again as the program that is killed.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{Tail, numbered, rings, the_ring};
use events::meta::{Entry, MetaReader};
use events::ring::{RingReader, peek};
use memmap2::MmapRaw;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const CHILD_DIR: &str = "EVENTS_TEST_CHILD_DIR";
const RING: u32 = 4096;
const KILLS: u64 = 20;

/// Two numbers that both processes see: events acknowledged, events drained (so that the ring is never full).
struct Page(MmapRaw);

impl Page {
    fn open(dir: &Path) -> Self {
        let path = dir.join("page");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        file.set_len(4096).unwrap();
        Self(MmapRaw::map_raw(&file).unwrap())
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < 2);
        // SAFETY: the mapping is a page of 4096 bytes, aligned, and lives as long as `self`.
        unsafe { &*self.0.as_ptr().cast::<AtomicU64>().add(index) }
    }

    fn acknowledged(&self) -> &AtomicU64 {
        self.word(0)
    }

    fn drained(&self) -> &AtomicU64 {
        self.word(1)
    }
}

/// The program that is killed; does nothing when it runs as a test.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let dir = Path::new(&dir);
    let page = Page::open(dir);
    let _session = common::start(&dir.join("trace"), RING);
    for n in 0.. {
        while n - page.drained().load(Ordering::Acquire) >= u64::from(RING) {
            std::thread::yield_now();
        }
        numbered::emit(n);
        page.acknowledged().store(n + 1, Ordering::Release);
        if n % 1000 == 999 {
            std::thread::sleep(Duration::from_micros(50)); // so that some kills find it at rest
        }
    }
}

/// A child that does not outlive a failed test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only when it is dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(dir: &Path) -> Killed {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]).env(CHILD_DIR, dir).stdout(Stdio::null()).stderr(Stdio::null());
    Killed(command.spawn().unwrap())
}

/// One life; returns how many events were found that the last drain before the kill had not seen.
fn kill_once(after: Duration, must_leave_some: bool) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let (page, trace) = (Page::open(dir.path()), dir.path().join("trace"));
    std::fs::create_dir(&trace).unwrap();
    let mut child = spawn(dir.path());
    let ring = the_ring(&trace);
    let mut reader = RingReader::open(&ring).unwrap();
    // A ring is there a moment before its thread's name is; an event comes after both.
    while page.acknowledged().load(Ordering::Acquire) == 0 {
        assert!(child.0.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::sleep(Duration::from_micros(100));
    }
    let begin = events::clock::mono_now();
    let mut numbers = Vec::new();
    while events::clock::mono_now() - begin < after.as_nanos() as i64 {
        numbers.extend(Tail::of(&mut reader).numbers());
        page.drained().store(numbers.len() as u64, Ordering::Release);
    }
    // The ring was emptied: the child goes on as soon as it gets the processor.
    while must_leave_some && page.acknowledged().load(Ordering::Acquire) <= numbers.len() as u64 {
        std::thread::yield_now();
    }
    child.0.kill().unwrap();
    child.0.wait().unwrap();

    let acknowledged = page.acknowledged().load(Ordering::Acquire);
    let look = peek(&ring).unwrap();
    assert!(!look.finished && !look.damaged);
    let rest = Tail::of(&mut reader);
    assert_eq!(look.records, rest.0, "both ways to read a dead program's ring agree");
    numbers.extend(rest.numbers());
    let want: Vec<u64> = (0..numbers.len() as u64).collect();
    assert!(numbers == want, "a gap or a repetition");
    assert!(numbers.len() as u64 >= acknowledged, "{} of {acknowledged}", numbers.len());
    assert_eq!(reader.dropped(), 0);
    assert_eq!(rings(&trace).len(), 1);
    check_meta(&trace, child.0.id());
    rest.0.len()
}

fn check_meta(trace: &Path, pid: u32) {
    let mut meta = MetaReader::open(&events::meta::path(trace, pid)).unwrap();
    let mut entries = Vec::new();
    meta.poll(&mut entries).unwrap();
    assert_eq!(meta.n_damaged(), 0);
    assert!(matches!(entries[0], Entry::Process { pid: p, .. } if p == pid));
    assert!(entries.iter().any(|e| matches!(e, Entry::Site { name, .. } if name == "numbered")));
    assert!(entries.iter().any(|e| matches!(e, Entry::Thread { ring: 0, name, .. } if name == "child")));
}

#[test]
fn nothing_acknowledged_is_lost() {
    if std::env::var_os(CHILD_DIR).is_some() {
        return;
    }
    let mut seed = 0x2545_f491_4f6c_dd1d_u64 ^ events::clock::now();
    let mut recovered = 0;
    for _ in 0..KILLS {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        recovered += kill_once(Duration::from_micros(seed % 30_000), false);
    }
    // Where both share a processor the child never ran between the last look and the kill.
    if recovered == 0 {
        recovered = kill_once(Duration::from_millis(5), true);
    }
    // The kills came while events were waiting: the recovery was tested.
    assert!(recovered > 0);
}
