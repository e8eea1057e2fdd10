//! Numbers as a person reads them.

pub use dashboard::format::count;

/// How many there are of what `one` names: `1 trace`, `0 traces`, `1,234 traces`.
#[cfg(any(feature = "query", test))]
pub fn count_of(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A time span in its fitting unit: `870 ns`, `12.3 us`, `4.56 ms`, `1.20 s`, `3 m 20 s`.
pub fn duration(ns: i64) -> String {
    let magnitude = ns.unsigned_abs() as f64;
    match magnitude {
        m if m < 1e3 => format!("{ns} ns"),
        m if m < 1e6 => format!("{:.1} us", ns as f64 / 1e3),
        m if m < 1e9 => format!("{:.2} ms", ns as f64 / 1e6),
        m if m < 60e9 => format!("{:.2} s", ns as f64 / 1e9),
        _ => format!("{} m {:02} s", ns / 60_000_000_000, ns / 1_000_000_000 % 60),
    }
}

/// A share or a ratio, four decimals.
pub fn quality(value: f64) -> String {
    format!("{value:.4}")
}

/// Bytes in their fitting unit: `870 B`, `12.3 KiB`, `4.56 MiB`.
pub fn bytes(n: u64) -> String {
    let size = n as f64;
    match n {
        0..1_024 => format!("{n} B"),
        1_024..1_048_576 => format!("{:.1} KiB", size / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.2} MiB", size / 1_048_576.0),
        _ => format!("{:.2} GiB", size / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_their_unit() {
        let shown: Vec<String> = [0, 999, 12_340, 4_560_000, 1_200_000_000, 200_000_000_000].map(duration).to_vec();
        assert_eq!(shown, ["0 ns", "999 ns", "12.3 us", "4.56 ms", "1.20 s", "3 m 20 s"]);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 1_000].map(|n| count_of(n, "row")), ["0 rows", "1 row", "1,000 rows"]);
    }
}
