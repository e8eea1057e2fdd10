//! Disk full, at every write: nothing is lost uncounted, nothing comes twice. Dumps have what was recorded before they
//! were asked for.

use super::drain::Drain;
use super::sink::Sink;
use super::*;
use events::control::Control;
use std::collections::BTreeSet;
use std::fs::File;
use std::time::Duration;
use trace_model::chunks::{ScannedChunk, Scanner, file_header};
use trace_store::testkit::RECORDING;

/// A file that fails at some writes.
struct Faulty<'a> {
    bytes: &'a mut Vec<u8>,
    fails: BTreeSet<u32>,
    n_writes: u32,
}

impl Sink for Faulty<'_> {
    fn append(&mut self, batch: &[u8]) -> io::Result<()> {
        self.n_writes += 1;
        if self.fails.contains(&self.n_writes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(batch);
        Ok(())
    }
}

/// A collector of a folder, into a file in memory that fails at some writes.
fn drain<'a>(dir: &Path, bytes: &'a mut Vec<u8>, fails: &[u32]) -> Drain<Faulty<'a>> {
    let claim = events::control::Collector::claim(dir).unwrap();
    bytes.extend(file_header(1, 0));
    let sink = Faulty { bytes, fails: fails.iter().copied().collect(), n_writes: 0 };
    Drain::new(dir, claim, sink, CollectorOptions::default(), None)
}

/// Emits 600 records in six parts to a ring of 256 with a pass after each; the given writes fail.
/// Returns the `arg`s in the file and the collector's report.
fn run_with_faults(fails: &[u32]) -> (Vec<u64>, CollectorReport) {
    let _one = RECORDING.lock();
    let dir = tempfile::tempdir().unwrap();
    let options = events::Options { ring_records: 256, ..events::Options::default() };
    let session = events::start(dir.path(), options).unwrap();
    let mut bytes = Vec::new();
    let mut drain = drain(dir.path(), &mut bytes, fails);
    let site = events::site("test", "fault");
    for part in 0..6 {
        emit(site, part * 100..part * 100 + 100);
        drain.pass();
    }
    drop(session);
    let report = drain.finish();
    (args(&bytes), report)
}

fn emit(site: events::SiteId, args: std::ops::Range<u64>) {
    args.for_each(|arg| events::emit_slice(events::now(), events::now(), site, events::NodeId::NONE, 0, arg));
}

/// The `arg`s of the records in a chunk file of one ring, whose chunks follow each other without a gap.
fn args(file: &[u8]) -> Vec<u64> {
    let mut scanner = Scanner::default();
    scanner.feed(file);
    let (mut records, mut next) = (Vec::new(), 0);
    while let Some(found) = scanner.next(&mut records) {
        let ScannedChunk::Chunk(header) = found else { panic!("{found:?}") };
        assert_eq!(header.first, next, "no gap, none twice");
        next += u64::from(header.count);
    }
    records.iter().map(|r| r.arg).collect()
}

/// A flight recorder whose ring was made after the collector's last look into a folder whose time stamp does not report
/// it; a dump is asked for at once. The given writes fail. Returns the `arg`s in the file after the passes.
fn dump_of_a_new_ring(fails: &[u32], n_passes: u32) -> Vec<u64> {
    let _one = RECORDING.lock();
    let dir = tempfile::tempdir().unwrap();
    let control = Control::open_or_create(dir.path(), true).unwrap();
    control.enable_flight_recorder(0, 0);
    let session = events::start(dir.path(), events::Options::default()).unwrap();
    let mut bytes = Vec::new();
    let mut drain = drain(dir.path(), &mut bytes, fails);
    let folder = File::open(dir.path()).unwrap();
    let stamp = std::time::UNIX_EPOCH + Duration::from_secs(1 << 30);
    folder.set_modified(stamp).unwrap();
    drain.pass();
    emit(events::site("test", "dump"), 0..100);
    folder.set_modified(stamp).unwrap();
    let number = control.request_dump();
    for pass in 1..=n_passes {
        assert_ne!(control.dumps().1, number, "done before pass {pass}");
        drain.pass();
    }
    assert_eq!(control.dumps(), (number, number));
    drop(session);
    drop(drain);
    args(&bytes)
}

#[test]
fn a_dump_has_what_was_recorded_before_it_was_asked_for() {
    assert_eq!(dump_of_a_new_ring(&[], 1), (0..100).collect::<Vec<u64>>());
}

#[test]
fn a_dump_that_finds_the_disk_full_is_written_later() {
    assert_eq!(dump_of_a_new_ring(&[1, 2], 3), (0..100).collect::<Vec<u64>>());
}

#[test]
fn failing_writes_lose_nothing_uncounted() {
    let (all, report) = run_with_faults(&[]);
    assert_eq!(all, (0..600).collect::<Vec<u64>>());
    assert_eq!((report.dropped, report.write_errors), (0, 0));
    for at in 1..=5 {
        // One failure: the ring holds the part until the next write.
        let (args, report) = run_with_faults(&[at]);
        assert_eq!((args, report.dropped, report.write_errors), ((0..600).collect(), 0, 1), "write {at}");
        // Three in a row: 300 records for a ring of 256. The producer counts what found no room.
        let (args, report) = run_with_faults(&[at, at + 1, at + 2]);
        assert_eq!(args.len() as u64 + report.dropped, 600, "writes from {at}");
        assert!(args.windows(2).all(|p| p[0] < p[1]));
        assert_eq!(report.records, args.len() as u64);
    }
}

#[test]
fn one_collector_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = Collector::start(dir.path(), CollectorOptions::default()).unwrap();
    let Err(error) = Collector::start(dir.path(), CollectorOptions::default()) else { panic!("two collectors") };
    assert!(error.to_string().contains("another collector"), "{error}");
    drop(first);
    // The next one writes a file of its own.
    drop(Collector::start(dir.path(), CollectorOptions::default()).unwrap());
    let files = std::fs::read_dir(dir.path())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with("chunks-"));
    assert_eq!(files.count(), 2);
}
