//! Facts about a clock: bounds of the collector's time, from exchanges of stamps.

/// The largest assumed difference of two clocks' rates: 0.1 %.
pub const MAX_DRIFT: f64 = 1e-3;
/// The largest assumed change of a rate in a second: 0.1 parts per million.
pub(super) const MAX_WANDER_PER_S: f64 = 1e-7;

/// The four stamps of a request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The other clock when the request was sent, ns.
    pub request_sent: i64,
    /// The collector's clock when the request was received, ns.
    pub request_received: i64,
    /// The collector's clock when the response was sent, ns.
    pub response_sent: i64,
    /// The other clock when the response was received, ns.
    pub response_received: i64,
}

impl Exchange {
    /// Whether neither clock went backwards during the exchange. If one did, the exchange proves nothing.
    #[must_use]
    pub fn is_monotonic(&self) -> bool {
        self.request_sent <= self.response_received && self.request_received <= self.response_sent
    }

    /// The two facts that the exchange proves.
    #[must_use]
    pub fn facts(&self) -> [Fact; 2] {
        [
            Fact { at: self.request_sent, limit: self.request_received, kind: BoundKind::Upper },
            Fact { at: self.response_received, limit: self.response_sent, kind: BoundKind::Lower },
        ]
    }
}

/// The direction of a [`Fact`]'s bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundKind {
    /// The collector's time was not before the limit.
    Lower,
    /// The collector's time was not after the limit.
    Upper,
}

/// A bound: when the clock showed `at`, the collector's clock showed at least, or at most, `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The clock's time, ns.
    pub at: i64,
    /// The collector's time, ns.
    pub limit: i64,
    /// Whether `limit` is a lower or an upper bound.
    pub kind: BoundKind,
}

/// The farthest that a clock can deviate from a straight line within `ns`, in ns: the largest change of rate,
/// integrated twice.
pub(super) fn wander(ns: f64) -> f64 {
    0.5 * MAX_WANDER_PER_S * 1e-9 * ns * ns
}
