//! The keys of tensor parts in TensorFlow's checkpoints: names and numbers encoded so that bytes sort as values
//! (tensorflow/core/lib/strings/ordered_code.h).

use super::slice::Slice;
use crate::shape::Shape;

/// The key of a part of tensor `name`: 0, the name, the rank, and start and length of each dimension (-1: the entire dimension).
pub(super) fn part_key(name: &str, slice: &Slice, shape: &Shape) -> Vec<u8> {
    let mut key = Vec::new();
    put_number(&mut key, 0);
    put_string(&mut key, name.as_bytes());
    put_number(&mut key, slice.start.len() as u64);
    for i in 0..slice.start.len() {
        let (start, len) = match (slice.start[i], slice.len[i]) {
            (0, len) if len == shape.dims()[i] => (0, -1),
            (start, len) => (start as i64, len as i64),
        };
        put_signed(&mut key, start);
        put_signed(&mut key, len);
    }
    key
}

/// The number's bytes, most significant first, without leading zeros, behind their count.
fn put_number(out: &mut Vec<u8>, n: u64) {
    let bytes = n.to_be_bytes();
    let n_zeros = (n.leading_zeros() / 8) as usize;
    out.push((8 - n_zeros) as u8);
    out.extend_from_slice(&bytes[n_zeros..]);
}

/// Zeros as 00 ff, 255 as ff 00, then 00 01.
fn put_string(out: &mut Vec<u8>, s: &[u8]) {
    for &byte in s {
        match byte {
            0 => out.extend_from_slice(&[0, 0xff]),
            0xff => out.extend_from_slice(&[0xff, 0]),
            other => out.push(other),
        }
    }
    out.extend_from_slice(&[0, 1]);
}

/// As many bytes as seven bits each need, sign included; the count stands in the leading bits, as in UTF-8.
fn put_signed(out: &mut Vec<u8>, n: i64) {
    let magnitude = if n < 0 { !n } else { n } as u64;
    let n_bits = 64 - magnitude.leading_zeros() as usize;
    let len = n_bits / 7 + 1;
    let mut bytes = [if n < 0 { 0xff } else { 0 }; 10];
    bytes[2..].copy_from_slice(&n.to_be_bytes());
    let bytes = &mut bytes[10 - len..];
    let header: u16 = if len >= 10 { 0xffc0 } else { !(0xffff >> len) };
    bytes[0] ^= (header >> 8) as u8;
    if len > 1 {
        bytes[1] ^= header as u8;
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(n: i64) -> Vec<u8> {
        let mut out = Vec::new();
        put_signed(&mut out, n);
        out
    }

    #[test]
    fn numbers_sort_as_their_bytes() {
        assert_eq!(
            (signed(0), signed(-1), signed(63), signed(64)),
            (vec![0x80], vec![0x7f], vec![0xbf], vec![0xc0, 0x40])
        );
        let mut numbers: Vec<i64> = (0..63).flat_map(|b| [1i64 << b, (1i64 << b) - 1, -(1i64 << b)]).collect();
        numbers.extend([i64::MAX, i64::MIN]);
        numbers.sort_unstable();
        let encoded: Vec<Vec<u8>> = numbers.iter().map(|n| signed(*n)).collect();
        assert!(encoded.is_sorted());
    }
}
