//! Converts ticks to nanoseconds while clock anchors still arrive.
//!
//! [`TicksToNs`] is a line through the anchors so far. Each new anchor bends the line by some tens of nanoseconds, also
//! where times were converted before, so that consecutive slices without a gap would overlap by that much. Conversions
//! of [`SteadyClock`] are final instead: a new anchor bends the line only after the last converted time, and gradually,
//! over a second. The line is continuous and never decreases. A finished trace has all anchors from the start, and its
//! line is not bent.

use events::{Anchor, TicksToNs};

/// A point of the line and the slope from it on, ns per tick in 32.32 fixed point.
#[derive(Clone, Copy, Debug)]
struct Knot {
    tick: u64,
    ns: i64,
    slope: u64,
}

/// A time further than this after the last anchor, ns, is damage, and does not make the line final up to it.
const MAX_EXTRAPOLATION_NS: f64 = 60e9;

/// Converts ticks to ns by a line of which the part that was used does not change any more.
#[derive(Debug, Default)]
pub(crate) struct SteadyClock {
    line: TicksToNs,
    knots: Vec<Knot>,
    /// Largest tick that was converted: up to here the line is final.
    last_final_tick: Option<u64>,
    /// Knot of the last conversion, which is usually that of the next one too.
    last_knot_idx: usize,
    /// Conversions of larger ticks do not make the line final.
    max_final_tick: u64,
}

impl SteadyClock {
    /// Adds anchors in the order of the meta file.
    pub(crate) fn extend(&mut self, anchors: impl Iterator<Item = Anchor>) {
        let n_before = self.line.anchors().len();
        for anchor in anchors {
            self.line.push(anchor);
        }
        if self.line.anchors().len() > n_before {
            self.rebuild_knots();
        }
    }

    /// Whether the rate is known.
    pub(crate) fn is_ready(&self) -> bool {
        self.line.anchors().len() >= 2
    }

    /// Number of anchors.
    pub(crate) fn n_anchors(&self) -> usize {
        self.line.anchors().len()
    }

    /// CLOCK_MONOTONIC_RAW of the first anchor.
    pub(crate) fn first_ns(&self) -> Option<i64> {
        self.line.anchors().first().map(|a| a.mono_ns)
    }

    /// Mean rate at the last anchors, ns per tick.
    pub(crate) fn ns_per_tick(&self) -> f64 {
        const RUN_TICKS: u64 = 1 << 32;
        let last = self.line.anchors().last().map_or(0, |a| a.ticks);
        let rise_ns = self.line.ns(last.saturating_add(RUN_TICKS)).saturating_sub(self.line.ns(last));
        (rise_ns as f64 / RUN_TICKS as f64).max(1e-6)
    }

    /// The length of a second, ticks.
    fn second_ticks(&self) -> u64 {
        (1e9 / self.ns_per_tick()) as u64
    }

    /// Replaces the line after the last converted time by one through all anchors there.
    fn rebuild_knots(&mut self) {
        let second = self.second_ticks();
        let mut points: Vec<(u64, i64)> = Vec::new();
        let mut bend_end = 0;
        if let Some(tick) = self.last_final_tick {
            bend_end = tick.saturating_add(second);
            points.extend([(tick, self.provisional_ns(tick)), (bend_end, self.line.ns(bend_end))]);
        }
        self.knots.retain(|k| self.last_final_tick.is_some_and(|tick| k.tick <= tick));
        let anchors = self.line.anchors().iter().filter(|a| a.ticks >= bend_end);
        points.extend(anchors.map(|a| (a.ticks, a.mono_ns)));
        if let Some((last, _)) = points.last().copied() {
            let line_end = last.saturating_add(second);
            points.push((line_end, self.line.ns(line_end)));
            let last_anchor = self.line.anchors().last().map_or(0, |a| a.ticks);
            self.max_final_tick = last_anchor.saturating_add((MAX_EXTRAPOLATION_NS / self.ns_per_tick()) as u64);
        }
        let mut line_ns = i64::MIN;
        for pair in points.windows(2) {
            let ((tick, ns), (next_tick, next_ns)) = (pair[0], pair[1]);
            // Where the line is ahead of the next point, it stays level: time never goes back.
            line_ns = line_ns.max(ns);
            let run = u128::from(next_tick.saturating_sub(tick)).max(1);
            let slope = (u128::from(next_ns.max(line_ns).abs_diff(line_ns)) << 32) / run;
            self.knots.push(Knot { tick, ns: line_ns, slope: u64::try_from(slope).unwrap_or(u64::MAX) });
        }
        self.last_knot_idx = 0;
    }

