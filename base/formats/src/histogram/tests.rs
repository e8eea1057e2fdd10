//! Buckets, against the definition: the first limit above the value.

use proptest::prelude::*;

use super::*;

fn bucket_of(value: f64) -> usize {
    BUCKET_INDEX.bucket_of(value)
}

fn limits() -> Vec<f64> {
    (0..n_buckets()).map(limit).collect()
}

#[test]
fn limits_are_tensorflows() {
    let limits = limits();
    assert!(limits.is_sorted());
    // 774 magnitudes and DBL_MAX on each side, and zero: what TensorFlow's own writer has.
    assert_eq!(limits.len(), 1551);
    assert_eq!((limits[0], limits[1550]), (f64::MIN, f64::MAX));
    assert_eq!(limits[775], 0.0);
    assert_eq!((limits[776], limits[777], limits[774]), (1e-12, 1.1 * 1e-12, -1e-12));
}

#[test]
fn runs_of_empty_buckets_become_one() {
    let mut h = HistogramBuilder::new();
    h.extend([1.0, -1.0, 1.0]);
    let proto = h.to_proto();
    // Empty up to the limit below the first full bucket, full, empty, full, empty to the end.
    assert_eq!(proto.bucket, [0.0, 1.0, 0.0, 2.0, 0.0]);
    assert!(proto.bucket_limit[0] <= -1.0 && -1.0 < proto.bucket_limit[1]);
    assert!(proto.bucket_limit[2] <= 1.0 && 1.0 < proto.bucket_limit[3]);
    assert_eq!(proto.bucket_limit[4], f64::MAX);
    assert_eq!((proto.num, proto.sum, proto.sum_squares, proto.min, proto.max), (3.0, 1.0, 3.0, -1.0, 1.0));
}

#[test]
fn an_empty_histogram_has_one_bucket() {
    let proto = HistogramBuilder::new().to_proto();
    assert_eq!((proto.bucket_limit, proto.bucket), (vec![f64::MAX], vec![0.0]));
}

#[test]
fn values_without_a_bucket_are_counted_apart() {
    let mut h = HistogramBuilder::new();
    h.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0]);
    assert_eq!((h.n_nonfinite(), h.to_proto().num), (3, 1.0));
}

#[test]
fn edges_belong_to_the_bucket_above() {
    let limits = limits();
    for (i, &edge) in limits.iter().enumerate().take(limits.len() - 1) {
        assert_eq!(bucket_of(edge), i + 1, "{edge:e}");
        assert_eq!(bucket_of(edge.next_down().max(f64::MIN)), if i == 0 { 1 } else { i }, "below {edge:e}");
    }
    assert_eq!(bucket_of(f64::MAX), limits.len() - 1);
    assert_eq!(bucket_of(-0.0), 776);
}

proptest! {
    #[test]
    fn the_bucket_is_the_first_limit_above(value in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO) {
        let expected = limits().partition_point(|limit| *limit <= value).min(n_buckets() - 1);
        prop_assert_eq!(bucket_of(value), expected);
    }
}
