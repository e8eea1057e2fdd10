//! Texts of numbers and tables for people: durations, bytes, counts, ratios, aligned columns. All members use these
//! functions, so that the terminal, reports and the window show a number in the same form.
//!
//! Durations and bytes have three significant digits and the unit that fits, rounded half up in integers: never `1000
//! µs`, and never two texts for one number.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bytes;
mod counts;
mod durations;
mod table;

pub use bytes::bytes;
pub use counts::{count, count_of, count_of_irregular, signed_count};
pub use durations::{duration, exact_ns};
pub use table::{Align, Columns, Table, truncated};

/// A ratio with four decimals.
pub fn ratio(value: f64) -> String {
    format!("{value:.4}")
}

/// `n / unit` with three significant digits (more where the integer part has more). `None` where the rounded value is
/// `limit` units or more, for which the caller uses the next unit.
fn three_digits(n: u128, unit: u128, limit: u128) -> Option<String> {
    for (decimals, scale) in [(2, 100), (1, 10), (0, 1)] {
        let scaled = (n * scale + unit / 2) / unit;
        if scaled >= limit * scale {
            return None;
        }
        if scaled < 1_000 || decimals == 0 {
            let (whole, rest) = (scaled / scale, scaled % scale);
            return Some(if decimals == 0 { whole.to_string() } else { format!("{whole}.{rest:0decimals$}") });
        }
    }
    None
}
