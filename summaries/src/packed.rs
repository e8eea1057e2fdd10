//! Histograms as bytes: a third of their size in the file, a fifth of their size as structures.
//!
//! ```text
//! flags      u8   what follows
//! n buckets  u32
//! edges      n + 1 where each bucket begins where the one before ends, else n pairs; f32 where those are exact, else f64
//! counts     n    f32 where those are exact, else f64
//! totals     min, max and num as f64, unless they follow from the buckets; sum and sum of squares as f64, if known
//! ```

use crate::histogram::{Bucket, Histogram, totals_of};

/// Flags: each bucket begins where the one before ends; edges and counts are f32; totals and sums are stored.
const JOINED: u8 = 1;
const SINGLE_EDGES: u8 = 2;
const SINGLE_COUNTS: u8 = 4;
const TOTALS: u8 = 8;
const SUMS: u8 = 16;

/// Packs histograms; reuses its memory for the next one.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    edges: Vec<f64>,
    counts: Vec<f64>,
}

impl Packer {
    /// Appends a histogram, exactly as it is.
    pub fn pack(&mut self, histogram: &Histogram, out: &mut Vec<u8>) {
        let buckets = &histogram.buckets;
        let is_joined = buckets.windows(2).all(|pair| pair[0].right.to_bits() == pair[1].left.to_bits());
        self.edges.clear();
        if is_joined {
            self.edges.extend(buckets.first().map(|b| b.left));
            self.edges.extend(buckets.iter().map(|b| b.right));
        } else {
            self.edges.extend(buckets.iter().flat_map(|b| [b.left, b.right]));
        }
        self.counts.clear();
        self.counts.extend(buckets.iter().map(|b| b.count));
        let has_sums = !(is_unknown(histogram.sum) && is_unknown(histogram.sum_squares));
        let flags = [
            (is_joined, JOINED),
            (are_single(&self.edges), SINGLE_EDGES),
            (are_single(&self.counts), SINGLE_COUNTS),
            (histogram.totals().map(f64::to_bits) != totals_of(buckets).map(f64::to_bits), TOTALS),
            (has_sums, SUMS),
        ];
        let flags = flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
        out.push(flags);
        // A record has at most 2 GiB, so its buckets can be counted in 32 bits.
        out.extend((buckets.len() as u32).to_le_bytes());
        write_floats(&self.edges, flags & SINGLE_EDGES != 0, out);
        write_floats(&self.counts, flags & SINGLE_COUNTS != 0, out);
        if flags & TOTALS != 0 {
            write_floats(&histogram.totals(), false, out);
        }
        if has_sums {
            write_floats(&[histogram.sum, histogram.sum_squares], false, out);
        }
    }
}

/// Unpacks the histogram at the beginning of `bytes`; `None` for bytes that [`Packer::pack`] did not write.
pub(crate) fn unpack(bytes: &[u8]) -> Option<Histogram> {
    let (&flags, mut rest) = bytes.split_first()?;
    let n = u32::from_le_bytes(take_bytes(&mut rest, 4)?.try_into().ok()?) as usize;
    let is_joined = flags & JOINED != 0;
    let n_edges = if is_joined && n > 0 {
        n + 1
    } else if is_joined {
        0
    } else {
        2 * n
    };
    let edges = read_floats(&mut rest, n_edges, flags & SINGLE_EDGES != 0)?;
    let counts = read_floats(&mut rest, n, flags & SINGLE_COUNTS != 0)?;
    let bucket = |(i, count): (usize, &f64)| {
        let left = if is_joined { i } else { 2 * i };
        Bucket { left: edges[left], right: edges[left + 1], count: *count }
    };
    let mut histogram = Histogram::from_buckets(counts.iter().enumerate().map(bucket).collect());
    if flags & TOTALS != 0
        && let [min, max, num] = read_floats(&mut rest, 3, false)?[..]
    {
        (histogram.min, histogram.max, histogram.num) = (min, max, num);
    }
    if flags & SUMS != 0
        && let [sum, sum_squares] = read_floats(&mut rest, 2, false)?[..]
    {
        (histogram.sum, histogram.sum_squares) = (sum, sum_squares);
    }
    Some(histogram)
}

/// Whether a sum is the NaN that stands for a missing sum.
fn is_unknown(value: f64) -> bool {
    value.to_bits() == f64::NAN.to_bits()
}

/// Whether all values are exact as `f32`. Without an early return, so that the compiler vectorises the loop.
fn are_single(values: &[f64]) -> bool {
    values.iter().fold(0, |all, value| all | f64::from(*value as f32).to_bits() ^ value.to_bits()) == 0
}

fn write_floats(values: &[f64], is_single: bool, out: &mut Vec<u8>) {
    let begin = out.len();
    if is_single {
        out.resize(begin + 4 * values.len(), 0);
        for (place, value) in out[begin..].as_chunks_mut().0.iter_mut().zip(values) {
            *place = (*value as f32).to_le_bytes();
        }
    } else {
        out.resize(begin + 8 * values.len(), 0);
        for (place, value) in out[begin..].as_chunks_mut().0.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
    }
}

fn read_floats(rest: &mut &[u8], n: usize, is_single: bool) -> Option<Vec<f64>> {
    if is_single {
        let (values, _) = take_bytes(rest, n.checked_mul(4)?)?.as_chunks();
        Some(values.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect())
    } else {
        let (values, _) = take_bytes(rest, n.checked_mul(8)?)?.as_chunks();
        Some(values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
    }
}

fn take_bytes<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (bytes, behind) = rest.split_at_checked(n)?;
    *rest = behind;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>(), any::<f32>().prop_map(f64::from), Just(f64::NAN), Just(-0.0)]
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back_bit_for_bit(
            edges in prop::collection::vec(number(), 0..40),
            counts in prop::collection::vec(number(), 40),
            is_joined in any::<bool>(),
            odd_totals in prop::option::of(prop::array::uniform5(number())),
        ) {
            let left = |i: usize| if is_joined && i > 0 { edges[i - 1] } else { edges[i] * 2.0 };
            let buckets = (0..edges.len()).map(|i| Bucket { left: left(i), right: edges[i], count: counts[i] });
            let mut histogram = Histogram::from_buckets(buckets.collect());
            if let Some([min, max, num, sum, sum_squares]) = odd_totals {
                histogram = Histogram { min, max, num, sum, sum_squares, ..histogram };
            }
            let mut bytes = Vec::new();
            Packer::default().pack(&histogram, &mut bytes);
            prop_assert_eq!(unpack(&bytes).unwrap().bits(), histogram.bits());
            for n in 0..bytes.len() {
                prop_assert!(unpack(&bytes[..n]).is_none());
            }
        }
    }

    #[test]
    fn thirty_buckets_of_floats_take_as_much_as_their_numbers() {
        let bucket = |i: i32| Bucket { left: f64::from(i), right: f64::from(i + 1), count: 3.0 };
        let mut bytes = Vec::new();
        Packer::default().pack(&Histogram::from_buckets((0..30).map(bucket).collect()), &mut bytes);
        assert_eq!(bytes.len(), 5 + 4 * (31 + 30));
    }
}
