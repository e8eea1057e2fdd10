//! The possible differences and rates of a clock at one time, given the facts: a convex polygon over (difference,
//! rate).

use super::fact::{BoundKind, Fact, MAX_DRIFT, wander};

/// Bounds at one time of a clock's difference to the collector's (ns to add), and of the difference's rate (ns per ns).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) least: f64,
    pub(super) most: f64,
    slowest: f64,
    fastest: f64,
}

impl Bounds {
    pub(super) fn middle(&self) -> f64 {
        f64::midpoint(self.least, self.most)
    }

    pub(super) fn rate(&self) -> f64 {
        f64::midpoint(self.slowest, self.fastest)
    }

    /// The smallest and largest difference `away` ns later, or earlier if negative.
    pub(super) fn at_distance(&self, away: f64) -> (f64, f64) {
        let (slow, fast) = (self.slowest * away, self.fastest * away);
        (self.least + slow.min(fast) - wander(away), self.most + slow.max(fast) + wander(away))
    }
}

/// A corner of the polygon: difference less `base`, rate.
type Corner = (f64, f64);

/// The bounds at the time `at` that follow from the facts; `None` if they contradict each other, or one side has none.
pub(super) fn bounds_at(at: i64, least: &[Fact], most: &[Fact]) -> Option<Bounds> {
    let nearest = least.iter().min_by_key(|f| f.at.abs_diff(at))?;
    // Relative to `base` the numbers are small enough for an exact f64.
    let base = nearest.limit.checked_sub(nearest.at)?;
    // The line `difference + rate * away = limit` that bounds the half-plane of a fact.
    let half_plane = |fact: &Fact| {
        let away = fact.at.saturating_sub(at) as f64;
        let limit = i128::from(fact.limit) - i128::from(fact.at) - i128::from(base);
        let slack = if fact.kind == BoundKind::Upper { wander(away) } else { -wander(away) };
        (away, limit as f64 + slack)
    };
    let loosest = |(away, limit): (f64, f64), sign: f64| limit + sign * MAX_DRIFT * away.abs();
    let low = least.iter().map(|f| loosest(half_plane(f), -1.0)).fold(f64::NEG_INFINITY, f64::max);
    let high = most.iter().map(|f| loosest(half_plane(f), 1.0)).fold(f64::INFINITY, f64::min);
    if !(low.is_finite() && high.is_finite() && low <= high) {
        return None;
    }
    let mut corners = vec![(low, -MAX_DRIFT), (high, -MAX_DRIFT), (high, MAX_DRIFT), (low, MAX_DRIFT)];
    let mut clipped = Vec::new();
    for fact in least.iter().chain(most) {
        let (away, limit) = half_plane(fact);
        let sign = if fact.kind == BoundKind::Upper { 1.0 } else { -1.0 };
        clip(&corners, &mut clipped, |(difference, rate)| sign * (limit - difference - rate * away));
        std::mem::swap(&mut corners, &mut clipped);
        if corners.is_empty() {
            return None;
        }
    }
    let range = |value: fn(&Corner) -> f64| {
        let values = corners.iter().map(value);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let ((low, high), (slowest, fastest)) = (range(|c| c.0), range(|c| c.1));
    Some(Bounds { least: base as f64 + low, most: base as f64 + high, slowest, fastest })
}

/// Clips a convex polygon to the part in which the linear function `depth_at` is not negative.
fn clip(corners: &[Corner], out: &mut Vec<Corner>, depth_at: impl Fn(Corner) -> f64) {
    out.clear();
    let Some(last) = corners.last() else { return };
    let (mut from, mut depth) = (*last, depth_at(*last));
    for &to in corners {
        let next_depth = depth_at(to);
        if (depth >= 0.0) != (next_depth >= 0.0) {
            let part = depth / (depth - next_depth);
            out.push((from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part));
        }
        if next_depth >= 0.0 {
            out.push(to);
        }
        (from, depth) = (to, next_depth);
    }
}
