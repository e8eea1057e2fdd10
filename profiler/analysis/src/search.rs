//! A binary search that begins near its result.

/// Returns `rows.partition_point(is_before)`, by an exponential search from index `from`, which is fast if the result
/// is near.
pub(super) fn partition_point_near<T>(rows: &[T], from: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    if rows.get(from).is_some_and(&is_before) {
        while rows.get(from + step).is_some_and(&is_before) {
            step *= 2;
        }
        let (low, high) = (from + step / 2, (from + step).min(rows.len()));
        return low + rows[low..high].partition_point(is_before);
    }
    let from = from.min(rows.len());
    while step <= from && !is_before(&rows[from - step]) {
        step *= 2;
    }
    let (low, high) = (from.saturating_sub(step), from - step / 2);
    low + rows[low..high].partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_search_from_near_finds_what_the_search_of_all_finds(
            numbers in prop::collection::vec(0u32..50, 0..40), from in 0usize..50, number in 0u32..52
        ) {
            let mut numbers = numbers;
            numbers.sort_unstable();
            prop_assert_eq!(partition_point_near(&numbers, from, |n| *n < number), numbers.partition_point(|n| *n < number));
        }
    }
}
