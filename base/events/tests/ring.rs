//! Rings through the public interface: exact accounting with a live consumer, a full ring, long slices, open slices,
//! looking without consuming.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{Tail, numbered, one_at_a_time, start, the_ring};
use events::record::Decoder;
use events::ring::{RingReader, peek};
use events::{Kind, NodeId};

#[test]
fn emitted_is_drained_plus_dropped() {
    const EVENTS: u64 = 3_000_000;
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 1024);
    let producer = std::thread::spawn(|| {
        for n in 0..EVENTS {
            numbered::emit(n);
        }
    });
    let mut reader = RingReader::open(&the_ring(dir.path())).unwrap();
    let (mut drained, mut batch, mut last) = (0u64, Vec::new(), None);
    loop {
        let finished = reader.is_finished();
        batch.clear();
        let got = reader.drain(&mut batch);
        assert!(!got.damaged);
        assert_eq!(got.records, batch.len());
        for record in &batch {
            let n = numbered::check(record);
            assert!(last < Some(n), "record {n} after {last:?}");
            last = Some(n);
        }
        drained += got.records as u64;
        if finished {
            break;
        }
    }
    producer.join().unwrap();
    assert_eq!(drained, reader.published());
    assert_eq!(drained + reader.dropped(), EVENTS);
    assert!(drained >= 1024, "at least one ring full: {drained}");
}

#[test]
fn a_full_ring_keeps_the_oldest_and_counts_the_rest() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let session = start(dir.path(), 16);
    (0..20).for_each(numbered::emit);
    let path = the_ring(dir.path());
    let mut reader = RingReader::open(&path).unwrap();
    let mut records = Vec::new();
    assert_eq!(reader.peek(&mut records).records, 16);
    assert_eq!(reader.dropped(), 4);
    records.clear();
    reader.drain(&mut records);
    // Room again, and it wraps around.
    (20..30).for_each(numbered::emit);
    reader.drain(&mut records);
    let numbers: Vec<u64> = records.iter().map(numbered::check).collect();
    assert_eq!(numbers, (0..16).chain(20..30).collect::<Vec<_>>());
    assert!(!reader.is_finished());
    drop(session);
    assert!(reader.is_finished());
    assert_eq!(reader.pending(), 0);
    reader.retire().unwrap();
    assert!(!path.exists());
}

#[test]
fn every_kind_arrives_as_it_was_emitted() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 64);
    let site = events::site("ring", "kinds");
    let node = events::node("a/b", "Add", "cpu:0");
    events::emit_slice(10, 10 + (1 << 40), site, node, 3, 4);
    events::emit_slice(10, 5, site, node, 3, 4); // ends before it begins: no duration
    let outer = events::open(20, site, node);
    events::instant(site, 5);
    events::counter_for_node(site, node, 0.5);
    events::flow_out(site, 6);
    events::flow_in(site, 6);
    events::alloc(site, node, 7, 128);
    events::free(site, node, 7, 0);
    events::emit_close(outer, 30, 8, 9);
    let mut records = Vec::new();
    RingReader::open(&the_ring(dir.path())).unwrap().drain(&mut records);
    let mut decoder = Decoder::default();
    let got: Vec<_> = records.into_iter().filter_map(|r| decoder.push(r)).collect();
    let brief: Vec<_> = got.iter().map(|e| (e.kind, e.depth, e.node, e.dur, e.correlation, e.arg)).collect();
    let none = NodeId::NONE;
    assert_eq!(
        brief,
        [
            (Kind::Slice, 0, node, 1 << 40, 3, 4),
            (Kind::Slice, 0, node, 0, 3, 4),
            (Kind::Instant, 1, none, 0, 0, 5),
            (Kind::Counter, 1, node, 0, 0, 0.5f64.to_bits()),
            (Kind::FlowOut, 1, none, 0, 6, 0),
            (Kind::FlowIn, 1, none, 0, 6, 0),
            (Kind::Alloc, 1, node, 0, 3, 7),
            (Kind::Free, 1, node, 0, 1, 7),
            (Kind::Slice, 0, node, 10, 8, 9),
        ]
    );
    assert!(got.iter().all(|e| e.site == site));
}

