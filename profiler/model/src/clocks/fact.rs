//! What is known of a clock: facts, from exchanges of stamps.

/// The largest difference of two clocks' rates: 0.1 %.
pub const MAX_DRIFT: f64 = 1e-3;
/// By how much the rate may change in a second: 0.1 parts per million.
pub(super) const MAX_WANDER: f64 = 1e-7;

/// Four stamps: a question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The other's clock when it asked, ns.
    pub asked: i64,
    /// The collector's clock when the question had come, ns.
    pub received: i64,
    /// The collector's clock when it answered, ns.
    pub sent: i64,
    /// The other's clock when the answer had come, ns.
    pub answered: i64,
}

impl Exchange {
    /// Whether time went forwards on both sides: anything else says nothing.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.asked <= self.answered && self.received <= self.sent
    }

    /// What it says.
    #[must_use]
    pub fn facts(&self) -> [Fact; 2] {
        [
            Fact { at: self.asked, limit: self.received, side: Side::Most },
            Fact { at: self.answered, limit: self.sent, side: Side::Least },
        ]
    }
}

/// Which way a [`Fact`] bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The collector's time was not before the limit.
    Least,
    /// The collector's time was not after the limit.
    Most,
}

/// At a clock's time `at` the collector's time was at least, or at most, `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The clock's time, ns.
    pub at: i64,
    /// The collector's time, ns.
    pub limit: i64,
    /// Which way.
    pub side: Side,
}

/// How far a clock may wander off a line in so many ns.
pub(super) fn wander(ns: f64) -> f64 {
    0.5 * MAX_WANDER * 1e-9 * ns * ns
}
