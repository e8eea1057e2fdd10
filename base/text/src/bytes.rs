//! Texts of byte counts.

use crate::three_digits;

/// Each unit's name, its power of two, and the number of units from which the next unit is used.
const UNITS: [(&str, u32, u128); 6] = [
    ("KiB", 10, 1_024),
    ("MiB", 20, 1_024),
    ("GiB", 30, 1_024),
    ("TiB", 40, 1_024),
    ("PiB", 50, 1_024),
    ("EiB", 60, u128::MAX / 100),
];

/// A number of bytes with three significant digits (four from 1,000 on) and a binary unit: `512 B`, `1.50 KiB`, `1023
/// MiB`.
pub fn bytes(n: u64) -> String {
    if n < 1_024 {
        return format!("{n} B");
    }
    let fits = |&(name, shift, limit): &(&str, u32, u128)| {
        Some(format!("{} {name}", three_digits(u128::from(n), 1 << shift, limit)?))
    };
    // The last unit's limit is above every number, so a text is always found.
    UNITS.iter().find_map(fits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_choose_a_unit() {
        let cases: [(u64, &str); 8] = [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.00 KiB"),
            (1_536, "1.50 KiB"),
            (1_047_500, "1023 KiB"),
            (1_048_575, "1.00 MiB"),
            (5 << 30, "5.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (n, text) in cases {
            assert_eq!(bytes(n), text);
        }
    }
}
