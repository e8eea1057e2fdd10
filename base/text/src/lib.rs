//! Numbers and tables as people read them: durations, bytes, counts, ratios, aligned columns. Every member that shows
//! one to a person writes it with these functions, so that a terminal, a sentence, a report and the window say the
//! same.
//!
//! Durations and bytes have three significant digits and the unit that fits, rounded half up in integers: never `1000
//! µs`, and never two texts for one number.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bytes;
mod counts;
mod durations;
mod table;

pub use bytes::bytes;
pub use counts::{count, counted, counted_as, signed_count};
pub use durations::{duration, exact_ns};
pub use table::{Align, Columns, Table, cut};

/// A share or a ratio, four decimals.
pub fn ratio(value: f64) -> String {
    format!("{value:.4}")
}

/// `n / unit` with as many decimals as give three significant digits; `None` where that would be `limit` units or more,
/// which the next unit says better.
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
