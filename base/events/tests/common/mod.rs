//! What the tests of rings share. A process has one session, so tests that record take turns.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(dead_code, reason = "each test program uses a part")]

use events::Record;
use events::ring::RingReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Held by a test that records.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records into `dir` with rings of so many records.
pub fn start(dir: &Path, ring_records: u32) -> events::Session {
    events::start(dir, events::Options { ring_records, ..Default::default() }).unwrap()
}

/// Every ring in the folder.
pub fn rings(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let mut rings: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "ring")).collect();
    rings.sort();
    rings
}

/// The folder's only ring, once it is there and ready.
pub fn the_ring(dir: &Path) -> PathBuf {
    loop {
        if let [ring] = &rings(dir)[..]
            && events::ring::peek(ring).is_ok()
        {
            return ring.clone();
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Everything that one ring held.
pub struct Tail(pub Vec<Record>);

impl Tail {
    pub fn of(reader: &mut RingReader) -> Self {
        let mut records = Vec::new();
        assert!(!reader.drain(&mut records).damaged);
        Self(records)
    }

    pub fn numbers(&self) -> Vec<u64> {
        self.0.iter().map(numbered::check).collect()
    }
}

/// Slices that carry a number in every field, so that a record made of two halves is noticed.
pub mod numbered {
    use events::{Kind, NodeId, Record, SiteId};

    fn mix(n: u64) -> u64 {
        (n ^ n >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn site() -> SiteId {
        events::site!("test", "numbered")
    }

    /// Emits number `n`.
    pub fn emit(n: u64) {
        let m = mix(n);
        events::emit_slice(n, n + (m & 0x00ff_ffff), site(), NodeId::new(m as u32), (m >> 32) as u32, m);
    }

    /// The number of a record, which must be whole.
    pub fn check(record: &Record) -> u64 {
        let (n, m) = (record.begin, mix(record.begin));
        let want = Record {
            begin: n,
            dur: (m & 0x00ff_ffff) as u32,
            site: events::record::site_word(Kind::Slice, 0, site()),
            node: m as u32,
            correlation: (m >> 32) as u32,
            arg: m,
        };
        assert_eq!(*record, want, "torn record");
        n
    }
}
