//! IDX files, in which MNIST and its relatives come: an array of numbers behind a header, gzipped or not.
//!
//! ```text
//! offset  size
//!      0     2  0
//!      2     1  element type: 8 u8, 9 i8, 0xb i16, 0xc i32, 0xd f32, 0xe f64
//!      3     1  number of dimensions
//!      4   4*n  dimensions, u32 each
//!      .     .  elements, row-major
//! ```
//! All numbers are big endian (yann.lecun.com/exdb/mnist).

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::files::{FileError, open};
use engine_core::buffer::Allocator;
use engine_core::dtype::DType;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Bytes of the largest array.
const MAX_BYTES: usize = 8 << 30;
/// What is set aside before the elements prove to be there.
const FIRST_BYTES: usize = 1 << 24;

/// The array of an IDX file.
///
/// # Errors
/// It cannot be read, is cut short or too long, or is no IDX file.
pub fn read_idx(path: impl AsRef<Path>) -> Result<Tensor, FileError> {
    let path = path.as_ref();
    parse_idx(path, open(path)?)
}

pub(super) fn parse_idx(path: &Path, source: impl Read) -> Result<Tensor, FileError> {
    let mut start = BufReader::new(source);
    let gzipped = start.fill_buf().map_err(|e| FileError::read(path, e))?.starts_with(&[0x1f, 0x8b]);
    let mut from: Box<dyn Read> = if gzipped { Box::new(MultiGzDecoder::new(start)) } else { Box::new(start) };
    let bad = |problem: &str| FileError::format(path, problem);
    let mut magic = [0; 4];
    from.read_exact(&mut magic).map_err(|e| FileError::read(path, e))?;
    let dtype = match magic {
        [0, 0, 8, _] => DType::U8,
        [0, 0, 9, _] => DType::I8,
        [0, 0, 0xb, _] => DType::I16,
        [0, 0, 0xc, _] => DType::I32,
        [0, 0, 0xd, _] => DType::F32,
        [0, 0, 0xe, _] => DType::F64,
        _ => return Err(bad("it does not begin as an IDX file")),
    };
    let rank = usize::from(magic[3]);
    if rank > Shape::MAX_RANK {
        return Err(bad("it has too many dimensions"));
    }
    let mut dims = Vec::new();
    for _ in 0..rank {
        let mut dim = [0; 4];
        from.read_exact(&mut dim).map_err(|e| FileError::read(path, e))?;
        dims.push(u32::from_be_bytes(dim) as usize);
    }
    let shape = Shape::new(&dims);
    let n_bytes = shape.checked_n_elements().and_then(|n| n.checked_mul(dtype.size())).filter(|n| *n <= MAX_BYTES);
    let n_bytes = n_bytes.ok_or_else(|| bad("its dimensions are too large"))?;
    let mut bytes = Vec::with_capacity(n_bytes.min(FIRST_BYTES));
    from.by_ref().take(n_bytes as u64).read_to_end(&mut bytes).map_err(|e| FileError::read(path, e))?;
    if bytes.len() < n_bytes {
        return Err(bad(&format!("it has {} of {n_bytes} bytes of elements", bytes.len())));
    }
    if from.read(&mut [0]).map_err(|e| FileError::read(path, e))? > 0 {
        return Err(bad("it goes on behind its elements"));
    }
    bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    Tensor::from_bytes(dtype, shape, &bytes, Allocator::host()).map_err(|e| bad(&e.to_string()))
}

/// Images and labels, as MNIST's files hold them.
pub struct LabelledImages {
    /// u8, `[n, height, width]` or `[n, height, width, channels]`.
    pub images: Tensor,
    /// u8, `[n]`.
    pub labels: Tensor,
}

/// A pair of IDX files of images and their labels, as MNIST's.
///
/// # Errors
/// As [`read_idx`]; or they are not images and as many labels.
pub fn mnist(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<LabelledImages, FileError> {
    let (all, of) = (read_idx(&images)?, read_idx(&labels)?);
    if all.dtype() != DType::U8 || all.shape().rank() != 3 {
        let got = format!("{}{} are no images of bytes", all.dtype(), all.shape());
        return Err(FileError::format(images.as_ref(), got));
    }
    if of.dtype() != DType::U8 || of.dims() != &all.dims()[..1] {
        let got = format!("{}{} are no labels of {} images", of.dtype(), of.shape(), all.dims()[0]);
        return Err(FileError::format(labels.as_ref(), got));
    }
    Ok(LabelledImages { images: all, labels: of })
}
