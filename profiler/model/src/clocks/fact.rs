//! Facts about a clock: bounds of the collector's time, from exchanges of stamps.

/// The largest assumed difference of two clocks' rates: 0.1 %.
pub const MAX_DRIFT: f64 = 1e-3;
/// The largest assumed change of a rate in a second: 0.1 parts per million.
pub(super) const MAX_WANDER: f64 = 1e-7;

/// The four stamps of a request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The other clock when the request was sent, ns.
    pub asked: i64,
    /// The collector's clock when the request was received, ns.
    pub received: i64,
    /// The collector's clock when the response was sent, ns.
    pub sent: i64,
    /// The other clock when the response was received, ns.
    pub answered: i64,
}

impl Exchange {
    /// Whether time did not go backwards on either side; an exchange where it did proves nothing.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.asked <= self.answered && self.received <= self.sent
    }

    /// The two facts that the exchange proves.
    #[must_use]
    pub fn facts(&self) -> [Fact; 2] {
        [
            Fact { at: self.asked, limit: self.received, side: Side::Most },
            Fact { at: self.answered, limit: self.sent, side: Side::Least },
        ]
    }
}

/// The direction of a [`Fact`]'s bound.
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
    /// Whether `limit` is a lower or an upper bound.
    pub side: Side,
}

/// How far a clock may deviate from a straight line within `ns`, in ns: the integral of the largest change of rate.
pub(super) fn wander(ns: f64) -> f64 {
    0.5 * MAX_WANDER * 1e-9 * ns * ns
}
