//! Tensors as bytes: how each element type lies in a safetensors file.
//!
//! Types that the format has are stored as they are, little endian. The others (strings, quantized numbers, complex128)
//! are a vector of bytes whose true type and shape stand in the file's metadata; strings as
//! `n + 1` offsets (u64, little endian, from the first string's first byte) and then their bytes.

use std::borrow::Cow;

use super::CheckpointError;
use crate::buffer::Allocator;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorError};

/// The format's names of element types, by TensorFlow's.
const NAMES: [(&str, &str); 14] = [
    ("float", "F32"),
    ("double", "F64"),
    ("half", "F16"),
    ("bfloat16", "BF16"),
    ("int8", "I8"),
    ("int16", "I16"),
    ("int32", "I32"),
    ("int64", "I64"),
    ("uint8", "U8"),
    ("uint16", "U16"),
    ("uint32", "U32"),
    ("uint64", "U64"),
    ("bool", "BOOL"),
    ("complex64", "C64"),
];

/// The format's name of a type, where it has one.
pub(super) fn format_name(dtype: DType) -> Option<&'static str> {
    NAMES.iter().find(|(name, _)| *name == dtype.name()).map(|(_, format)| *format)
}

/// The type with this name in the format, where this engine has it.
pub(super) fn from_format_name(name: &str) -> Option<DType> {
    NAMES.iter().find(|(_, format)| *format == name).and_then(|(name, _)| DType::from_name(name))
}

/// The bytes of a tensor as they are stored.
pub(super) fn to_bytes<'a>(name: &str, t: &'a Tensor) -> Result<Cow<'a, [u8]>, CheckpointError> {
    if t.dtype().size() > 0 {
        return Ok(Cow::Borrowed(t.bytes()));
    }
    let strings = t.strings().map_err(|_| CheckpointError::Unstorable { name: name.into(), dtype: t.dtype() })?;
    let n_bytes: usize = strings.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(n_bytes + 8 * (strings.len() + 1));
    let mut offset = 0u64;
    out.extend_from_slice(&offset.to_le_bytes());
    for s in strings {
        offset += s.len() as u64;
        out.extend_from_slice(&offset.to_le_bytes());
    }
    strings.iter().for_each(|s| out.extend_from_slice(s));
    Ok(Cow::Owned(out))
}

/// Bytes that are not those of a tensor of the type and shape that they are said to be.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    #[error("{got} bytes for a {dtype} tensor of shape {shape}")]
    Size { got: usize, dtype: DType, shape: Shape },
    #[error("the offsets of its strings are not sound")]
    Offsets,
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The tensor whose bytes these are.
pub(super) fn from_bytes(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Tensor, DecodeError> {
    let size_error = || DecodeError::Size { got: bytes.len(), dtype, shape: shape.clone() };
    let n = shape.checked_n_elements().ok_or_else(size_error)?;
    if dtype.size() > 0 {
        if n.checked_mul(dtype.size()) != Some(bytes.len()) {
            return Err(size_error());
        }
        return Ok(numbers(dtype, shape, bytes)?);
    }
    if dtype != DType::String {
        return Err(size_error());
    }
    let n_offset_bytes = n.checked_add(1).and_then(|n| n.checked_mul(8)).ok_or_else(size_error)?;
    let (offsets, data) = bytes.split_at_checked(n_offset_bytes).ok_or_else(size_error)?;
    let (offsets, _) = offsets.as_chunks::<8>();
    let position = |o: &[u8; 8]| usize::try_from(u64::from_le_bytes(*o)).unwrap_or(usize::MAX);
    let one = |pair: &[[u8; 8]]| data.get(position(&pair[0])..position(&pair[1])).map(<[u8]>::to_vec);
    let strings: Option<Vec<Vec<u8>>> = offsets.windows(2).map(one).collect();
    let sound = offsets.first().map(position) == Some(0) && offsets.last().map(position) == Some(data.len());
    let strings = strings.filter(|_| sound).ok_or(DecodeError::Offsets)?;
    Ok(Tensor::from_strings(shape, strings)?)
}

/// A tensor of a type that lives in a buffer (a `bool` is true where its byte is not 0).
pub fn numbers(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Tensor, TensorError> {
    match dtype {
        DType::Bool => Tensor::from_vec(shape, bytes.iter().map(|b| *b != 0).collect()),
        _ => Tensor::from_bytes(dtype, shape, bytes, Allocator::host()),
    }
}

/// Checksum of a tensor: of its name, type and shape too, so that a damaged header is noticed.
pub(super) fn checksum(name: &str, dtype: DType, shape: &Shape, bytes: &[u8]) -> u32 {
    let head = crc32c::crc32c(format!("{name}\0{dtype}\0{shape}\0").as_bytes());
    crc32c::crc32c_append(head, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive_and_wild_offsets_do_not() {
        let t = Tensor::from_strings([2, 2], vec![b"a".to_vec(), vec![], vec![0, 255], b"xyz".to_vec()]).unwrap();
        let bytes = to_bytes("t", &t).unwrap().into_owned();
        assert_eq!(from_bytes(DType::String, Shape::new(&[2, 2]), &bytes).unwrap(), t);
        for cut in 0..bytes.len() {
            assert!(from_bytes(DType::String, Shape::new(&[2, 2]), &bytes[..cut]).is_err());
        }
        for i in 0..40 {
            let mut wild = bytes.clone();
            wild[i] ^= 0x40;
            assert!(from_bytes(DType::String, Shape::new(&[2, 2]), &wild).is_err(), "{i}");
        }
        assert!(from_bytes(DType::String, Shape::new(&[1 << 60]), &bytes).is_err());
        assert!(from_bytes(DType::F32, Shape::new(&[1 << 61]), &bytes).is_err());
    }
}
