//! What brings slices that are not in memory.

use crate::warning::Warning;
use std::fmt::Debug;

/// What is held in memory of a trace that is elsewhere, and how often more was brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagerStats {
    /// Bytes of slices in memory.
    pub bytes: usize,
    /// How many they may be; the latest is kept whatever its size.
    pub budget: usize,
    /// How often some were read or fetched so far.
    pub loads: u64,
}

/// The source of a store's paged lanes: a sealed trace's files, or another process that has them.
///
/// A picture never waits for it: what a picture lacked is noted as a page request.
pub trait Pages: Debug + Send + Sync {
    /// Changes how many bytes of slices are kept in memory.
    fn set_budget(&self, budget: usize);
    /// What it holds and did.
    fn stats(&self) -> PagerStats;
    /// Grows when [`Pages::load_requested`] has brought something.
    fn version(&self) -> u64;
    /// Brings some of what the last pictures lacked. True if a picture would show more now. To be called by a thread that
    /// may wait, without the store's lock.
    fn load_requested(&self) -> bool;
    /// Whether a picture lacked something.
    fn has_requests(&self) -> bool;
    /// The arguments with a number.
    fn args(&self, number: u32) -> Option<String>;
    /// Bytes of memory that it holds.
    fn memory_bytes(&self) -> usize;
    /// Where the parts of the trace begin that fit into memory together.
    fn part_starts(&self) -> Vec<i64>;
    /// What is missing because it cannot be read.
    fn damage(&self) -> Option<Warning>;
    /// Reads everything once, to find damage now.
    fn check_all(&self);
}
