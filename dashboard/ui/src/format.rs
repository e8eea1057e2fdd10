//! Numbers as text: times with a fitting unit, counts with separators, values with enough digits.

use crate::address::Choice;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, cell::Cell};

pub use text::{bytes, count, count_of, count_of_irregular, exact_ns, signed_count as step};

/// The unit of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum TimeUnit {
    /// The unit that fits the duration.
    #[default]
    Auto,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Microseconds.
    #[serde(rename = "µs")]
    Us,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
    /// Seconds.
    #[serde(rename = "s")]
    S,
}

impl Choice for TimeUnit {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Auto, "Auto", "Auto"),
        (Self::Ns, "ns", "ns"),
        (Self::Us, "µs", "µs"),
        (Self::Ms, "ms", "ms"),
        (Self::S, "s", "s"),
    ];
}

thread_local! {
    /// Thread-local, as only the thread that draws formats times.
    static TIME_UNIT: Cell<TimeUnit> = const { Cell::new(TimeUnit::Auto) };
}

/// Sets the unit of durations in this thread.
pub fn set_time_unit(unit: TimeUnit) {
    TIME_UNIT.set(unit);
}

/// Whether durations are exact to the nanosecond, which takes more room.
pub fn is_exact() -> bool {
    TIME_UNIT.get() != TimeUnit::Auto
}

/// The first `max` letters of a text, with an ellipsis where letters are missing.
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A duration: with three significant digits and a fitting unit (`850 ns`, `12.3 µs`, `4.56 s`, `3 min 20 s`), or to
/// the nanosecond in the chosen unit (`12.345 µs`).
pub fn duration_ns(ns: i64) -> String {
    let (divisor, decimals) = match TIME_UNIT.get() {
        TimeUnit::Auto => return text::duration(ns),
        TimeUnit::Ns => return exact_ns(ns),
        TimeUnit::Us => (1_000, 3),
        TimeUnit::Ms => (1_000_000, 6),
        TimeUnit::S => (1_000_000_000, 9),
    };
    let (abs, sign) = (ns.unsigned_abs(), if ns < 0 { "-" } else { "" });
    let (whole, fraction) = (count(abs / divisor), abs % divisor);
    format!("{sign}{whole}.{fraction:0decimals$} {}", TIME_UNIT.get().title())
}

/// The name of a step: `train 40`; the label alone where it ends with the number (`ProfilerStep#4`).
pub fn step_name(label: &str, number: i64) -> String {
    let digits = number.to_string();
    let has_number = label.strip_suffix(&digits).is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_digit()));
    if has_number { label.to_owned() } else { format!("{label} {}", step(number)) }
}

/// A summary's value with four significant digits: `0.0312`, `1.25e-7`, `12,345`, `NaN`.
pub fn value(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        f64::INFINITY => format!("{x:+}"),
        abs if abs.is_nan() => "NaN".to_owned(),
        abs if !(1e-4..1e6).contains(&abs) => format!("{x:.3e}"),
        _ if x.fract() == 0.0 => step(x as i64),
        _ => four_digits(x),
    }
}

/// A value that changes in place: as [`value`], but whole numbers also have four digits, so that text after it does not
/// move: `1.000` between `0.9844` and `1.016`.
pub fn figure(x: f64) -> String {
    if x.abs() < 1e3 && x.is_finite() && x.fract() == 0.0 { four_digits(x) } else { value(x) }
}

/// A parameter that a person chose, without trailing zeros: `0.0001`, `0.9`, `1e-7`, `12,345`.
pub fn parameter(x: f64) -> String {
    let rounded: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    match rounded.abs() {
        0.0 => "0".to_owned(),
        abs if !abs.is_finite() => value(x),
        abs if !(1e-4..1e6).contains(&abs) => format!("{rounded:e}"),
        abs if abs >= 1e3 => grouped(&rounded.to_string()),
        _ => rounded.to_string(),
    }
}

/// A number with four significant digits, or all digits of a larger whole number with separators.
fn four_digits(x: f64) -> String {
    // Rounding to four digits may raise the exponent: 0.0099999998 becomes 0.01000.
    let rounded = format!("{:.3e}", x.abs());
    let exponent = rounded.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or(0);
    let decimals = (3 - exponent).max(0) as usize;
    grouped(&format!("{x:.decimals$}"))
}

/// A number with the prefix of its unit: `1.23 TFLOP/s`, `120.26 GFLOP`.
pub fn prefixed(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let thousands = (value.max(1.0).log10() / 3.0).floor().min(5.0) as usize;
    format!("{:.2} {}{unit}", value / 1e3f64.powi(thousands as i32), PREFIXES[thousands])
}

/// A decimal number with thousands separators.
pub fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let Ok(n) = whole.parse::<u64>() else { return number.to_owned() };
    match fraction {
        Some(fraction) => format!("{sign}{}.{fraction}", count(n)),
        None => format!("{sign}{}", count(n)),
    }
}

/// A share from 0 to 1 as percent: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_unit_keeps_every_nanosecond() {
        for (unit, text) in [
            (TimeUnit::Ns, "-1,234,567 ns"),
            (TimeUnit::Us, "-1,234.567 µs"),
            (TimeUnit::Ms, "-1.234567 ms"),
            (TimeUnit::S, "-0.001234567 s"),
        ] {
            set_time_unit(unit);
            assert_eq!(duration_ns(-1_234_567), text);
        }
        set_time_unit(TimeUnit::Auto);
    }

    #[test]
    fn figures_keep_their_width_and_chosen_numbers_are_short() {
        assert_eq!([0.9844, 1.0, -1.0, 0.0, 5000.0].map(figure), ["0.9844", "1.000", "-1.000", "0.000", "5,000"]);
        let cases = [1e-4, 0.9, 1e-7, 0.1 + 0.2, 12_345.5, 5000.0, -64.0, 0.0, 3e8];
        assert_eq!(cases.map(parameter), ["0.0001", "0.9", "1e-7", "0.3", "12,345.5", "5,000", "-64", "0", "3e8"]);
        assert_eq!(parameter(f64::NAN), "NaN");
    }

    #[test]
    fn values_keep_four_digits() {
        let cases = [
            (0.0, "0"),
            (0.031_24, "0.03124"),
            (1.0, "1"),
            (0.009_999_999_8, "0.01000"),
            (0.97549, "0.9755"),
            (1234.56, "1,235"),
            (-98_765.4, "-98,765"),
            (123.456, "123.5"),
            (1.25e-7, "1.250e-7"),
            (-2e9, "-2.000e9"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (x, text) in cases {
            assert_eq!(value(x), text);
        }
        assert_eq!(
            (step_name("train", 1200), step_name("ProfilerStep#4", 4)),
            ("train 1,200".into(), "ProfilerStep#4".into())
        );
        assert_eq!(step_name("phase14", 4), "phase14 4");
    }

    #[test]
    fn numbers_take_their_prefix() {
        assert_eq!(
            [0.5, 999.0, 1e9, 1.97e14, 4e18].map(|v| prefixed(v, "B/s")),
            ["0.50 B/s", "999.00 B/s", "1.00 GB/s", "197.00 TB/s", "4000.00 PB/s"]
        );
    }
}
