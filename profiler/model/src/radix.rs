//! A stable sort by keys that are numbers, digit by digit from the lowest: three or four passes for times that lie as near to
//! each other as those of a trace do, whatever their number.

/// A key, and the row that it is of.
pub type Keyed = (u64, u32);

const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Fewer are sorted by comparing them.
const FEW: usize = 1 << 10;

/// The key that orders as the number does.
pub fn key(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

/// Sorts by key; rows of equal keys stay in their order. `spare` is room to be used again.
pub fn sort(rows: &mut Vec<Keyed>, spare: &mut Vec<Keyed>) {
    if rows.is_sorted_by_key(|(key, _)| *key) {
        return;
    }
    if rows.len() < FEW {
        return rows.sort_by_key(|(key, _)| *key);
    }
    let (least, most) = rows.iter().fold((u64::MAX, 0), |(least, most), (key, _)| (least.min(*key), most.max(*key)));
    spare.resize(rows.len(), (0, 0));
    for shift in (0..u64::BITS - (most - least).leading_zeros()).step_by(DIGIT_BITS as usize) {
        let digit = |key: u64| ((key - least) >> shift) as usize & (DIGITS - 1);
        let mut places = [0usize; DIGITS];
        rows.iter().for_each(|(key, _)| places[digit(*key)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for row in rows.iter() {
            let place = &mut places[digit(row.0)];
            spare[*place] = *row;
            *place += 1;
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
            let mut rows: Vec<Keyed> = keys.iter().map(|k| key(*k)).zip(0..).collect();
            let mut expected: Vec<(i64, u32)> = keys.into_iter().zip(0..).collect();
            expected.sort();
            sort(&mut rows, &mut Vec::new());
            prop_assert!(rows.iter().map(|(_, row)| row).eq(expected.iter().map(|(_, row)| row)));
        }
    }
}
