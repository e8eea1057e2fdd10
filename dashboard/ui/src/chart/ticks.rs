//! Positions and labels of grid lines.

use crate::format;

/// A grid line. Minor lines have an empty label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The position in plot space.
    pub at: f64,
    /// The label.
    pub label: String,
}

/// The unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    Number,
    /// Whole numbers: steps.
    Whole,
    /// Bytes, in binary units.
    Bytes,
    /// Seconds since an origin.
    Seconds,
    /// Unix seconds, written in UTC.
    Wall,
}

/// Grid lines at round values between `lo` and `hi`, about `n` of them; none for a range that is not finite.
pub fn ticks(unit: Unit, lo: f64, hi: f64, n: usize) -> Vec<Tick> {
    let span = hi - lo;
    if !(span.is_finite() && span > 0.0) || n == 0 {
        return Vec::new();
    }
    let min_step = span / n as f64;
    let step = match unit {
        Unit::Number => round_step(min_step),
        Unit::Whole => round_step(min_step).max(1.0),
        Unit::Bytes => round_step(min_step / byte_unit(hi).0).max(1.0 / byte_unit(hi).0) * byte_unit(hi).0,
        Unit::Seconds | Unit::Wall => time_step(min_step),
    };
    let first = (lo / step).ceil();
    let n_lines = ((hi / step).floor() - first + 1.0).clamp(0.0, 4.0 * n as f64 + 4.0) as usize;
    (0..n_lines)
        .map(|i| {
            let at = (first + i as f64) * step;
            Tick { at, label: if unit == Unit::Bytes { byte_label(at, step, hi) } else { label(unit, at, step) } }
        })
        .collect()
}

/// Grid lines of a logarithmic axis, whose bounds are exponents of ten: at decades, and below three decades also at 2
/// and 5.
pub fn log_ticks(lo: f64, hi: f64, n: usize) -> Vec<Tick> {
    let span = hi - lo;
    if !(span.is_finite() && span > 0.0) || n == 0 {
        return Vec::new();
    }
    let stride = (span / n as f64).ceil().max(1.0);
    let factors: &[f64] = if span < 0.7 {
        return linear_ticks_on_log(lo, hi, n);
    } else if span < 3.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let mut out = Vec::new();
    let mut decade = (lo / stride).floor() * stride;
    while decade <= hi && out.len() < 200 {
        for factor in factors {
            let at = decade + factor.log10();
            if (lo..=hi).contains(&at) {
                out.push(Tick { at, label: log_label(factor * 10f64.powf(decade)) });
            }
        }
        decade += stride;
    }
    out
}

/// Ticks at round values of a logarithmic axis that shows less than a decade.
fn linear_ticks_on_log(lo: f64, hi: f64, n: usize) -> Vec<Tick> {
    let mut lines = ticks(Unit::Number, 10f64.powf(lo), 10f64.powf(hi), n);
    lines.retain(|tick| tick.at > 0.0);
    for tick in &mut lines {
        tick.at = tick.at.log10();
    }
    lines
}

fn log_label(value: f64) -> String {
    if (1e-3..1e4).contains(&value) {
        let decimals = (-value.log10().floor()).max(0.0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.0e}")
    }
}

/// The least 1, 2 or 5 times a power of ten that is at least `min_step`.
fn round_step(min_step: f64) -> f64 {
    let power = 10f64.powf(min_step.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|step| *step >= min_step * (1.0 - 1e-9));
    step.unwrap_or(10.0 * power)
}

/// The least usual step of seconds, minutes, hours or days that is at least `min_step`, seconds.
fn time_step(min_step: f64) -> f64 {
    const STEPS: [f64; 17] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0,
        43_200.0, 86_400.0,
    ];
    if min_step <= 0.5 {
        return round_step(min_step);
    }
    STEPS.into_iter().find(|step| *step >= min_step).unwrap_or_else(|| 86_400.0 * round_step(min_step / 86_400.0))
}

fn label(unit: Unit, at: f64, step: f64) -> String {
    match unit {
        Unit::Number | Unit::Whole | Unit::Bytes => number(at, step),
        Unit::Seconds => seconds(at, step),
        Unit::Wall => wall(at, step),
    }
}

/// The largest binary unit of bytes that is at most `most`, with its name.
fn byte_unit(most: f64) -> (f64, &'static str) {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let index = ((most.max(1.0).log2() / 10.0).floor() as usize).min(UNITS.len() - 1);
    (1024f64.powi(index as i32), UNITS[index])
}

/// Bytes in the unit of the axis' end: `1.5 GiB`.
fn byte_label(at: f64, step: f64, most: f64) -> String {
    let (size, name) = byte_unit(most);
    if at.abs() < step * 1e-6 { "0".to_owned() } else { format!("{} {name}", number(at / size, step / size)) }
}

