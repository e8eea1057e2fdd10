//! A stable radix sort by number, from the lowest digit. The passes depend on the range of keys, not on their number:
//! three or four for the times of a window of slices.

/// A key and the index of its row.
pub type KeyedRow = (u64, u32);

/// Bits of a digit: its counts fit into the first-level cache.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Fewer rows are sorted by comparison.
const MIN_RADIX_ROWS: usize = 1 << 10;

/// The key for a signed number: keys have the order of the numbers.
pub fn key(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

/// Sorts by key; rows with equal keys keep their order. `spare` is a reused buffer.
pub fn sort(rows: &mut Vec<KeyedRow>, spare: &mut Vec<KeyedRow>) {
    if rows.is_sorted_by_key(|(key, _)| *key) {
        return;
    }
    if rows.len() < MIN_RADIX_ROWS {
        return rows.sort_by_key(|(key, _)| *key);
    }
    let (min, max) = rows.iter().fold((u64::MAX, 0), |(min, max), (key, _)| (min.min(*key), max.max(*key)));
    spare.resize(rows.len(), (0, 0));
    for shift in (0..u64::BITS - (max - min).leading_zeros()).step_by(DIGIT_BITS as usize) {
        let digit = |key: u64| ((key - min) >> shift) as usize & (DIGITS - 1);
        let mut offsets = [0usize; DIGITS];
        rows.iter().for_each(|(key, _)| offsets[digit(*key)] += 1);
        let mut next = 0;
        for offset in &mut offsets {
            next += std::mem::replace(offset, next);
        }
        for row in rows.iter() {
            let offset = &mut offsets[digit(row.0)];
            spare[*offset] = *row;
            *offset += 1;
        }
        std::mem::swap(rows, spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
        #[test]
        fn as_the_standard_sort(
            keys in prop_oneof![prop::collection::vec(any::<i64>(), 0..3_000), prop::collection::vec(-90_000i64..9, 0..9_000)]
        ) {
            let mut rows: Vec<KeyedRow> = keys.iter().map(|k| key(*k)).zip(0..).collect();
            let mut expected: Vec<(i64, u32)> = keys.into_iter().zip(0..).collect();
            expected.sort();
            sort(&mut rows, &mut Vec::new());
            prop_assert!(rows.iter().map(|(_, row)| row).eq(expected.iter().map(|(_, row)| row)));
        }
    }
}
