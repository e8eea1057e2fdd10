//! The checksum of records.

/// From this length on, in bytes, the `crc32c` crate is faster: it computes three parts of the data in parallel.
#[cfg(target_arch = "x86_64")]
const MIN_LONG: usize = 768;

/// The CRC-32C of `data`, masked as TFRecord files store it.
#[inline]
pub fn masked_crc(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[inline]
fn crc32c(data: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if data.len() < MIN_LONG && is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction.
        return unsafe { crc32c_short(data) };
    }
    crc32c::crc32c(data)
}

/// The CRC-32C of a short record (most have a few dozen bytes), eight bytes at a time; x86 needs no alignment.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn crc32c_short(data: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

    let (eights, rest) = data.as_chunks::<8>();
    let crc = eights.iter().fold(u64::from(u32::MAX), |crc, bytes| _mm_crc32_u64(crc, u64::from_le_bytes(*bytes)));
    // The instruction returns 32 bits in a 64-bit register.
    let mut crc = crc as u32;
    let (fours, rest) = rest.as_chunks::<4>();
    for bytes in fours {
        crc = _mm_crc32_u32(crc, u32::from_le_bytes(*bytes));
    }
    for byte in rest {
        crc = _mm_crc32_u8(crc, *byte);
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn any_length_at_any_place_is_what_the_crate_says() {
        let data: Vec<u8> = (0..1000_u32).map(|i| (i * i / 7) as u8).collect();
        for begin in 0..9 {
            for end in begin..data.len() {
                let part = &data[begin..end];
                assert_eq!(crc32c(part), ::crc32c::crc32c(part), "{begin}..{end}");
            }
        }
        // RFC 3720, appendix B.4: 32 bytes of zeros.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }
}
