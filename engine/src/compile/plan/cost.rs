//! What each node's execution takes, measured, and whether a second thread would help.
//!
//! Reading the clock for each op costs as much as a cheap op, and noting what it took touches memory of its own, so one
//! step in [`MEASURE_EVERY`] is measured, traced or not.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Ticks from which a node is worth another thread's attention: a wake-up takes about as long.
pub(crate) const EXPENSIVE_TICKS: u32 = 20_000;
/// Ticks below which a node costs less than handing it to another thread.
pub(crate) const TAKEN_TICKS: u32 = 1_000;
/// One step in this many is measured.
const MEASURE_EVERY: u32 = 64;
/// Steps at the beginning that are all measured.
const MEASURE_FIRST: u32 = 4;

/// All executions of a node that were measured.
#[derive(Default)]
struct Sum {
    ticks: AtomicU64,
    count: AtomicU64,
}

/// Moving averages of the ticks of each node of a plan.
pub(crate) struct Costs {
    ticks: Box<[AtomicU32]>,
    sums: Box<[Sum]>,
    n_steps: AtomicU32,
    /// Whether several threads would have something to do at once.
    has_width: AtomicBool,
}

impl Costs {
    /// Starts from what the kernels say of themselves.
    pub fn new(is_expensive: impl Iterator<Item = bool>) -> Costs {
        let guess = |expensive| if expensive { EXPENSIVE_TICKS } else { 0 };
        let ticks: Box<[AtomicU32]> = is_expensive.map(|e| AtomicU32::new(guess(e))).collect();
        Costs {
            sums: ticks.iter().map(|_| Sum::default()).collect(),
            ticks,
            n_steps: AtomicU32::new(0),
            has_width: AtomicBool::new(false),
        }
    }

    /// Ticks that the node takes, about.
    #[inline]
    pub fn ticks(&self, node: u32) -> u32 {
        self.ticks[node as usize].load(Ordering::Relaxed)
    }

    #[inline]
    pub fn is_expensive(&self, node: u32) -> bool {
        self.ticks(node) >= EXPENSIVE_TICKS
    }

    /// One execution took so long. Each counts for an eighth.
    #[inline]
    pub fn measured(&self, node: u32, ticks: u64) {
        let cell = &self.ticks[node as usize];
        let old = cell.load(Ordering::Relaxed);
        let new = ticks.min(u64::from(u32::MAX / 2)) as u32;
        cell.store(old - old / 8 + new / 8, Ordering::Relaxed);
        // Not exact where steps run at once, which a mean bears.
        let sum = &self.sums[node as usize];
        sum.ticks.store(sum.ticks.load(Ordering::Relaxed).wrapping_add(ticks), Ordering::Relaxed);
        sum.count.store(sum.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// How often a node was measured, and the ticks that it took together.
    pub fn sum(&self, node: usize) -> (u64, u64) {
        let sum = &self.sums[node];
        (sum.count.load(Ordering::Relaxed), sum.ticks.load(Ordering::Relaxed))
    }

    /// Counts a step; whether it shall be measured.
    pub fn next_step_is_measured(&self) -> bool {
        let n = self.n_steps.fetch_add(1, Ordering::Relaxed);
        n < MEASURE_FIRST || n.is_multiple_of(MEASURE_EVERY)
    }

    pub fn has_width(&self) -> bool {
        self.has_width.load(Ordering::Relaxed)
    }

    pub fn set_width(&self, has_width: bool) {
        self.has_width.store(has_width, Ordering::Relaxed);
    }
}
