//! Damaged, truncated and foreign rings, meta files and control pages: no panic, no read outside the file, nothing
//! silently wrong where a checksum detects it.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{numbered, one_at_a_time, start, the_ring};
use events::control::{Control, ControlError};
use events::meta::{Entry, MetaReader};
use events::record::Decoder;
use events::ring::{RingError, RingReader, peek};
use proptest::prelude::*;
use std::path::Path;

/// A ring with records, drops, an open slice; and the meta file next to it.
fn sample(dir: &Path) -> (Vec<u8>, Vec<u8>) {
    let session = start(dir, 32);
    (0..40).for_each(numbered::emit);
    let open = events::slice(events::site!("hostile", "open"));
    let ring = std::fs::read(the_ring(dir)).unwrap();
    drop(open);
    for i in 0..20 {
        let _ = events::node(&format!("hostile/{i}"), "Add", "cpu:0");
    }
    drop(session);
    let meta = std::fs::read(events::meta::path(dir, std::process::id())).unwrap();
    (ring, meta)
}

#[derive(Clone, Debug)]
enum Damage {
    Flip { at: usize, bit: u8 },
    Fill { at: usize, len: usize, byte: u8 },
    Cut { at: usize },
    Copy { from: usize, to: usize, len: usize },
}

fn damage() -> impl Strategy<Value = Damage> {
    // Positions are folded into the file's length; half of them into the first 512 bytes, where headers are.
    let at = || prop_oneof![0..512usize, any::<usize>()];
    prop_oneof![
        (at(), 0..8u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        (at(), 1..64usize, prop_oneof![Just(0), Just(0xff), any::<u8>()]).prop_map(|(at, len, byte)| Damage::Fill {
            at,
            len,
            byte
        }),
        at().prop_map(|at| Damage::Cut { at }),
        (at(), at(), 1..64usize).prop_map(|(from, to, len)| Damage::Copy { from, to, len }),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let n = bytes.len();
    if n == 0 {
        return;
    }
    match *damage {
        Damage::Flip { at, bit } => bytes[at % n] ^= 1 << bit,
        Damage::Fill { at, len, byte } => bytes.iter_mut().skip(at % n).take(len).for_each(|b| *b = byte),
        Damage::Cut { at } => bytes.truncate(at % n),
        Damage::Copy { from, to, len } => {
            let part: Vec<u8> = bytes.iter().skip(from % n).take(len).copied().collect();
            bytes.iter_mut().skip(to % n).zip(part).for_each(|(b, p)| *b = p);
        }
    }
}

/// Everything that a reader does with a ring.
fn read_ring(path: &Path) -> Result<usize, RingError> {
    let looked = peek(path).map(|p| (p.records.len(), p.open.len(), p.info, p.overwrites));
    let mut reader = match RingReader::open(path) {
        Ok(reader) => reader,
        Err(e) => {
            assert!(looked.is_err(), "only the look accepts it: {e}");
            return Err(e);
        }
    };
    let (looked, open, info, overwrites) = looked.unwrap();
    assert_eq!((open, &info), (reader.open_slices().len(), reader.info()));
    if overwrites {
        let snapshot = reader.snapshot();
        assert_eq!(snapshot.records.len(), looked);
        assert!(looked <= info.capacity as usize);
        reader.consume_to(snapshot.first + looked as u64);
        assert!(reader.snapshot().records.is_empty(), "each record once");
        return Ok(looked);
    }
    let mut records = Vec::new();
    let drained = reader.drain(&mut records);
    assert_eq!((drained.records, records.len()), (looked, looked));
    assert!(records.len() <= info.capacity as usize);
    let mut decoder = Decoder::default();
    let events = records.iter().filter_map(|&r| decoder.push(r)).count();
    assert!(events <= records.len());
    // After a drain it is sound again.
    assert_eq!(reader.drain(&mut records), Default::default());
    Ok(looked)
}

#[test]
fn rings() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let (ring, _) = sample(dir.path());
    let path = dir.path().join("ring-1-0.ring");
    std::fs::write(&path, &ring).unwrap();
    assert_eq!(read_ring(&path).unwrap(), 32);
    proptest!(ProptestConfig::with_cases(3000), |(damages in prop::collection::vec(damage(), 1..4))| {
        let mut bytes = ring.clone();
        damages.iter().for_each(|d| apply(&mut bytes, d));
        std::fs::write(&path, &bytes).unwrap();
        let _ = read_ring(&path);
    });
}

/// The program that is recorded does not trust its consumer either: with any tail it goes on, and every event is
/// published or counted.
#[test]
fn a_consumer_that_writes_garbage() {
    use std::os::unix::fs::FileExt;
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 32);
    numbered::emit(0);
    let file = std::fs::OpenOptions::new().write(true).open(the_ring(dir.path())).unwrap();
    let reader = RingReader::open(&the_ring(dir.path())).unwrap();
    let mut emitted = 1;
    for tail in [u64::MAX, 1 << 63, 1000, 33, 0, 7, u64::MAX - 31, 50] {
        file.write_all_at(&tail.to_le_bytes(), 256).unwrap();
        for _ in 0..50 {
            numbered::emit(emitted);
            emitted += 1;
            assert_eq!(reader.published() + reader.dropped(), emitted);
        }
    }
    assert!(reader.published() > 1 && reader.dropped() > 0);
}

