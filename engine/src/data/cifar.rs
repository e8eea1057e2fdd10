//! The binary files of CIFAR-10 and CIFAR-100: records of labels and a 32x32 picture, plane by plane, gzipped or not.
//!
//! A record of CIFAR-10 is a label and 3,072 pixels (red, green, blue planes); one of CIFAR-100 has a coarse label before
//! the fine one (www.cs.toronto.edu/~kriz/cifar.html).

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::files::{FileError, open};
use super::idx::LabelledImages;
use engine_core::tensor::Tensor;

const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const PIXELS: usize = 3 * PLANE;
/// More records than this are not read.
const MAX_RECORDS: usize = 10_000_000;

/// The images of a CIFAR-10 file, u8 `[n, 32, 32, 3]`, and their labels, 0 to 9.
///
/// # Errors
/// It cannot be read, is no whole number of records, or has a label out of range.
pub fn cifar10(path: impl AsRef<Path>) -> Result<LabelledImages, FileError> {
    read(path.as_ref(), open(path.as_ref())?, 1, 10)
}

/// The images of a CIFAR-100 file, u8 `[n, 32, 32, 3]`, and their fine labels, 0 to 99.
///
/// # Errors
/// As [`cifar10`].
pub fn cifar100(path: impl AsRef<Path>) -> Result<LabelledImages, FileError> {
    read(path.as_ref(), open(path.as_ref())?, 2, 100)
}

/// `n_labels` bytes before the pixels, the last of which counts and is below `limit`.
fn read(path: &Path, source: impl Read, n_labels: usize, limit: u8) -> Result<LabelledImages, FileError> {
    let mut start = BufReader::new(source);
    let gzipped = start.fill_buf().map_err(|e| FileError::read(path, e))?.starts_with(&[0x1f, 0x8b]);
    let mut from: Box<dyn Read> = if gzipped { Box::new(MultiGzDecoder::new(start)) } else { Box::new(start) };
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    let mut record = Vec::new();
    loop {
        record.clear();
        let len = n_labels + PIXELS;
        from.by_ref().take(len as u64).read_to_end(&mut record).map_err(|e| FileError::read(path, e))?;
        if record.is_empty() {
            break;
        }
        let n = labels.len();
        if record.len() < len {
            return Err(FileError::format(path, format!("record {n} is cut short")));
        }
        let label = record[n_labels - 1];
        if label >= limit {
            return Err(FileError::format(path, format!("record {n} has label {label}, expected 0 to {}", limit - 1)));
        }
        if n == MAX_RECORDS {
            return Err(FileError::format(path, format!("more than {MAX_RECORDS} records")));
        }
        labels.push(label);
        let pixels = &record[n_labels..];
        images.extend((0..PLANE).flat_map(|i| [pixels[i], pixels[PLANE + i], pixels[2 * PLANE + i]]));
    }
    let n = labels.len();
    let shape_error = |e: engine_core::tensor::TensorError| FileError::format(path, e.to_string());
    Ok(LabelledImages {
        images: Tensor::from_vec([n, SIDE, SIDE, 3], images).map_err(shape_error)?,
        labels: Tensor::from_vec([n], labels).map_err(shape_error)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::idx::parse_idx;
    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn records_become_interleaved_pixels() {
        let mut file = vec![0u8; 2 * 3074];
        for (i, record) in file.chunks_mut(3074).enumerate() {
            record[1] = 42 + i as u8;
            record[2 + 5] = 1;
            record[2 + 1024 + 5] = 2;
            record[2 + 2048 + 5] = 3;
        }
        for bytes in [file.clone(), gzip(&file)] {
            let all = read(Path::new("f"), bytes.as_slice(), 2, 100).unwrap();
            assert_eq!(all.images.dims(), [2, 32, 32, 3]);
            assert_eq!(all.images.slice::<u8>().unwrap()[15..18], [1, 2, 3]);
            assert_eq!(all.labels.slice::<u8>().unwrap(), [42, 43]);
        }
        let error = |bytes: &[u8]| read(Path::new("f"), bytes, 1, 10).err().unwrap().to_string();
        assert_eq!(error(&file[..3000]), "f: record 0 is cut short");
        assert_eq!(error(&[[10].as_slice(), &[0; 3072]].concat()), "f: record 0 has label 10, expected 0 to 9");
        assert!(error(&gzip(&file)[..20]).starts_with("f: "));
    }

    #[test]
    fn idx_arrays_of_all_types_are_read_and_hostile_ones_refused() {
        let file = |kind: u8, dims: &[u32], data: &[u8]| {
            let mut out = vec![0, 0, kind, dims.len() as u8];
            dims.iter().for_each(|d| out.extend(d.to_be_bytes()));
            out.extend_from_slice(data);
            out
        };
        let ok = |bytes: &[u8]| parse_idx(Path::new("f"), bytes).unwrap();
        assert_eq!(ok(&file(8, &[2, 1], &[3, 4])), Tensor::from_vec([2, 1], vec![3u8, 4]).unwrap());
        assert_eq!(ok(&file(0xc, &[1], &[0, 0, 1, 2])), Tensor::vector(&[258i32]));
        assert_eq!(ok(&file(0xd, &[1], &1.5f32.to_be_bytes())), Tensor::vector(&[1.5f32]));
        assert_eq!(ok(&gzip(&file(0xe, &[1], &(-2.0f64).to_be_bytes()))), Tensor::vector(&[-2.0f64]));
        assert_eq!(ok(&file(0xb, &[2], &[0, 1, 0xff, 0xff])), Tensor::vector(&[1i16, -1]));
        let error = |bytes: &[u8]| parse_idx(Path::new("f"), bytes).unwrap_err().to_string();
        assert_eq!(error(&file(8, &[3], &[1, 2])), "f: it has 2 of 3 bytes of elements");
        assert_eq!(error(&file(8, &[1], &[1, 2])), "f: it goes on behind its elements");
        assert_eq!(error(&file(7, &[1], &[1])), "f: it does not begin as an IDX file");
        assert_eq!(error(&file(0xe, &[u32::MAX; 4], &[])), "f: its dimensions are too large");
        assert_eq!(error(&file(8, &[1 << 30], &[0; 9])), "f: it has 9 of 1073741824 bytes of elements");
        assert!(error(b"").starts_with("f: "));
        let whole = gzip(&file(8, &[100], &[7; 100]));
        (0..whole.len()).for_each(|n| assert!(parse_idx(Path::new("f"), &whole[..n]).is_err(), "cut at {n}"));
    }
}
