//! A model of the queue's attempts: loom runs the interleavings of the threads.
//!
//! All of those with at most two preemptions; with `STEPSCOPE_SOAK` set, with three.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, missing_docs, unused_imports, reason = "the module under test is compiled here on loom's types")]

mod sync {
    /// loom's mutex with parking_lot's interface.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

#[path = "../core/src/queues/attempts.rs"]
mod attempts;

use attempts::{Amount, Attempts, Refusal, Store};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use std::collections::VecDeque;

#[derive(Default)]
struct Fifo(VecDeque<u32>);

impl Store<u32> for Fifo {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn push(&mut self, row: u32) {
        self.0.push_back(row);
    }

    fn get(&self, place: usize) -> Option<&u32> {
        self.0.get(place)
    }

    fn pop(&mut self) -> Option<u32> {
        self.0.pop_front()
    }

    fn give_back(&mut self, rows: Vec<u32>) {
        rows.into_iter().rev().for_each(|row| self.0.push_front(row));
    }
}

type Queue = Attempts<u32, Fifo, ()>;

/// What the callbacks count: rows that were taken, and calls.
#[derive(Default)]
struct CallbackCounts {
    n_taken: AtomicU32,
    n_calls: AtomicU32,
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(if std::env::var_os("STEPSCOPE_SOAK").is_some() { 3 } else { 2 });
    builder.check(model);
}

fn put(queue: &Queue, counts: &Arc<CallbackCounts>, rows: Vec<u32>) -> u64 {
    let counts = Arc::clone(counts);
    queue.enqueue(
        rows,
        Box::new(move |_| {
            counts.n_calls.fetch_add(1, Ordering::SeqCst);
        }),
    )
}

fn take(queue: &Queue, counts: &Arc<CallbackCounts>, amount: Amount) -> u64 {
    let counts = Arc::clone(counts);
    let done = move |rows: Result<Vec<u32>, Refusal>| {
        counts.n_taken.fetch_add(rows.map_or(0, |rows| rows.len() as u32), Ordering::SeqCst);
        counts.n_calls.fetch_add(1, Ordering::SeqCst);
    };
    queue.dequeue(amount, Box::new(done))
}

#[test]
fn rows_are_neither_lost_nor_doubled() {
    check(|| {
        let queue = Arc::new(Queue::new(Fifo::default(), 1, 0));
        let counts = Arc::new(CallbackCounts::default());
        let (q, s) = (Arc::clone(&queue), Arc::clone(&counts));
        let putting = thread::spawn(move || {
            put(&q, &s, vec![1, 2, 3]);
        });
        take(&queue, &counts, Amount::Exactly(2));
        putting.join().unwrap();
        take(&queue, &counts, Amount::Exactly(1));
        // The two takes and the put are over, whoever came first.
        assert_eq!((counts.n_calls.load(Ordering::SeqCst), counts.n_taken.load(Ordering::SeqCst)), (3, 3));
        assert_eq!((queue.len(), queue.n_waiting()), (0, (0, 0)));
    });
}

#[test]
fn a_cancelled_take_ends_once_and_gives_its_rows_back() {
    check(|| {
        let queue = Arc::new(Queue::new(Fifo::default(), 4, 0));
        let counts = Arc::new(CallbackCounts::default());
        let id = take(&queue, &counts, Amount::Exactly(2));
        queue.keep(id, ());
        let (q, s) = (Arc::clone(&queue), Arc::clone(&counts));
        let putting = thread::spawn(move || {
            put(&q, &s, vec![1]);
            put(&q, &s, vec![2]);
        });
        queue.cancel(id);
        putting.join().unwrap();
        assert_eq!(counts.n_calls.load(Ordering::SeqCst), 3);
        let n_taken = counts.n_taken.load(Ordering::SeqCst) as usize;
        assert!(n_taken == 0 || n_taken == 2);
        assert_eq!(queue.len() + n_taken, 2);
    });
}

#[test]
fn a_close_ends_everybody() {
    for cancel_pending in [false, true] {
        check(move || {
            let queue = Arc::new(Queue::new(Fifo::default(), 1, 0));
            let counts = Arc::new(CallbackCounts::default());
            put(&queue, &counts, vec![1]);
            let (q, s) = (Arc::clone(&queue), Arc::clone(&counts));
            let taking = thread::spawn(move || {
                take(&q, &s, Amount::UpTo(3));
            });
            let s = Arc::clone(&counts);
            queue.close(
                cancel_pending,
                Box::new(move |_| {
                    s.n_calls.fetch_add(1, Ordering::SeqCst);
                }),
            );
            taking.join().unwrap();
            assert_eq!((counts.n_calls.load(Ordering::SeqCst), counts.n_taken.load(Ordering::SeqCst)), (3, 1));
            assert!(queue.is_closed());
            assert_eq!((queue.len(), queue.n_waiting()), (0, (0, 0)));
        });
    }
}