#[test]
fn foreign_and_unfinished_rings_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring-1-0.ring");
    let check = |bytes: &[u8], want: &str| {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read_ring(&path).unwrap_err().to_string(), want);
    };
    check(&[0; 8192], "the ring is being made");
    check(&[b'x'; 8192], "not a ring of this version (magic 0x7878787878787878)");
    check(b"STPRING1", "damaged ring header: shorter than a header");
    assert!(matches!(RingReader::open(Path::new("/nonexistent")), Err(RingError::Io(_))));
}

fn read_meta(bytes: &[u8], pieces: &[usize]) -> (Vec<Entry>, MetaReader) {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut reader = MetaReader::open(file.path()).unwrap();
    let (mut entries, mut rest) = (Vec::new(), bytes);
    for &piece in pieces {
        let (now, later) = rest.split_at(piece.min(rest.len()));
        file.write_all(now).unwrap();
        reader.poll(&mut entries).unwrap();
        rest = later;
    }
    file.write_all(rest).unwrap();
    reader.poll(&mut entries).unwrap();
    (entries, reader)
}

#[test]
fn meta_files() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let (_, meta) = sample(dir.path());
    let (whole, reader) = read_meta(&meta, &[]);
    assert_eq!((reader.n_damaged(), reader.unfinished_bytes(), reader.n_unknown()), (0, 0, 0));
    assert!(whole.len() > 24, "{whole:?}");
    proptest!(ProptestConfig::with_cases(3000), |(damages in prop::collection::vec(damage(), 1..4))| {
        let mut bytes = meta.clone();
        damages.iter().for_each(|d| apply(&mut bytes, d));
        let (entries, reader) = read_meta(&bytes, &[]);
        for entry in &entries {
            prop_assert!(whole.contains(entry), "made up: {entry:?}");
        }
        // What is missing shows, except when the file ends between two frames: nobody can know of those.
        let is_reported = reader.n_damaged() > 0 || reader.unfinished_bytes() > 0 || bytes.len() < meta.len();
        prop_assert!(entries.len() >= whole.len() || is_reported);
    });
    proptest!(|(pieces in prop::collection::vec(0..300usize, 0..20))| {
        let (entries, reader) = read_meta(&meta, &pieces);
        prop_assert_eq!(&entries, &whole);
        prop_assert_eq!(reader.n_damaged(), 0);
    });
}

#[test]
fn one_damaged_frame_costs_one_entry() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let (_, mut meta) = sample(dir.path());
    let (whole, _) = read_meta(&meta, &[]);
    let in_the_middle = meta.windows(10).position(|w| w == b"hostile/10").unwrap();
    meta[in_the_middle] ^= 1;
    let (entries, reader) = read_meta(&meta, &[]);
    assert_eq!((entries.len(), reader.n_damaged()), (whole.len() - 1, 1));
    assert!(reader.skipped_bytes() > 30 && reader.skipped_bytes() < 100);
}

#[test]
fn control_pages() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control");
    for bytes in [&b"hello"[..], &[7; 4096], &[0; 8192]] {
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(Control::open(dir.path()), Err(ControlError::Foreign { .. })));
        assert!(matches!(Control::open_or_create(dir.path(), true), Err(ControlError::Foreign { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "a foreign file is left alone");
        assert!(events::start(dir.path(), events::Options::default()).is_err());
    }
}
