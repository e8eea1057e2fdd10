//! Other machines' clocks, laid on the collector's, each with a bound that holds.
//!
//! What is known of a clock are *facts*: at its time `at` the collector's time was at most, or at least, so much. An exchange of four
//! stamps gives two: the question had left before it arrived, and the answer was sent before it came. A message between two machines gives
//! two more ([`Fact::of_message`]). Nothing is assumed of how long messages take, or that both ways take as long.
//!
//! Of clocks it is assumed that they differ in rate by at most [`MAX_DRIFT`], and that the rate changes by at most
//! [`fact::MAX_WANDER`]: quartz in a machine does a tenth of that. Around each *knot*, every [`KNOT_NS`], the facts then are half-planes for
//! the two unknowns (the difference at the knot, the rate there); what they leave is a polygon ([`hull`]), and its lowest and highest
//! difference are bounds in which the truth lies, whatever the delays were. Between knots the bounds are interpolated, and widened by what
//! the wander may do there; beyond the last exchange they widen with the rates that are still possible.

mod fact;
pub mod file;
mod hull;

use fact::wander;
pub use fact::{Exchange, Fact, MAX_DRIFT, Side};
pub use file::ClockFile;
use hull::{Bounds, known_at};

/// Between two knots, ns.
pub const KNOT_NS: i64 = 2_000_000_000;
/// Facts further from a knot say little about it.
const WINDOW_NS: i64 = 4 * KNOT_NS;
/// Facts around a knot that are used, the most telling ones of as many parts of the window.
const FACTS_PER_SIDE: usize = 256;
/// Facts of a side that are kept; of older ones those that say more.
const MAX_FACTS: usize = 1 << 16;

impl Fact {
    /// What a message reports its sender's clock and of its receiver's: it came after it was sent. `None` for what was known before.
    #[must_use]
    pub fn of_message(
        (sender, sent): (&HostClock, i64),
        (receiver, came): (&HostClock, i64),
    ) -> (Option<Fact>, Option<Fact>) {
        let (Some(sent_in), Some(came_in)) = (sender.interval(sent), receiver.interval(came)) else {
            return (None, None);
        };
        let of_sender = (came_in.1 < sent_in.1).then_some(Fact { at: sent, limit: came_in.1, side: Side::Most });
        let of_receiver = (sent_in.0 > came_in.0).then_some(Fact { at: came, limit: sent_in.0, side: Side::Least });
        (of_sender, of_receiver)
    }
}

/// Where a clock's difference was looked for, and within what it lies.
#[derive(Clone, Copy, Debug)]
struct Knot {
    at: i64,
    known: Bounds,
}

/// A clock as far as facts say it.
#[derive(Clone, Debug, Default)]
pub struct HostClock {
    /// In order of `at`.
    least: Vec<Fact>,
    most: Vec<Fact>,
    knots: Vec<Knot>,
    /// Knots at which the facts contradict each other.
    broken: u64,
    /// It is the collector's own.
    is_own: bool,
}

impl HostClock {
    /// The collector's own clock: no difference, and exactly so.
    #[must_use]
    pub fn own() -> HostClock {
        HostClock { is_own: true, ..HostClock::default() }
    }

    /// Whether it is the collector's own.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Takes facts in; [`HostClock::solve`] makes use of them.
    pub fn learn(&mut self, facts: impl IntoIterator<Item = Fact>) {
        for fact in facts {
            let list = if fact.side == Side::Least { &mut self.least } else { &mut self.most };
            let at = list.partition_point(|f| f.at <= fact.at);
            list.insert(at, fact);
            if list.len() > MAX_FACTS {
                thin(list);
            }
        }
    }

    /// Looks at all knots anew that the facts since `from` (a time of the clock) may move.
    pub fn solve(&mut self, from: i64) {
        let (Some(first), Some(last)) = (self.first(), self.last()) else { return };
        let from = from.saturating_sub(WINDOW_NS).max(first);
        // The last knot was at the end of that time: between two regular ones.
        self.knots.retain(|k| k.at < from && (k.at - first) % KNOT_NS == 0);
        let begun = self.knots.last().map_or(first, |k| k.at.saturating_add(KNOT_NS));
        let mut at = begun;
        while at < last {
            self.add_knot(at);
            at = at.saturating_add(KNOT_NS);
        }
        self.add_knot(last);
    }

    fn add_knot(&mut self, at: i64) {
        // Where the clock did not hold still it may have near the knot.
        let mut window = WINDOW_NS;
        while window > KNOT_NS / 64 {
            let (least, most) = (telling(&self.least, at, window), telling(&self.most, at, window));
            if least.is_empty() || most.is_empty() {
                return;
            }
            if let Some(known) = known_at(at, &least, &most) {
                self.knots.push(Knot { at, known });
                self.broken += u64::from(window < WINDOW_NS);
                return;
            }
            window /= 2;
        }
        self.broken += 1;
    }