/// A multiple of `step` with enough digits to differ from its neighbours: `0.25`, `1,500`, `20M`.
fn number(at: f64, step: f64) -> String {
    let is_zero = at.abs() < step * 1e-6;
    let at = if is_zero { 0.0 } else { at };
    let magnitude = at.abs().max(step);
    if is_zero && step >= 1.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&magnitude) {
        let digits = (magnitude.log10().floor() - (step.log10() + 1e-9).floor()).max(0.0) as usize;
        return if is_zero { "0".to_owned() } else { format!("{at:.digits$e}") };
    }
    let (unit, suffix) = match magnitude {
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        _ => (1.0, ""),
    };
    let decimals = (-(step / unit).log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
    format!("{}{suffix}", format::grouped(&format!("{:.decimals$}", at / unit)))
}

fn seconds(at: f64, step: f64) -> String {
    if step < 1.0 || at.abs() < 60.0 && step < 60.0 {
        return format!("{}s", number(at, step));
    }
    let sign = if at < 0.0 { "-" } else { "" };
    let s = at.abs().round() as u64;
    match s {
        0..3_600 => format!("{sign}{}:{:02}", s / 60, s % 60),
        3_600..172_800 => format!("{sign}{}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60),
        _ => format!("{sign}{}d{:02}h", s / 86_400, s / 3_600 % 24),
    }
}

fn wall(at: f64, step: f64) -> String {
    if step >= 86_400.0 {
        utc(at, "%F")
    } else if step >= 60.0 {
        utc(at, "%H:%M")
    } else if step >= 1.0 {
        utc(at, "%T")
    } else {
        let decimals = (-step.log10()).ceil().clamp(1.0, 6.0) as usize;
        format!("{}{:0width$.decimals$}", utc(at, "%H:%M:"), at.rem_euclid(60.0), width = decimals + 3)
    }
}

/// Unix seconds as `2026-11-21 02:28:39 UTC`. Values that are not finite or beyond the year 9999 are shown as the
/// epoch.
pub fn date_time(unix: f64) -> String {
    utc(unix, "%F %T UTC")
}

fn utc(unix: f64, format: &str) -> String {
    jiff::Timestamp::new(unix.floor() as i64, 0).unwrap_or_default().strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(ticks: &[Tick], labels: &str) {
        let got: Vec<&str> = ticks.iter().map(|t| t.label.as_str()).collect();
        assert_eq!(got.join(" "), labels);
    }

    #[test]
    fn neighbours_have_different_labels() {
        check(&ticks(Unit::Number, 0.0, 1.0, 5), "0.0 0.2 0.4 0.6 0.8 1.0");
        check(&ticks(Unit::Number, -0.03, 0.05, 4), "-0.02 0.00 0.02 0.04");
        check(&ticks(Unit::Whole, 0.0, 3.0, 10), "0 1 2 3");
        check(&ticks(Unit::Whole, 0.0, 40_000.0, 4), "0 10,000 20,000 30,000 40,000");
        check(&ticks(Unit::Number, 1e-7, 5e-7, 4), "1e-7 2e-7 3e-7 4e-7 5e-7");
        check(&ticks(Unit::Seconds, 0.0, 130.0, 4), "0:00 1:00 2:00");
        check(&ticks(Unit::Wall, 1_795_216_781.0, 1_795_216_791.0, 4), "23:19:45 23:19:50");
        check(&log_ticks(-3.0, 1.0, 6), "0.001 0.01 0.1 1 10");
        check(&log_ticks(0.0, 1.0, 6), "1 2 5 10");
        check(&log_ticks(-9.0, 9.0, 4), "1e-5 1 1e5");
        check(&ticks(Unit::Bytes, 0.0, 1.7 * f64::from(1 << 30), 4), "0 0.5 GiB 1.0 GiB 1.5 GiB");
        check(&ticks(Unit::Bytes, 0.0, 700.0 * f64::from(1 << 20), 4), "0 200 MiB 400 MiB 600 MiB");
        check(&ticks(Unit::Bytes, 0.0, 3.0, 10), "0 1 B 2 B 3 B");
        check(&ticks(Unit::Number, f64::NAN, 1.0, 5), "");
    }

    #[test]
    fn moments_are_utc() {
        // date -u -d @N
        assert_eq!(date_time(0.0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date_time(951_782_400.0), "2000-02-29 00:00:00 UTC");
        assert_eq!(date_time(-1.0), "1969-12-31 23:59:59 UTC");
        assert_eq!([f64::NAN, 1e300].map(|unix| utc(unix, "%F")), ["1970-01-01"; 2]);
    }

    proptest! {
        #[test]
        fn ticks_lie_inside_and_are_few(lo in -1e9..1e9f64, span in 1e-6..1e9f64, n in 1usize..12) {
            for unit in [Unit::Number, Unit::Whole, Unit::Seconds, Unit::Wall] {
                let lines = ticks(unit, lo, lo + span, n);
                prop_assert!(lines.len() <= 4 * n + 4);
                prop_assert!(lines.iter().all(|t| t.at >= lo - span * 1e-6 && t.at <= lo + span * (1.0 + 1e-6)));
            }
        }
    }
}
