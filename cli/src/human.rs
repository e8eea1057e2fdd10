//! Numbers as a person reads them.

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

/// A count with thousands separated: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in binary units: `512 B`, `3.4 MiB`.
pub fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", units[unit]) }
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
    }

    #[test]
    fn bytes_are_binary() {
        assert_eq!([0, 1_023, 1_024, 3_565_158].map(bytes), ["0 B", "1023 B", "1.0 KiB", "3.4 MiB"]);
    }
}
