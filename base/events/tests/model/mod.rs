//! The model of the ring that `ring_model.rs` runs on the protocol as it is, and `ring_model_planted.rs` with a bug in it.

use crate::protocol::{Slot, before_overwriting, first_intact, free, free_to, publish, published};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

const RECORDS: u64 = 3;

/// The words of record `n`: none of them zero, so that a half is seen.
fn words(n: u64) -> [u64; 4] {
    [n + 1, n + 101, n + 201, n + 301]
}

struct Ring {
    head: AtomicU64,
    tail: AtomicU64,
    slots: Vec<Slot>,
}

fn ring(capacity: usize) -> Arc<Ring> {
    let slot = || {
        // A slot has no constructor: in a ring it is a mapped file's bytes. Four of the model's atomics are one.
        let zeros: [AtomicU64; 4] = std::array::from_fn(|_| AtomicU64::new(0));
        // SAFETY: `Slot` is `repr(C)` with this array as its only field.
        unsafe { std::mem::transmute::<[AtomicU64; 4], Slot>(zeros) }
    };
    let slots = (0..capacity).map(|_| slot()).collect();
    Arc::new(Ring { head: AtomicU64::new(0), tail: AtomicU64::new(0), slots })
}

/// Drops what finds no room; every record that arrives is whole and in order, and none is lost uncounted.
pub fn consumed() {
    let ring = ring(2);
    let producer = thread::spawn({
        let ring = Arc::clone(&ring);
        move || {
            let (mut head, mut dropped) = (0, Vec::new());
            for n in 0..RECORDS {
                if free(head, &ring.tail, 2) == 0 {
                    dropped.push(n);
                    continue;
                }
                ring.slots[head as usize % 2].store(words(n));
                head += 1;
                publish(&ring.head, head);
            }
            dropped
        }
    });
    let (mut tail, mut taken) = (0, Vec::new());
    for _ in 0..2 {
        let end = published(&ring.head);
        while tail < end {
            taken.push(ring.slots[tail as usize % 2].load());
            tail += 1;
        }
        free_to(&ring.tail, tail);
    }
    let dropped = producer.join().unwrap();
    taken.extend((tail..published(&ring.head)).map(|at| ring.slots[at as usize % 2].load()));
    let kept: Vec<_> = (0..RECORDS).filter(|n| !dropped.contains(n)).map(words).collect();
    assert_eq!(taken, kept);
}

/// Writes over the oldest; every record that a look takes for whole is.
pub fn overwritten() {
    let ring = ring(2);
    let producer = thread::spawn({
        let ring = Arc::clone(&ring);
        move || {
            for n in 0..RECORDS {
                before_overwriting();
                ring.slots[n as usize % 2].store(words(n));
                publish(&ring.head, n + 1);
            }
        }
    });
    let end = published(&ring.head);
    let copies: Vec<_> = (end.saturating_sub(2)..end).map(|n| (n, ring.slots[n as usize % 2].load())).collect();
    let whole = first_intact(&ring.head, 2, 1);
    for (n, copy) in copies {
        assert!(n < whole || copy == words(n), "record {n}: {copy:?}");
    }
    producer.join().unwrap();
}

/// All interleavings with at most two preemptions; with `STEPSCOPE_SOAK` set, with three.
pub fn check(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(if std::env::var_os("STEPSCOPE_SOAK").is_some() { 3 } else { 2 });
    builder.check(model);
}
