//! Converts times of other machines' clocks to the collector's clock, with guaranteed error bounds.
//!
//! A *fact* about a clock says that at its time `at` the collector's time was at most, or at least, `limit`. An
//! exchange of four stamps proves two facts: the request and the response were each sent before they were received. A
//! message between two machines proves two more ([`Fact::from_message`]). Nothing is assumed of delays, not even that
//! both directions are alike.
//!
//! It is assumed that clocks differ in rate by at most [`MAX_DRIFT`], and that the rate changes by at most
//! [`fact::MAX_WANDER_PER_S`]; the quartz of a machine does a tenth of that. At each *knot*, every [`KNOT_NS`], the facts
//! nearby are half-planes for two unknowns: the difference of the clocks and their rate at the knot. Their intersection
//! is a polygon ([`bounds`]); its smallest and largest difference bound the true one for any delays. Between knots the
//! bounds are interpolated, and widened by the wander that is possible there; after the last exchange they widen with
//! the possible rates.

mod bounds;
mod fact;
pub mod file;

use bounds::{Bounds, bounds_at};
use fact::wander;
pub use fact::{BoundKind, Exchange, Fact, MAX_DRIFT};
pub use file::ClockFile;

/// Time between two knots, ns.
pub const KNOT_NS: i64 = 2_000_000_000;
/// Only facts this near to a knot are used, ns: others hardly tighten its bounds.
const WINDOW_NS: i64 = 4 * KNOT_NS;
/// The shortest window in which consistent facts are searched for, ns.
const MIN_WINDOW_NS: i64 = KNOT_NS / 64;
/// The most facts of a side that a knot uses: the tightest of each of as many parts of the window.
const FACTS_PER_SIDE: usize = 256;
/// The most facts of a side that are stored; beyond that, the looser half of the older facts is removed.
const MAX_FACTS: usize = 1 << 16;

impl Fact {
    /// The facts that a message proves of its sender's and of its receiver's clock: it was received after it was sent.
    /// `None` for a fact that is no tighter than the known bounds.
    #[must_use]
    pub fn from_message(
        (sender, sent): (&HostClock, i64),
        (receiver, received): (&HostClock, i64),
    ) -> (Option<Fact>, Option<Fact>) {
        let (Some(send), Some(receipt)) = (sender.interval(sent), receiver.interval(received)) else {
            return (None, None);
        };
        let of_sender = (receipt.1 < send.1).then_some(Fact { at: sent, limit: receipt.1, kind: BoundKind::Upper });
        let of_receiver = (send.0 > receipt.0).then_some(Fact { at: received, limit: send.0, kind: BoundKind::Lower });
        (of_sender, of_receiver)
    }
}

/// A time at which the bounds of a clock's difference are known.
#[derive(Clone, Copy, Debug)]
struct Knot {
    at: i64,
    bounds: Bounds,
}

/// A clock, and its difference to the collector's as far as the facts bound it.
#[derive(Clone, Debug, Default)]
pub struct HostClock {
    /// Facts of each side, in order of `at`.
    least: Vec<Fact>,
    most: Vec<Fact>,
    knots: Vec<Knot>,
    /// The number of knots at which the facts contradict each other.
    n_contradictions: u64,
    /// Whether this is the collector's clock.
    is_collector: bool,
}

impl HostClock {
    /// The collector's clock, whose difference is exactly 0.
    #[must_use]
    pub fn of_this_host() -> HostClock {
        HostClock { is_collector: true, ..HostClock::default() }
    }

    /// Whether this is the collector's clock.
    #[must_use]
    pub fn is_collector(&self) -> bool {
        self.is_collector
    }

    /// Adds facts for the next [`HostClock::solve`].
    pub fn add_facts(&mut self, facts: impl IntoIterator<Item = Fact>) {
        for fact in facts {
            let list = if fact.kind == BoundKind::Lower { &mut self.least } else { &mut self.most };
            let position = list.partition_point(|f| f.at <= fact.at);
            list.insert(position, fact);
            if list.len() > MAX_FACTS {
                thin(list);
            }
        }
    }

    /// Recomputes all knots that facts since `from`, a time of the clock, may change.
    pub fn solve(&mut self, from: i64) {
        let (Some(first), Some(last)) = (self.first(), self.last()) else { return };
        let from = from.saturating_sub(WINDOW_NS).max(first);
        // The last knot was at the then last fact, between two regular knots, and is replaced.
        self.knots.retain(|k| k.at < from && (k.at - first) % KNOT_NS == 0);
        let mut at = self.knots.last().map_or(first, |k| k.at.saturating_add(KNOT_NS));
        while at < last {
            self.add_knot(at);
            at = at.saturating_add(KNOT_NS);
        }
        self.add_knot(last);
    }

    fn add_knot(&mut self, at: i64) {
        // Where the facts contradict each other, because the clock jumped, those near the knot may be consistent.
        let mut window = WINDOW_NS;
        while window > MIN_WINDOW_NS {
            let (least, most) = (tightest(&self.least, at, window), tightest(&self.most, at, window));
            if least.is_empty() || most.is_empty() {
                return;
            }
            if let Some(bounds) = bounds_at(at, &least, &most) {
                self.knots.push(Knot { at, bounds });
                self.n_contradictions += u64::from(window < WINDOW_NS);
                return;
            }
            window /= 2;
        }
        self.n_contradictions += 1;
    }

