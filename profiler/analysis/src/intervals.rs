//! Sums of intervals.

/// The length of the union of intervals (start, end), ns.
pub(crate) fn union_ns(mut parts: Vec<(i64, i64)>) -> i64 {
    parts.sort_unstable();
    let (mut sum, mut until) = (0, i64::MIN);
    for (start, end) in parts {
        sum += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    sum
}
