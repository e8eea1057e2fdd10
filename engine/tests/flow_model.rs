//! A model of how nodes of an iteration become ready: loom runs the interleavings of those that arrive, weak memory
//! included. Every node must be made ready exactly once, by whoever completes it, and see what the others brought.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, missing_docs, reason = "the module under test is compiled here on loom's types")]

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}

#[path = "../src/run/executor/flow/counts.rs"]
mod counts;
#[path = "../src/compile/plan/merge.rs"]
mod merge;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

struct Node {
    word: AtomicU32,
    slots: [UnsafeCell<u32>; 3],
    n_ready: AtomicU32,
    n_dead: AtomicU32,
}

impl Node {
    fn new(word: u32) -> Arc<Node> {
        let slots = [(); 3].map(|()| UnsafeCell::new(0));
        Arc::new(Node { word: AtomicU32::new(word), slots, n_ready: AtomicU32::new(0), n_dead: AtomicU32::new(0) })
    }

    fn put(&self, slot: usize) {
        // SAFETY: loom reports where two threads have the slot at once.
        self.slots[slot].with_mut(|value| unsafe { *value = 1 });
    }

    /// Runs the node, as whoever made it ready may do at once: it uses all slots.
    fn ready(&self, is_dead: bool) -> u32 {
        self.n_ready.fetch_add(1, Ordering::Relaxed);
        self.n_dead.fetch_add(u32::from(is_dead), Ordering::Relaxed);
        // SAFETY: as above.
        self.slots.iter().map(|slot| slot.with_mut(|value| unsafe { std::mem::take(&mut *value) })).sum()
    }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

#[test]
fn an_ordinary_node_is_ready_once_with_all_its_values() {
    model(|| {
        let node = Node::new(3);
        let arrive = |slot: usize| {
            let node = Arc::clone(&node);
            thread::spawn(move || {
                node.put(slot);
                if let Some(is_dead) = counts::arrive::<true>(&node.word, false) {
                    assert!(!is_dead);
                    assert_eq!(node.ready(is_dead), 3);
                }
            })
        };
        let threads = [arrive(0), arrive(1)];
        node.put(2);
        if let Some(is_dead) = counts::arrive::<true>(&node.word, false) {
            assert_eq!(node.ready(is_dead), 3);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(node.n_ready.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_dead_input_makes_the_node_dead_whoever_comes_last() {
    model(|| {
        let node = Node::new(2);
        let other = Arc::clone(&node);
        let dead = thread::spawn(move || {
            if let Some(is_dead) = counts::arrive::<true>(&other.word, true) {
                other.ready(is_dead);
            }
        });
        node.put(0);
        if let Some(is_dead) = counts::arrive::<true>(&node.word, false) {
            node.ready(is_dead);
        }
        dead.join().unwrap();
        assert_eq!((node.n_ready.load(Ordering::Relaxed), node.n_dead.load(Ordering::Relaxed)), (1, 1));
    });
}

fn live(node: &Node, slot: usize) {
    if counts::claim::<true>(&node.word) {
        node.put(slot);
        if counts::arrive_live::<true>(&node.word) {
            assert_eq!(node.ready(false), 1, "the first value, and no other");
        }
    }
}

fn control(node: &Node, n_inputs: u32) {
    if let Some(is_dead) = counts::arrive_control::<true>(&node.word, n_inputs) {
        assert_eq!(node.ready(is_dead), u32::from(!is_dead));
    }
}

#[test]
fn a_merge_takes_one_of_two_live_values_after_its_control_edge() {
    model(|| {
        let node = Node::new(merge::NO_LIVE + merge::CONTROL);
        let (a, b) = (Arc::clone(&node), Arc::clone(&node));
        let threads = [thread::spawn(move || live(&a, 0)), thread::spawn(move || live(&b, 1))];
        control(&node, 2);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((node.n_ready.load(Ordering::Relaxed), node.n_dead.load(Ordering::Relaxed)), (1, 0));
    });
}

#[test]
fn a_merge_of_a_live_and_a_dead_value_is_live() {
    model(|| {
        let node = Node::new(merge::NO_LIVE + merge::CONTROL);
        let (a, b) = (Arc::clone(&node), Arc::clone(&node));
        let dead = thread::spawn(move || assert!(!counts::arrive_dead::<true>(&a.word, 1, 2)));
        let alive = thread::spawn(move || live(&b, 1));
        control(&node, 2);
        dead.join().unwrap();
        alive.join().unwrap();
        assert_eq!((node.n_ready.load(Ordering::Relaxed), node.n_dead.load(Ordering::Relaxed)), (1, 0));
    });
}

#[test]
fn a_merge_of_dead_values_is_dead_once() {
    // All values dead, or a loop that is entered dead, which stands for all.
    for by in [1, 2] {
        model(move || {
            let node = Node::new(merge::NO_LIVE + merge::CONTROL);
            let other = Arc::clone(&node);
            let dead = thread::spawn(move || {
                for _ in 0..2 / by {
                    if counts::arrive_dead::<true>(&other.word, by, 2) {
                        other.ready(true);
                    }
                }
            });
            control(&node, 2);
            dead.join().unwrap();
            assert_eq!((node.n_ready.load(Ordering::Relaxed), node.n_dead.load(Ordering::Relaxed)), (1, 1));
        });
    }
}

#[test]
fn an_iteration_is_retired_once_by_whoever_lets_go_last() {
    model(|| {
        let word = Arc::new(AtomicU32::new(2));
        let other = Arc::clone(&word);
        // One makes two more ready and is over, then those are over; the other is over.
        let thread = thread::spawn(move || {
            let mut n = u32::from(counts::hold::<true>(&other, 1));
            n += u32::from(counts::hold::<true>(&other, -1));
            n + u32::from(counts::hold::<true>(&other, -1))
        });
        let mine = u32::from(counts::hold::<true>(&word, -1));
        assert_eq!(thread.join().unwrap() + mine, 1);
    });
}
