//! The orders in which queues give their rows: as they came, at random, by priority.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use super::attempts::Store;
use super::rows::Row;
use crate::philox::Philox;

/// The rows of a queue.
pub enum Rows {
    /// In the order in which they came.
    Fifo(VecDeque<Row>),
    /// Any.
    Shuffled(Vec<Row>, Draw),
    /// The smallest priority first (the first component, an i64); equal ones in the order in which they came.
    ByPriority(BinaryHeap<Reverse<Ranked>>, u64),
}

/// Uniform numbers, one word at a time, as TensorFlow's `SingleSampleAdapter` draws them.
pub struct Draw {
    generator: Philox,
    words: [u32; 4],
    n_used: usize,
}

impl Draw {
    /// The sequence of two seeds; a new one each time where both are 0.
    pub fn new(seed: u64, seed2: u64) -> Draw {
        let generator = match (seed, seed2) {
            (0, 0) => Philox::new(RandomState::new().hash_one(1u8), RandomState::new().hash_one(2u8)),
            _ => Philox::new(seed, seed2),
        };
        Draw { generator, words: [0; 4], n_used: 4 }
    }

    fn next(&mut self) -> u32 {
        if self.n_used == 4 {
            self.words = self.generator.next4();
            self.n_used = 0;
        }
        self.n_used += 1;
        self.words[self.n_used - 1]
    }

    /// The state, to go on from elsewhere.
    pub fn state(&self) -> Vec<u32> {
        let mut state = self.generator.state().to_vec();
        state.extend(self.words);
        state.push(self.n_used as u32);
        state
    }

    pub fn from_state(state: &[u32]) -> Option<Draw> {
        let (generator, rest) = state.split_first_chunk::<6>()?;
        let (words, n_used) = rest.split_first_chunk::<4>()?;
        let &[n_used] = n_used else { return None };
        (n_used <= 4).then(|| Draw {
            generator: Philox::from_state(*generator),
            words: *words,
            n_used: n_used as usize,
        })
    }
}

/// A row with its rank.
pub(crate) struct Ranked {
    priority: i64,
    arrival: u64,
    row: Row,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> std::cmp::Ordering {
        (self.priority, self.arrival).cmp(&(other.priority, other.arrival))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl Rows {
    /// The rows in an order in which pushing them again restores this store.
    pub fn in_order(&self) -> Vec<&Row> {
        match self {
            Rows::Fifo(rows) => rows.iter().collect(),
            Rows::Shuffled(rows, _) => rows.iter().collect(),
            Rows::ByPriority(heap, _) => {
                let mut rows: Vec<&Ranked> = heap.iter().map(|Reverse(r)| r).collect();
                rows.sort();
                rows.into_iter().map(|r| &r.row).collect()
            }
        }
    }
}

impl Store<Row> for Rows {
    fn len(&self) -> usize {
        match self {
            Rows::Fifo(rows) => rows.len(),
            Rows::Shuffled(rows, _) => rows.len(),
            Rows::ByPriority(heap, _) => heap.len(),
        }
    }

    fn get(&self, place: usize) -> Option<&Row> {
        match self {
            Rows::Fifo(rows) => rows.get(place),
            Rows::Shuffled(..) | Rows::ByPriority(..) => None,
        }
    }

    fn push(&mut self, row: Row) {
        match self {
            Rows::Fifo(rows) => rows.push_back(row),
            Rows::Shuffled(rows, _) => rows.push(row),
            Rows::ByPriority(heap, arrivals) => {
                // The kernel has checked that it is one i64.
                let priority = row.first().and_then(|t| t.item::<i64>().ok()).unwrap_or_default();
                *arrivals += 1;
                heap.push(Reverse(Ranked { priority, arrival: *arrivals, row }));
            }
        }
    }

    fn pop(&mut self) -> Option<Row> {
        match self {
            Rows::Fifo(rows) => rows.pop_front(),
            Rows::Shuffled(rows, draw) => {
                let i = draw.next() as usize % rows.len().max(1);
                (i < rows.len()).then(|| rows.swap_remove(i))
            }
            Rows::ByPriority(heap, _) => heap.pop().map(|Reverse(r)| r.row),
        }
    }

    fn give_back(&mut self, rows: Vec<Row>) {
        match self {
            Rows::Fifo(all) => rows.into_iter().rev().for_each(|row| all.push_front(row)),
            // As TensorFlow: the last taken first.
            Rows::Shuffled(all, _) => all.extend(rows.into_iter().rev()),
            Rows::ByPriority(..) => rows.into_iter().for_each(|row| self.push(row)),
        }
    }
}
