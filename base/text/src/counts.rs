//! Texts of counts.

/// A count with thousands separators: `1,234,567`.
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

/// A count that may be negative, with thousands separators.
pub fn signed_count(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", count(n.unsigned_abs()))
}

/// A count with its noun: `1 run`, `2 runs`.
pub fn count_of(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A count with a noun whose plural is irregular: `1 process`, `2 processes`.
pub fn count_of_irregular(n: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(n), if n == 1 { singular } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(signed_count(-1_234), "-1,234");
        assert_eq!([0, 1, 1_000].map(|n| count_of(n, "row")), ["0 rows", "1 row", "1,000 rows"]);
        assert_eq!([1, 2].map(|n| count_of_irregular(n, "process", "processes")), ["1 process", "2 processes"]);
    }
}
