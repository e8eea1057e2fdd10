//! Arrays of numbers in the page's data: base64 of the smallest type that represents every value exactly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The array as an object: `t`, its type (`u1`, `u2`, `u4`, `i4`, `f4` or `f8`: a letter and the bytes of a number), and
/// `d`, the numbers in little-endian order as base64.
pub fn array(values: &[f64]) -> Value {
    let is_all = |is_exact: fn(f64) -> bool| values.iter().all(|value| is_exact(*value));
    // NaN and negative zero are no integers.
    let (name, bytes) = if is_all(|v| (v as u8) as f64 == v && v.to_bits() != NEGATIVE_ZERO) {
        ("u1", pack(values, |v| [v as u8]))
    } else if is_all(|v| (v as u16) as f64 == v && v.to_bits() != NEGATIVE_ZERO) {
        ("u2", pack(values, |v| (v as u16).to_le_bytes()))
    } else if is_all(|v| (v as u32) as f64 == v && v.to_bits() != NEGATIVE_ZERO) {
        ("u4", pack(values, |v| (v as u32).to_le_bytes()))
    } else if is_all(|v| (v as i32) as f64 == v && v.to_bits() != NEGATIVE_ZERO) {
        ("i4", pack(values, |v| (v as i32).to_le_bytes()))
    } else if is_all(|v| (v as f32) as f64 == v || v.is_nan()) {
        ("f4", pack(values, |v| (v as f32).to_le_bytes()))
    } else {
        ("f8", pack(values, f64::to_le_bytes))
    };
    json!({ "t": name, "d": STANDARD.encode(bytes) })
}

/// The bits of -0.0.
const NEGATIVE_ZERO: u64 = 1 << 63;

fn pack<const N: usize>(values: &[f64], bytes_of: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes_of(*value)).collect()
}

/// Ascending numbers as the differences between them; the first is the difference from 0.
pub fn deltas(values: &[f64]) -> Value {
    let mut last = 0.0;
    let differences: Vec<f64> = values.iter().map(|value| value - std::mem::replace(&mut last, *value)).collect();
    array(&differences)
}

/// The rows to keep of a curve with more than `max` points: of each of `max / 2` equal parts the least and the greatest
/// value.
pub fn thinned(values: &[f64], max: usize) -> Vec<usize> {
    if values.len() <= max {
        return (0..values.len()).collect();
    }
    let n_parts = (max / 2).max(1);
    let mut rows = Vec::with_capacity(2 * n_parts);
    for part in 0..n_parts {
        let range = part * values.len() / n_parts..(part + 1) * values.len() / n_parts;
        let by_value = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        let (least, greatest) = (range.clone().min_by(by_value), range.max_by(by_value));
        let (Some(least), Some(greatest)) = (least, greatest) else { continue };
        rows.push(least.min(greatest));
        if least != greatest {
            rows.push(least.max(greatest));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_exact_type_is_chosen() {
        let types = |values: &[f64]| array(values)["t"].as_str().map(str::to_owned).unwrap_or_default();
        assert_eq!(types(&[]), "u1");
        assert_eq!(types(&[0.0, 255.0]), "u1");
        assert_eq!(types(&[256.0]), "u2");
        assert_eq!(types(&[70_000.0]), "u4");
        assert_eq!(types(&[-1.0]), "i4");
        assert_eq!(types(&[0.5, f64::NAN, f64::INFINITY]), "f4");
        assert_eq!(types(&[-0.0]), "f4");
        assert_eq!(types(&[0.1]), "f8");
        assert_eq!(types(&[5e9]), "f4", "a power of ten that a float has exactly");
        assert_eq!(types(&[5_000_000_001.0]), "f8");
    }

    #[test]
    fn bytes_are_little_endian_and_differences_start_at_zero() {
        assert_eq!(array(&[1.0, 256.0])["d"], "AQAAAQ==");
        assert_eq!(deltas(&[5.0, 7.0, 7.0])["d"], "BQIA");
    }

    #[test]
    fn a_thinned_curve_has_its_peaks() {
        let mut values = vec![0.0; 1000];
        (values[437], values[901]) = (9.0, -9.0);
        let rows = thinned(&values, 20);
        assert!(rows.len() <= 20 && rows.contains(&437) && rows.contains(&901));
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(thinned(&values, 1000).len(), 1000);
    }
}
