//! The ruler: positions and labels of ticks.
//!
//! Steps are 1, 2 or 5 times a power of ten ns, so that a tick is always on a whole ns. All labels of a view use one
//! unit and as many decimals as their step needs; positions count from the trace's origin.

use super::viewport::{Scale, Viewport};
use std::ops::Range;

/// A tick of the ruler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// ns from the trace's origin.
    pub time: i64,
    pub has_label: bool,
}

/// The ticks of a view, and their step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruler {
    /// Distance of labelled ticks, ns.
    pub step: i64,
    pub ticks: Vec<Tick>,
}

/// Least distance of labelled ticks, points.
const LABEL_PX: f32 = 96.0;

/// The ticks of `view` at this scale; at most a few hundred.
pub fn ruler(view: Viewport, scale: &Scale) -> Ruler {
    let step = nice_step(scale.ns_of_px(LABEL_PX));
    let minor = minor_step(step);
    let first = view.start.div_euclid(minor).saturating_mul(minor);
    let n = (view.ns() / minor).clamp(0, 4000) + 2;
    let ticks = (0..n)
        .filter_map(|i| first.checked_add(i.checked_mul(minor)?))
        .filter(|time| (view.start..view.end).contains(time))
        .map(|time| Tick { time, has_label: time.rem_euclid(step) == 0 })
        .collect();
    Ruler { step, ticks }
}

/// The smallest 1, 2 or 5 times a power of ten that is at least `ns`.
fn nice_step(ns: i64) -> i64 {
    let mut power = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= ns || step == i64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The distance of all ticks, for a distance of those with labels.
fn minor_step(step: i64) -> i64 {
    let mut first_digit = step;
    while first_digit >= 10 {
        first_digit /= 10;
    }
    let parts = if first_digit == 2 { 4 } else { 5 };
    if step % parts == 0 { step / parts } else { step }
}

/// A time as text, exact to `step` ns: `1.2340 ms`, `12.5 s`.
pub fn position(time: i64, step: i64) -> String {
    let magnitude = time.unsigned_abs().max(step.unsigned_abs());
    let (unit_ns, unit): (u64, &str) = match magnitude {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let abs = time.unsigned_abs();
    let sign = if time < 0 { "-" } else { "" };
    let whole_units = ui::format::count(abs / unit_ns);
    let unit_digits = unit_ns.ilog10() as usize;
    let step_digits = step.unsigned_abs().max(1).ilog10() as usize;
    // A step of 20 µs in ms needs two decimals: the unit has 6 digits, the step 4.
    let decimals = unit_digits.saturating_sub(step_digits);
    if decimals == 0 {
        return format!("{sign}{whole_units} {unit}");
    }
    let fraction = abs % unit_ns / 10_u64.pow((unit_digits - decimals) as u32);
    format!("{sign}{whole_units}.{fraction:0decimals$} {unit}")
}

/// A time as text, exact to about a tenth of a pixel.
pub fn position_in_view(time: i64, scale: &Scale) -> String {
    position(time, nice_step(scale.ns_of_px(0.2)))
}

/// A range as text: `1.20 ms to 3.40 ms`.
pub fn range_text(range: &Range<i64>) -> String {
    let step = nice_step((range.end - range.start) / 500);
    format!("{} to {}", position(range.start, step), position(range.end, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_one_two_five() {
        let cases = [(1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (49, 50), (1_000_001, 2_000_000)];
        for (ns, step) in cases {
            assert_eq!(nice_step(ns), step);
        }
        assert_eq!(nice_step(i64::MAX), i64::MAX);
    }

    #[test]
    fn positions_keep_the_step() {
        let cases = [
            (0, 1, "0 ns"),
            (1_234, 1, "1.234 µs"),
            (1_234_567, 1, "1.234567 ms"),
            (1_234_567, 100, "1.2345 ms"),
            (1_220_000, 20_000, "1.22 ms"),
            (5_000_000_000, 1_000_000_000, "5 s"),
            (5_000_000_000, 500_000_000, "5.0 s"),
            (-1_500, 100, "-1.5 µs"),
            (0, 1_000_000, "0 ms"),
            (3_600_000_000_000, 10_000_000_000, "3,600 s"),
        ];
        for (time, step, text) in cases {
            assert_eq!(position(time, step), text);
        }
    }

    #[test]
    fn labels_keep_their_distance_at_every_zoom() {
        let mut len = 10_i64;
        while len < 1 << 60 {
            let view = Viewport { start: -7, end: len - 7 };
            let scale = Scale::new(view, 0.0, 1920.0);
            let ruler = ruler(view, &scale);
            let xs: Vec<f32> = ruler.ticks.iter().filter(|t| t.has_label).map(|t| scale.x_from_time(t.time)).collect();
            assert!(!xs.is_empty(), "no label in {len} ns");
            assert!(xs.windows(2).all(|w| w[1] - w[0] >= LABEL_PX * 0.99), "{len}: {xs:?}");
            assert!(ruler.ticks.len() < 400);
            let labels: Vec<String> = ruler.ticks.iter().map(|t| position(t.time, ruler.step)).collect();
            let distinct: std::collections::BTreeSet<&String> =
                ruler.ticks.iter().zip(&labels).filter(|(t, _)| t.has_label).map(|(_, l)| l).collect();
            assert_eq!(distinct.len(), xs.len(), "{labels:?}");
            len = len * 3 + 1;
        }
    }

    #[test]
    fn views_in_words() {
        assert_eq!(range_text(&(1_200_000..3_400_000)), "1.200 ms to 3.400 ms");
        assert_eq!(range_text(&(-10..10)), "-10 ns to 10 ns");
    }
}