    /// Converts a tick; the conversion is final.
    pub(crate) fn ns(&mut self, tick: u64) -> i64 {
        if tick <= self.max_final_tick && self.last_final_tick.is_none_or(|t| t < tick) {
            self.last_final_tick = Some(tick);
        }
        let is_same_knot = self.knots.get(self.last_knot_idx).is_some_and(|k| k.tick <= tick)
            && self.knots.get(self.last_knot_idx + 1).is_none_or(|k| tick < k.tick);
        if !is_same_knot {
            self.last_knot_idx = self.knots.partition_point(|k| k.tick <= tick).saturating_sub(1);
        }
        self.ns_from_knot(self.last_knot_idx, tick)
    }

    /// Converts a tick; a later anchor may change the conversion.
    pub(crate) fn provisional_ns(&self, tick: u64) -> i64 {
        self.ns_from_knot(self.knots.partition_point(|k| k.tick <= tick).saturating_sub(1), tick)
    }

    /// Converts a tick by the part of the line that begins at a knot.
    fn ns_from_knot(&self, knot_idx: usize, tick: u64) -> i64 {
        let Some(knot) = self.knots.get(knot_idx) else { return self.line.ns(tick) };
        let distance_ns = (u128::from(tick.abs_diff(knot.tick)) * u128::from(knot.slope)) >> 32;
        let distance_ns = i64::try_from(distance_ns).unwrap_or(i64::MAX);
        if tick >= knot.tick { knot.ns.saturating_add(distance_ns) } else { knot.ns.saturating_sub(distance_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn anchor(ticks: u64, mono_ns: i64) -> Anchor {
        Anchor { ticks, mono_ns, real_ns: 0 }
    }

    #[test]
    fn a_finished_trace_is_on_the_line() {
        let mut clock = SteadyClock::default();
        clock.extend(
            [anchor(1_000, 5_000), anchor(3_000_001_000, 1_000_005_100), anchor(6_000_001_000, 2_000_004_900)]
                .into_iter(),
        );
        for tick in [1_000, 2_000, 1_500_000_000, 3_000_001_000, 6_000_001_000, 9_000_000_000] {
            assert!((clock.ns(tick) - clock.line.ns(tick)).abs() <= 1, "{tick}");
        }
    }

    proptest! {
        #[test]
        fn given_out_times_stay_and_never_decrease(
            jitter in prop::collection::vec(-80i64..80, 2..12),
            steps in prop::collection::vec(1u64..900_000_000, 1..60),
        ) {
            // 3 ticks to a ns; an anchor each second with an error; conversions between the anchors' arrivals.
            let mut clock = SteadyClock::default();
            clock.extend([anchor(0, 0), anchor(30_000_000, 10_000_000 + jitter[0])].into_iter());
            let (mut conversions, mut tick, mut next) = (Vec::new(), 0u64, 1usize);
            for step in steps {
                tick += step;
                while next < jitter.len() && next as u64 * 3_000_000_000 < tick {
                    let mono_ns = next as i64 * 1_000_000_000 + jitter[next];
                    clock.extend(std::iter::once(anchor(next as u64 * 3_000_000_000, mono_ns)));
                    next += 1;
                }
                conversions.push((tick, clock.ns(tick)));
            }
            for (tick, ns) in &conversions {
                prop_assert_eq!(clock.ns(*tick), *ns);
                // 80 ns over the first 10 ms are 8 ppm; over a second of catching up 8 us, then it is on the line.
                prop_assert!((ns - *tick as i64 / 3).abs() < 30_000, "{} {}", tick, ns);
            }
            prop_assert!(conversions.windows(2).all(|p| p[0].1 <= p[1].1));
        }

        #[test]
        fn any_anchors_and_ticks_keep_the_order(
            anchors in prop::collection::vec((any::<u64>(), any::<i64>()), 0..6),
            mut ticks in prop::collection::vec(any::<u64>(), 2..20),
        ) {
            let mut clock = SteadyClock::default();
            clock.extend(anchors.into_iter().map(|(ticks, ns)| anchor(ticks, ns)));
            ticks.sort_unstable();
            let ns: Vec<i64> = ticks.iter().map(|t| clock.ns(*t)).collect();
            prop_assert!(ns.windows(2).all(|p| p[0] <= p[1]));
        }
    }
}