    /// The clock's time of the first fact; `None` if a side has none.
    fn first(&self) -> Option<i64> {
        Some(self.least.first()?.at.min(self.most.first()?.at))
    }

    /// The clock's time of the last fact; `None` if a side has none.
    fn last(&self) -> Option<i64> {
        Some(self.least.last()?.at.max(self.most.last()?.at))
    }

    /// Bounds of the collector's time at a time of this clock; `None` if there is no knot.
    #[must_use]
    pub fn interval(&self, at: i64) -> Option<(i64, i64)> {
        if self.is_collector {
            return Some((at, at));
        }
        let next = self.knots.partition_point(|k| k.at <= at);
        let (before, after) = (next.checked_sub(1).and_then(|n| self.knots.get(n)), self.knots.get(next));
        let (low, high) = match (before, after) {
            (Some(a), Some(b)) => {
                let run = (b.at - a.at) as f64;
                let part = (at - a.at) as f64 / run;
                let bend = wander(run) / 4.0;
                let interpolate = |x: f64, y: f64| x + (y - x) * part;
                let (low, high) = (
                    interpolate(a.bounds.least, b.bounds.least) - bend,
                    interpolate(a.bounds.most, b.bounds.most) + bend,
                );
                let reached = [a, b].map(|k| k.bounds.at_distance((at - k.at) as f64));
                let (low, high) = reached.iter().fold((low, high), |(l, h), r| (l.max(r.0), h.min(r.1)));
                // Rounding may make the lower bound the larger one if they are equal.
                if low <= high {
                    (low, high)
                } else {
                    (a.bounds.least.min(b.bounds.least), a.bounds.most.max(b.bounds.most))
                }
            }
            (Some(k), None) | (None, Some(k)) => k.bounds.at_distance((at - k.at) as f64),
            (None, None) => return None,
        };
        Some((at.saturating_add((low - 1.0).floor() as i64), at.saturating_add((high + 1.0).ceil() as i64)))
    }

    /// The knots as pairs of this clock's time and the collector's time, the latter in the middle of its bounds.
    pub fn midpoints(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.knots.iter().map(|k| (k.at, k.at.saturating_add(k.bounds.middle().round() as i64)))
    }

    /// The times of all knots.
    pub fn knots(&self) -> impl Iterator<Item = i64> + '_ {
        self.knots.iter().map(|k| k.at)
    }

    /// The number of knots at which facts contradict each other within the usual window: the clock jumped, or its rate
    /// changed faster than assumed.
    #[must_use]
    pub fn n_contradictions(&self) -> u64 {
        self.n_contradictions
    }

    /// How much faster the clock runs than the collector's, parts per billion.
    #[must_use]
    pub fn drift_ppb(&self) -> f64 {
        let rates = self.knots.iter().map(|k| -k.bounds.rate() * 1e9);
        if self.knots.is_empty() { 0.0 } else { rates.sum::<f64>() / self.knots.len() as f64 }
    }
}

/// A straight line for all times of a clock: difference to the other clock (ns to add), and rate.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    at: i64,
    bounds: Bounds,
}

impl Line {
    /// The line in the middle of the bounds at the time `at`; `None` if the facts contradict each other.
    pub fn feasible(at: i64, least: &[Fact], most: &[Fact]) -> Option<Line> {
        bounds_at(at, least, most).map(|bounds| Line { at, bounds })
    }

    /// The difference at a time, ns to add.
    pub fn difference(&self, time: i64) -> i64 {
        (self.bounds.middle() + self.bounds.rate() * (time - self.at) as f64).round() as i64
    }

    /// The largest possible error of a difference at a time, ns.
    pub fn error(&self, difference: i64, time: i64) -> i64 {
        let (least, most) = self.bounds.at_distance((time - self.at) as f64);
        let difference = difference as f64;
        (most - difference).max(difference - least).ceil() as i64 + 1
    }

    /// The change of the difference, ns per second.
    pub fn rate_ppb(&self) -> i64 {
        (self.bounds.rate() * 1e9).round() as i64
    }
}

/// Retains the tighter fact of each pair in the older half.
fn thin(facts: &mut Vec<Fact>) {
    let newer = facts.split_off(facts.len() / 2);
    let tighter = |pair: &[Fact]| pair.iter().max_by_key(|f| tightness(f)).copied();
    *facts = facts.chunks(2).filter_map(tighter).chain(newer).collect();
}

/// How tight a fact is: comparable for facts of one side at about the same time.
fn tightness(fact: &Fact) -> i64 {
    let difference = fact.limit.saturating_sub(fact.at);
    if fact.kind == BoundKind::Lower { difference } else { difference.saturating_neg() }
}

/// Divides the facts within `window` of `at` into [`FACTS_PER_SIDE`] parts, and returns the tightest fact of each part.
fn tightest(facts: &[Fact], at: i64, window: i64) -> Vec<Fact> {
    let begin = facts.partition_point(|f| f.at < at.saturating_sub(window));
    let end = facts.partition_point(|f| f.at <= at.saturating_add(window));
    let near = &facts[begin..end];
    let part_len = near.len().div_ceil(FACTS_PER_SIDE).max(1);
    near.chunks(part_len).filter_map(|facts| facts.iter().max_by_key(|f| tightness(f)).copied()).collect()
}

#[cfg(test)]
mod tests;
