//! Texts of durations.

use crate::{count, three_digits};

/// Each unit's name, its nanoseconds, and the number of units from which the next unit is used.
const UNITS: [(&str, u128, u128); 3] = [("µs", 1_000, 1_000), ("ms", 1_000_000, 1_000), ("s", 1_000_000_000, 60)];

/// A time span with three significant digits in the unit that fits: `850 ns`, `12.3 µs`, `4.56 s`; from a minute on `3
/// min 20 s`, from an hour on `2 h 1 min`.
///
/// ```
/// assert_eq!([999, 12_345, 999_999, -4_560_000_000].map(text::duration), ["999 ns", "12.3 µs", "1.00 ms", "-4.56 s"]);
/// ```
pub fn duration(ns: i64) -> String {
    let (abs, sign) = (u128::from(ns.unsigned_abs()), if ns < 0 { "-" } else { "" });
    if abs < 1_000 {
        return format!("{sign}{abs} ns");
    }
    let short = UNITS.iter().find_map(|&(name, unit, limit)| Some((three_digits(abs, unit, limit)?, name)));
    if let Some((value, unit)) = short {
        return format!("{sign}{value} {unit}");
    }
    let seconds = (abs + 500_000_000) / 1_000_000_000;
    if seconds < 3_600 {
        return format!("{sign}{} min {} s", seconds / 60, seconds % 60);
    }
    // Rounded from nanoseconds: rounding the rounded seconds could round up twice.
    let minutes = (abs + 30_000_000_000) / 60_000_000_000;
    format!("{sign}{} h {} min", minutes / 60, minutes % 60)
}

/// All digits of a time in ns, grouped: `1,234,567 ns`.
pub fn exact_ns(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{} ns", count(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_choose_a_unit() {
        let cases: [(i64, &str); 16] = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (-12_345, "-12.3 µs"),
            (9_994, "9.99 µs"),
            (9_995, "10.0 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (123_456_789, "123 ms"),
            (4_560_000_000, "4.56 s"),
            (59_949_999_999, "59.9 s"),
            (59_950_000_000, "1 min 0 s"),
            (200_000_000_000, "3 min 20 s"),
            (3_599_600_000_000, "1 h 0 min"),
            (7_260_000_000_000, "2 h 1 min"),
            (i64::MIN, "-2562047 h 47 min"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(exact_ns(-1_234_567), "-1,234,567 ns");
    }
}
