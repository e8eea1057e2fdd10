//! The size of an image file, from its first bytes.

/// Width and height in pixels of a PNG, GIF, JPEG or WebP file; 0 where it is none.
pub(crate) fn size(file: &[u8]) -> (u32, u32) {
    png(file).or_else(|| gif(file)).or_else(|| jpeg(file)).or_else(|| webp(file)).unwrap_or((0, 0))
}

fn big(bytes: &[u8]) -> Option<u32> {
    Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

fn little(bytes: &[u8]) -> Option<u32> {
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

fn png(file: &[u8]) -> Option<(u32, u32)> {
    file.starts_with(b"\x89PNG\r\n\x1a\n").then_some(())?;
    Some((big(file.get(16..20)?)?, big(file.get(20..24)?)?))
}

fn gif(file: &[u8]) -> Option<(u32, u32)> {
    file.starts_with(b"GIF8").then_some(())?;
    Some((little(file.get(6..8)?)?, little(file.get(8..10)?)?))
}

/// The frame header is in one of the segments: 0xFF, a kind, a length of two bytes.
fn jpeg(file: &[u8]) -> Option<(u32, u32)> {
    file.starts_with(b"\xff\xd8").then_some(())?;
    let mut at = 2;
    loop {
        let kind = *file.get(at + 1)?;
        (*file.get(at)? == 0xff).then_some(())?;
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            return Some((big(file.get(at + 7..at + 9)?)?, big(file.get(at + 5..at + 7)?)?));
        }
        at += 2 + big(file.get(at + 2..at + 4)?)?.max(2) as usize;
    }
}

fn webp(file: &[u8]) -> Option<(u32, u32)> {
    (file.starts_with(b"RIFF") && file.get(8..12)? == b"WEBP").then_some(())?;
    match file.get(12..16)? {
        b"VP8X" => Some((little(file.get(24..27)?)? + 1, little(file.get(27..30)?)? + 1)),
        b"VP8 " => Some((little(file.get(26..28)?)? & 0x3fff, little(file.get(28..30)?)? & 0x3fff)),
        _ => None,
    }
}

/// Whether an image file has its end: a program may still be writing it.
pub(crate) fn is_complete(file: &[u8]) -> bool {
    let ends_with = |end: &[u8]| file.len() > end.len() && file.ends_with(end);
    match file {
        [0x89, b'P', b'N', b'G', ..] => ends_with(b"IEND\xaeB`\x82"),
        [0xff, 0xd8, ..] => ends_with(b"\xff\xd9"),
        _ => !file.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ends() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x05\0\0\0\x04\x08\x02\0\0\0".to_vec();
        assert_eq!((size(&png), is_complete(&png)), ((5, 4), false));
        png.extend(b"\0\0\0\0IEND\xaeB`\x82");
        assert!(is_complete(&png));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x0b\x08\0\x04\0\x05\x01\x01\x11\0\xff\xd9";
        assert_eq!((size(jpeg), is_complete(jpeg)), ((5, 4), true));
        assert_eq!(size(b"GIF89a\x05\0\x04\0"), (5, 4));
        assert_eq!(size(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x04\0\0\x03\0\0"), (5, 4));
        for cut in 0..jpeg.len() {
            let _ = size(&jpeg[..cut]);
        }
        assert_eq!(size(b"text"), (0, 0));
        assert!(!is_complete(b""));
    }
}
