//! The loader of slices that are on disk or in another process.

use crate::warning::Warning;
use std::fmt::Debug;

/// Memory and loads of a [`PageLoader`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagerStats {
    /// Bytes of slices in memory.
    pub bytes: usize,
    /// The limit of bytes; the page that was loaded last stays even if it is larger.
    pub budget: usize,
    /// The number of loads so far.
    pub loads: u64,
}

/// Loads slices of a store's cold lanes, from the files of a sealed trace or from another process.
///
/// Drawing never waits for pages: missing pages are requested, and loaded by [`PageLoader::load_requested`].
pub trait PageLoader: Debug + Send + Sync {
    /// Sets the limit of bytes of slices in memory.
    fn set_budget(&self, budget: usize);
    /// Memory and loads.
    fn stats(&self) -> PagerStats;
    /// A number that grows when [`PageLoader::load_requested`] has loaded pages.
    fn version(&self) -> u64;
    /// Loads some of the requested pages. Returns whether a picture would show more now. Waits, so a thread calls it
    /// without the store's lock.
    fn load_requested(&self) -> bool;
    /// Whether pages are requested.
    fn has_requests(&self) -> bool;
    /// The arguments with this number; `None` if they are unknown or missing now.
    fn args(&self, number: u32) -> Option<String>;
    /// Memory in use, bytes.
    fn memory_bytes(&self) -> usize;
    /// Starts of the parts of the trace whose pages fit into memory together, ns.
    fn part_starts(&self) -> Vec<i64>;
    /// A warning about pages that cannot be loaded.
    fn damage(&self) -> Option<Warning>;
    /// Reads all pages once, to find damage.
    fn check_all(&self);
}
