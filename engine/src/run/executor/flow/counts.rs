//! What a node of an iteration waits for, in one word: the lock-free part of the executor.
//!
//! ```text
//! ordinary node  | dead: bit 31 | arrivals that are missing                                     |
//! Merge          | claimed: 31  | dead values: 16..31 | 2 x missing control edges, 1..16 | no live value yet: 0 |
//! ```
//!
//! An ordinary node is ready when nothing is missing, and dead when one of its inputs is. A `Merge` is ready with the
//! first live value once no control edge is missing, and dead when all its values are. Whoever completes a node
//! with its arrival, and only they, make it ready. `tests/flow_model.rs` tries all interleavings. `SHARED`: others
//! arrive at the same time; without, plain loads and stores do.

use super::merge;
use super::sync::{AtomicU32, Ordering};

/// An ordinary node will be dead.
const DEAD: u32 = 1 << 31;

/// Replaces the word; gives the old one.
#[inline(always)]
fn update<const SHARED: bool>(word: &AtomicU32, shared: impl Fn(&AtomicU32) -> u32, alone: impl Fn(u32) -> u32) -> u32 {
    if SHARED {
        return shared(word);
    }
    let old = word.load(Ordering::Relaxed);
    word.store(alone(old), Ordering::Relaxed);
    old
}

/// One arrival at an ordinary node. Whether the node is ready now, and if so whether it is dead.
///
/// Release: the value that this thread put into a slot. Acquire: the values that others put.
#[inline(always)]
pub(crate) fn arrive<const SHARED: bool>(word: &AtomicU32, is_dead: bool) -> Option<bool> {
    if is_dead {
        update::<SHARED>(word, |word| word.fetch_or(DEAD, Ordering::Relaxed), |old| old | DEAD);
    }
    let old = update::<SHARED>(word, |word| word.fetch_sub(1, Ordering::AcqRel), |old| old - 1);
    (old & !DEAD == 1).then_some(old & DEAD != 0)
}

/// A live value is about to be put into a slot of a `Merge`. Whether it is the first: others are dropped.
#[inline(always)]
pub(crate) fn claim<const SHARED: bool>(word: &AtomicU32) -> bool {
    let old =
        update::<SHARED>(word, |word| word.fetch_or(merge::CLAIMED, Ordering::Relaxed), |old| old | merge::CLAIMED);
    old & merge::CLAIMED == 0
}

/// The claimed value is in its slot. Whether the `Merge` is ready now.
#[inline(always)]
pub(crate) fn arrive_live<const SHARED: bool>(word: &AtomicU32) -> bool {
    let old =
        update::<SHARED>(word, |word| word.fetch_and(!merge::NO_LIVE, Ordering::AcqRel), |old| old & !merge::NO_LIVE);
    old & (merge::CONTROL_MASK | merge::NO_LIVE) == merge::NO_LIVE
}

/// `n` of a `Merge`'s `n_inputs` values are dead. Whether it is ready now: dead.
#[inline(always)]
pub(crate) fn arrive_dead<const SHARED: bool>(word: &AtomicU32, n: u32, n_inputs: u32) -> bool {
    let by = n * merge::DEAD;
    let old = update::<SHARED>(word, |word| word.fetch_add(by, Ordering::AcqRel), |old| old + by);
    let is_last = merge::n_dead(old) < n_inputs && merge::n_dead(old) + n >= n_inputs;
    is_last && old & (merge::CONTROL_MASK | merge::NO_LIVE) == merge::NO_LIVE
}

/// A control edge of a `Merge`. Whether it is ready now, and if so whether it is dead.
#[inline(always)]
pub(crate) fn arrive_control<const SHARED: bool>(word: &AtomicU32, n_inputs: u32) -> Option<bool> {
    let old =
        update::<SHARED>(word, |word| word.fetch_sub(merge::CONTROL, Ordering::AcqRel), |old| old - merge::CONTROL);
    if old & merge::CONTROL_MASK != merge::CONTROL {
        return None;
    }
    match (old & merge::NO_LIVE == 0, merge::n_dead(old) >= n_inputs) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    }
}

/// Adds to what keeps an iteration. Whether nothing does any more.
#[inline(always)]
pub(crate) fn hold<const SHARED: bool>(word: &AtomicU32, by: i32) -> bool {
    if by == 0 {
        return false;
    }
    let old =
        update::<SHARED>(word, |word| word.fetch_add(by as u32, Ordering::AcqRel), |old| old.wrapping_add(by as u32));
    old.wrapping_add(by as u32) == 0
}
