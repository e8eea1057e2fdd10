//! Parquet's hybrid of run-length encoding and bit packing, for dictionary keys and definition levels.
//!
//! ```text
//! run     varint n << 1      | the number, in whole bytes               the same number n times
//!         varint n << 1 | 1  | n * 8 numbers of `width` bits, packed    any numbers; zeros fill up the last group of eight
//! ```

/// Minimum length of a run of equal numbers.
const MIN_EQUAL: usize = 8;

/// Appends numbers below `1 << width` as runs.
pub(super) fn encode(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let n_equal = rest.iter().take_while(|n| *n == first).count();
        if n_equal >= MIN_EQUAL || n_equal == rest.len() {
            append_varint((n_equal as u64) << 1, out);
            out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
            rest = &rest[n_equal..];
            continue;
        }
        let (packed, after) = rest.split_at(packed_len(rest));
        append_varint((packed.len().div_ceil(8) as u64) << 1 | 1, out);
        pack(packed, width, out);
        rest = after;
    }
}

/// Returns the number of leading numbers to pack: groups of eight, up to the first group of equal numbers.
fn packed_len(numbers: &[u32]) -> usize {
    let is_run = |group: &[u32]| group.len() == 8 && group.iter().all(|n| *n == group[0]);
    let n = numbers.chunks(8).take_while(|group| !is_run(group)).count();
    (n * 8).min(numbers.len())
}

/// Appends numbers of `width` bits each, the lowest bits first, and zeros up to a multiple of eight numbers.
fn pack(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let len = out.len() + numbers.len().div_ceil(8) * width as usize;
    let (mut word, mut bits) = (0u64, 0);
    for number in numbers {
        word |= u64::from(*number) << bits;
        bits += width;
        if bits >= 32 {
            out.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= 32;
            bits -= 32;
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..bits.div_ceil(8) as usize]);
    out.resize(len, 0);
}

/// Appends a number in LEB128.
fn append_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Returns the number of bits of the largest of `n` dictionary keys.
pub(super) fn width(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes runs as the format's specification defines them, without the code above.
    fn decode(bytes: &[u8], width: u32, n: usize) -> Vec<u32> {
        let (mut at, mut out) = (0, Vec::new());
        while out.len() < n {
            let (mut header, mut shift) = (0u64, 0);
            loop {
                let byte = bytes[at];
                at += 1;
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            let n_bits = if header & 1 == 1 { (header >> 1) as u32 * 8 * width } else { width.div_ceil(8) * 8 };
            let bit = |i: u32| u32::from(bytes[at + i as usize / 8] >> (i % 8) & 1);
            let number = |first: u32| (0..width).map(|i| bit(first + i) << i).sum::<u32>();
            match header & 1 {
                1 => out.extend((0..(header >> 1) as u32 * 8).map(|i| number(i * width))),
                _ => out.extend(std::iter::repeat_n(number(0), (header >> 1) as usize)),
            }
            at += n_bits as usize / 8;
        }
        assert_eq!(at, bytes.len());
        out.truncate(n);
        out
    }

    proptest! {
        #[test]
        fn numbers_come_back(runs in prop::collection::vec((any::<u32>(), 1usize..40), 0..60), width in 0u32..=32) {
            let mask = (1u64 << width) - 1;
            let run =
                |(number, n): (u32, usize)| std::iter::repeat_n((u64::from(number) & mask) as u32, n % 11 * n / 5 + 1);
            let numbers: Vec<u32> = runs.into_iter().flat_map(run).collect();
            let mut bytes = Vec::new();
            encode(&numbers, width, &mut bytes);
            prop_assert_eq!(decode(&bytes, width, numbers.len()), numbers);
        }
    }

    #[test]
    fn widths() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(width), [0, 0, 1, 2, 2, 3, 8, 9]);
    }
}
