//! What is written can be read back: to within half of the last digit, in the order of the numbers, in few characters.
#![allow(clippy::unwrap_used)] // tests

use proptest::prelude::*;

/// The number that a text such as `12.3 µs` or `3 min 20 s` says, and how much its last digit is worth.
fn parse(text: &str) -> (f64, f64) {
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let words: Vec<&str> = text.split(' ').collect();
    let (mut sum, mut digit) = (0.0, 0.0);
    for pair in words.chunks(2) {
        let [number, unit] = pair else { panic!("no unit in {text:?}") };
        let scale = match *unit {
            "ns" | "B" => 1.0,
            "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "min" => 60e9,
            "h" => 3600e9,
            binary => 1024_f64
                .powi(1 + ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].iter().position(|u| *u == binary).unwrap() as i32),
        };
        let decimals = number.split_once('.').map_or(0, |(_, rest)| rest.len() as i32);
        sum += number.parse::<f64>().unwrap() * scale;
        digit = scale / 10_f64.powi(decimals);
    }
    (sign * sum, digit)
}

/// Numbers of every magnitude.
fn magnitudes() -> impl Strategy<Value = i64> {
    (0_u32..63, any::<i64>()).prop_map(|(shift, n)| n >> shift)
}

fn check(n: f64, text: &str, longest: usize) {
    let (parsed, digit) = parse(text);
    assert!((parsed - n).abs() <= digit / 2.0 * (1.0 + 1e-9), "{n} is written {text}");
    let digits = text.split(' ').next().unwrap().chars().filter(char::is_ascii_digit).count();
    assert!(digits <= longest, "{text} has too many digits");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn durations(a in magnitudes(), b in magnitudes()) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(parse(&text::duration(low)).0 <= parse(&text::duration(high)).0, "{low} {high}");
        let is_long = a.unsigned_abs() >= 59_950_000_000;
        check(a as f64, &text::duration(a), if is_long { 7 } else { 3 });
    }

    #[test]
    fn bytes(a in magnitudes(), b in magnitudes()) {
        let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
        prop_assert!(parse(&text::bytes(a.min(b))).0 <= parse(&text::bytes(a.max(b))).0, "{a} {b}");
        check(a as f64, &text::bytes(a), 4);
    }

    #[test]
    fn counts(n in any::<i64>()) {
        let text = text::signed_count(n);
        prop_assert_eq!(text.replace(',', "").parse::<i64>().unwrap(), n);
        prop_assert!(text.trim_start_matches('-').split(',').skip(1).all(|group| group.len() == 3));
    }
}
