//! Batches over shuffled epochs.

use super::shuffle::SplitMix64;

/// Draws batches of row numbers: each epoch visits every row once, in a new order; a batch may span two epochs.
pub struct Batches {
    order: Vec<usize>,
    next: usize,
    rng: SplitMix64,
    batch: Vec<usize>,
    epoch: u64,
}

impl Batches {
    /// Batches of `size` rows out of `n_rows`. The same seed gives the same batches.
    ///
    /// # Panics
    /// When there are no rows or the batch is empty: nothing could ever be drawn.
    pub fn new(n_rows: usize, size: usize, seed: u64) -> Batches {
        assert!(n_rows > 0 && size > 0, "a batch of {size} out of {n_rows} rows");
        let mut rng = SplitMix64::new(seed);
        let mut order: Vec<usize> = (0..n_rows).collect();
        rng.shuffle(&mut order);
        Batches { order, next: 0, rng, batch: vec![0; size], epoch: 0 }
    }

    /// The rows of the next batch.
    pub fn draw(&mut self) -> &[usize] {
        for slot in &mut self.batch {
            if self.next == self.order.len() {
                self.rng.shuffle(&mut self.order);
                self.next = 0;
                self.epoch += 1;
            }
            *slot = self.order[self.next];
            self.next += 1;
        }
        &self.batch
    }

    /// How many times every row has been visited.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_each_row_once() {
        let mut batches = Batches::new(10, 4, 3);
        let mut seen: Vec<usize> = (0..5).flat_map(|_| batches.draw().to_vec()).collect();
        let second = seen.split_off(10);
        assert_ne!(seen, second, "each epoch has its own order");
        for epoch in [&mut seen, &mut second.clone()] {
            epoch.sort_unstable();
            assert_eq!(*epoch, (0..10).collect::<Vec<_>>());
        }
        assert_eq!(batches.epoch(), 1);
    }

    #[test]
    fn a_seed_fixes_the_batches() {
        let draw = |seed| Batches::new(50, 50, seed).draw().to_vec();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
