//! Figures of many measurements.

use std::borrow::Borrow;

/// The value that half of the others are below; NaN of none.
pub fn median(values: impl IntoIterator<Item: Borrow<f64>>) -> f64 {
    quantile(values, 0.5)
}

/// The value that this share of the others is below; NaN of none.
pub fn quantile(values: impl IntoIterator<Item: Borrow<f64>>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().map(|value| *value.borrow()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
