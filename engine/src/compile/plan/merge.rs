//! The parts of the word in which a `Merge` counts what it waits for; plans have its initial value, executors count.

/// No live value has arrived.
pub const NO_LIVE: u32 = 1;
/// A control edge that is missing.
pub const CONTROL: u32 = 2;
/// Where those are counted.
pub const CONTROL_MASK: u32 = 0xfffe;
/// A dead value.
pub const DEAD: u32 = 1 << 16;
/// A live value is there or on its way.
pub const CLAIMED: u32 = 1 << 31;
/// More inputs or control edges than this cannot be counted.
pub const MAX_EDGES: usize = 1 << 13;

/// The dead values that came.
pub fn n_dead(word: u32) -> u32 {
    (word & !CLAIMED) >> 16
}