#[test]
fn running_slices_are_visible() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 1024);
    let (outer, inner) = (events::site("ring", "outer"), events::site("ring", "inner"));
    let node = events::node("x", "MatMul", "cpu:0");
    let a = events::open(5, outer, NodeId::NONE);
    let b = events::open(6, inner, node);
    let path = the_ring(dir.path());
    let reader = RingReader::open(&path).unwrap();
    let brief = |open: Vec<events::ring::OpenSlice>| -> Vec<_> {
        open.iter().map(|o| (o.begin, o.site, o.node, o.depth)).collect()
    };
    let both = [(5, outer, NodeId::NONE, 0), (6, inner, node, 1)];
    assert_eq!(brief(reader.open_slices()), both);
    assert_eq!(brief(peek(&path).unwrap().open), both);
    drop(b);
    assert_eq!(brief(reader.open_slices()), both[..1]);
    drop(a);
    assert!(reader.open_slices().is_empty());
    // Deeper than the table: counted in the depth, not shown, nothing overwritten.
    let guards: Vec<_> = (0..100).map(|i| events::open(i, outer, NodeId::NONE)).collect();
    assert_eq!(reader.open_slices().len(), 64);
    drop(guards);
    assert!(reader.open_slices().is_empty());
}

#[test]
fn a_look_does_not_consume_and_skips_what_was_drained() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 16);
    (0..10).for_each(numbered::emit);
    let path = the_ring(dir.path());
    let mut reader = RingReader::open(&path).unwrap();
    let mut taken = Vec::new();
    reader.drain(&mut taken);
    (10..22).for_each(numbered::emit);
    for _ in 0..2 {
        let look = peek(&path).unwrap();
        assert_eq!((look.first, look.dropped, look.finished, look.damaged), (10, 0, false, false));
        assert_eq!(look.records.iter().map(numbered::check).collect::<Vec<_>>(), (10..22).collect::<Vec<_>>());
    }
    assert_eq!(look_info(&path), (std::process::id(), 0, 16));
}

fn look_info(path: &std::path::Path) -> (u32, u32, u32) {
    let info = peek(path).unwrap().info;
    (info.pid, info.ring, info.capacity)
}

/// Random positions: a consumer that stops and starts at random loses nothing and sees nothing twice.
#[test]
fn any_interleaving_of_bursts_and_drains() {
    let _one = one_at_a_time();
    proptest::proptest!(|(steps in proptest::collection::vec((0u64..40, proptest::bool::ANY), 1..20))| {
        let dir = tempfile::tempdir().unwrap();
        let session = start(dir.path(), 32);
        numbered::emit(0);
        let mut reader = RingReader::open(&the_ring(dir.path())).unwrap();
        let (mut next, mut waiting, mut dropped, mut want) = (1, 1, 0, vec![0]);
        let mut records = Vec::new();
        for (burst, drain) in steps {
            for n in next..next + burst {
                numbered::emit(n);
                if waiting < 32 { waiting += 1; want.push(n); } else { dropped += 1; }
            }
            next += burst;
            if drain { reader.drain(&mut records); waiting = 0; }
        }
        reader.drain(&mut records);
        proptest::prop_assert_eq!(records.iter().map(numbered::check).collect::<Vec<_>>(), want);
        proptest::prop_assert_eq!(reader.dropped(), dropped);
        drop(session);
    });
}

#[test]
fn two_threads_two_rings() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 64);
    for name in ["left", "right"] {
        std::thread::Builder::new().name(name.to_owned()).spawn(|| numbered::emit(1)).unwrap().join().unwrap();
    }
    let mut names: Vec<String> = common::rings(dir.path())
        .iter()
        .map(|path| {
            let mut reader = RingReader::open(path).unwrap();
            assert!(reader.is_finished());
            assert_eq!(Tail::of(&mut reader).numbers(), [1]);
            reader.info().name.clone()
        })
        .collect();
    names.sort();
    assert_eq!(names, ["left", "right"]);
}