    /// Its times from which on, and up to which, both sides are known.
    fn first(&self) -> Option<i64> {
        Some(self.least.first()?.at.min(self.most.first()?.at))
    }

    fn last(&self) -> Option<i64> {
        Some(self.least.last()?.at.max(self.most.last()?.at))
    }

    /// Within what the collector's time was, at a time of this clock; `None` where nothing is known of it.
    #[must_use]
    pub fn interval(&self, at: i64) -> Option<(i64, i64)> {
        if self.is_own {
            return Some((at, at));
        }
        let next = self.knots.partition_point(|k| k.at <= at);
        let (before, after) = (next.checked_sub(1).and_then(|n| self.knots.get(n)), self.knots.get(next));
        let (low, high) = match (before, after) {
            (Some(a), Some(b)) => {
                let run = (b.at - a.at) as f64;
                let part = (at - a.at) as f64 / run;
                let bend = wander(run) / 4.0;
                let between = |x: f64, y: f64| x + (y - x) * part;
                let (low, high) =
                    (between(a.known.least, b.known.least) - bend, between(a.known.most, b.known.most) + bend);
                let reached = [a, b].map(|k| k.known.reaching((at - k.at) as f64));
                let (low, high) = reached.iter().fold((low, high), |(l, h), r| (l.max(r.0), h.min(r.1)));
                // Rounding may cross them where they are one.
                if low <= high {
                    (low, high)
                } else {
                    (a.known.least.min(b.known.least), a.known.most.max(b.known.most))
                }
            }
            (Some(k), None) | (None, Some(k)) => k.known.reaching((at - k.at) as f64),
            (None, None) => return None,
        };
        Some((at.saturating_add((low - 1.0).floor() as i64), at.saturating_add((high + 1.0).ceil() as i64)))
    }

    /// Knots as pairs of this clock's time and the collector's, in the middle of what is possible.
    pub fn middles(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.knots.iter().map(|k| (k.at, k.at.saturating_add(k.known.middle().round() as i64)))
    }

    /// The times of all knots.
    pub fn knots(&self) -> impl Iterator<Item = i64> + '_ {
        self.knots.iter().map(|k| k.at)
    }

    /// Knots at which facts contradict each other within the usual window: the clock jumped, or its rate changed faster than assumed.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.broken
    }

    /// How much faster it runs than the collector's, parts per billion.
    #[must_use]
    pub fn drift_ppb(&self) -> f64 {
        let rates = self.knots.iter().map(|k| -k.known.rate() * 1e9);
        if self.knots.is_empty() { 0.0 } else { rates.sum::<f64>() / self.knots.len() as f64 }
    }
}

/// One line for all of a clock's times: difference to the other's (ns to add) and its change.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    at: i64,
    known: Bounds,
}

impl Line {
    /// The middle of what facts leave possible, drawn through the time `at`; `None` where they contradict each other.
    pub fn through(at: i64, least: &[Fact], most: &[Fact]) -> Option<Line> {
        known_at(at, least, most).map(|known| Line { at, known })
    }

    /// ns to add at a time.
    pub fn difference(&self, time: i64) -> i64 {
        (self.known.middle() + self.known.rate() * (time - self.at) as f64).round() as i64
    }

    /// By how many ns a difference may be wrong at a time, at most.
    pub fn error(&self, difference: i64, time: i64) -> i64 {
        let (least, most) = self.known.reaching((time - self.at) as f64);
        let difference = difference as f64;
        (most - difference).max(difference - least).ceil() as i64 + 1
    }

    /// Its change in a billion ns.
    pub fn rate_ppb(&self) -> i64 {
        (self.known.rate() * 1e9).round() as i64
    }
}

/// Of each two of the older half keeps the one that says more.
fn thin(facts: &mut Vec<Fact>) {
    let newer = facts.split_off(facts.len() / 2);
    let more_telling = |pair: &[Fact]| pair.iter().max_by_key(|f| tightness(f)).copied();
    *facts = facts.chunks(2).filter_map(more_telling).chain(newer).collect();
}

/// Among facts of one side at about the same time, the larger the more it says.
fn tightness(fact: &Fact) -> i64 {
    let difference = fact.limit.saturating_sub(fact.at);
    if fact.side == Side::Least { difference } else { difference.saturating_neg() }
}

/// Of the facts within `window` of `at` the most telling of each of [`FACTS_PER_SIDE`] parts.
fn telling(facts: &[Fact], at: i64, window: i64) -> Vec<Fact> {
    let from = facts.partition_point(|f| f.at < at.saturating_sub(window));
    let to = facts.partition_point(|f| f.at <= at.saturating_add(window));
    let near = &facts[from..to];
    let part = near.len().div_ceil(FACTS_PER_SIDE).max(1);
    near.chunks(part).filter_map(|facts| facts.iter().max_by_key(|f| tightness(f)).copied()).collect()
}

#[cfg(test)]
mod tests;
