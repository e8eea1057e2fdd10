//! Numbers as a person reads them.

#[cfg(feature = "query")]
pub use text::counted as count_of;
pub use text::{bytes, count, duration};

/// A share or a ratio, four decimals.
pub fn quality(value: f64) -> String {
    format!("{value:.4}")
}
