//! Tensors from and to NumPy's arrays.
//!
//! Quantised integers become the plain ones; bfloat16 becomes `V2`, as NumPy writes it where `ml_dtypes` defines the type.

use formats::npy::{Array, ElementType, Kind};

use crate::buffer::Allocator;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorError};

/// Why an array is no tensor, or a tensor no array.
#[derive(Debug, thiserror::Error)]
pub enum NumpyError {
    /// There is no such element type here.
    #[error("no tensor has elements of NumPy's type {0}")]
    NoSuchType(String),
    /// A byte of a bool array is neither 0 nor 1.
    #[error("element {0} of a bool array is neither 0 nor 1")]
    NotBool(usize),
    /// A character of a text is none.
    #[error("element {0} is no text: a character in it does not exist")]
    NotText(usize),
    /// A tensor of handles or variants has no array.
    #[error("a tensor of {0} cannot be an array")]
    NoArray(DType),
    /// It is too large, or there is no memory.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl Tensor {
    /// The tensor of an array's elements; bytes and texts become strings (texts in UTF-8).
    ///
    /// # Errors
    /// There is no such type, an element is not of it, or there is no memory.
    pub fn from_npy(array: &Array) -> Result<Tensor, NumpyError> {
        let shape = Shape::new(&array.shape);
        let element = array.element;
        match element.kind {
            Kind::Bytes | Kind::Unicode => return strings(array, shape),
            Kind::Bool => {
                if let Some(i) = array.data.iter().position(|byte| *byte > 1) {
                    return Err(NumpyError::NotBool(i));
                }
                return Ok(Tensor::from_vec(shape, array.data.iter().map(|byte| *byte == 1).collect())?);
            }
            _ => {}
        }
        let no_such_type = || NumpyError::NoSuchType(element.descr());
        let dtype = NUMBERS.iter().find(|(_, plain)| *plain == element).ok_or_else(no_such_type)?.0;
        Ok(Tensor::from_bytes(dtype, shape, &array.data, Allocator::host())?)
    }

    /// The array of the tensor's elements; strings become bytes of the longest one's length.
    ///
    /// # Errors
    /// The elements are handles or variants.
    pub fn to_npy(&self) -> Result<Array, NumpyError> {
        let shape = self.dims().to_vec();
        if self.dtype() == DType::String {
            let strings = self.strings()?;
            // NumPy has no type of size 0 that it can read back.
            let size = strings.iter().map(Vec::len).max().unwrap_or(0).max(1);
            let mut data = vec![0; size * strings.len()];
            for (to, string) in data.chunks_exact_mut(size).zip(strings) {
                to[..string.len()].copy_from_slice(string);
            }
            return Ok(Array { element: ElementType::new(Kind::Bytes, size), shape, data });
        }
        let element = match self.dtype() {
            DType::Bool => ElementType::new(Kind::Bool, 1),
            dtype => NUMBERS.iter().find(|(d, _)| *d == dtype).ok_or(NumpyError::NoArray(dtype))?.1,
        };
        Ok(Array { element, shape, data: self.bytes().to_vec() })
    }
}

const fn plain(kind: Kind, size: usize) -> ElementType {
    ElementType { kind, size }
}

/// Types and what they are to NumPy; from NumPy the first one counts.
const NUMBERS: &[(DType, ElementType)] = &[
    (DType::F16, plain(Kind::Float, 2)),
    (DType::F32, plain(Kind::Float, 4)),
    (DType::F64, plain(Kind::Float, 8)),
    (DType::BF16, plain(Kind::Void, 2)),
    (DType::I8, plain(Kind::Int, 1)),
    (DType::I16, plain(Kind::Int, 2)),
    (DType::I32, plain(Kind::Int, 4)),
    (DType::I64, plain(Kind::Int, 8)),
    (DType::U8, plain(Kind::UInt, 1)),
    (DType::U16, plain(Kind::UInt, 2)),
    (DType::U32, plain(Kind::UInt, 4)),
    (DType::U64, plain(Kind::UInt, 8)),
    (DType::C64, plain(Kind::Complex, 8)),
    (DType::C128, plain(Kind::Complex, 16)),
    (DType::QI8, plain(Kind::Int, 1)),
    (DType::QU8, plain(Kind::UInt, 1)),
    (DType::QI16, plain(Kind::Int, 2)),
    (DType::QU16, plain(Kind::UInt, 2)),
    (DType::QI32, plain(Kind::Int, 4)),
];

/// Strings without the zeros that fill them up.
fn strings(array: &Array, shape: Shape) -> Result<Tensor, NumpyError> {
    let n = shape.checked_n_elements().ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
    if array.element.size == 0 {
        let max = isize::MAX as usize / size_of::<Vec<u8>>();
        let n = (n <= max).then_some(n).ok_or_else(|| TensorError::TooLarge(Box::new(shape.clone())))?;
        return Ok(Tensor::from_strings(shape, vec![Vec::new(); n])?);
    }
    let string = |(i, bytes): (usize, &[u8])| match array.element.kind {
        Kind::Unicode => {
            let points = bytes.as_chunks::<4>().0.iter().map(|point| char::from_u32(u32::from_le_bytes(*point)));
            let text: Option<String> = points.collect();
            text.map(|text| text.trim_end_matches('\0').as_bytes().to_vec()).ok_or(NumpyError::NotText(i))
        }
        _ => Ok(bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)].to_vec()),
    };
    let values = array.data.chunks_exact(array.element.size).enumerate().map(string).collect::<Result<_, _>>()?;
    Ok(Tensor::from_strings(shape, values)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back() {
        for dtype in DType::ALL.iter().filter(|d| d.size() > 0 && !d.is_quantized()) {
            let t = Tensor::zeros(*dtype, Shape::new(&[2, 3]), Allocator::host()).unwrap();
            assert_eq!(Tensor::from_npy(&t.to_npy().unwrap()).unwrap(), t, "{dtype}");
        }
        let text = Tensor::from_strings([3], vec![b"ab".to_vec(), Vec::new(), b"c".to_vec()]).unwrap();
        assert_eq!(Tensor::from_npy(&text.to_npy().unwrap()).unwrap(), text);
    }

    #[test]
    fn elements_are_checked() {
        let array = |kind, size, data: &[u8]| Array { element: plain(kind, size), shape: vec![1], data: data.to_vec() };
        assert!(matches!(Tensor::from_npy(&array(Kind::Bool, 1, &[2])), Err(NumpyError::NotBool(0))));
        assert!(matches!(Tensor::from_npy(&array(Kind::Unicode, 4, &[0, 0xd8, 0, 0])), Err(NumpyError::NotText(0))));
        let text = Tensor::from_npy(&array(Kind::Unicode, 8, &[0xe9, 0, 0, 0, 0, 0, 0, 0])).unwrap();
        assert_eq!(text, Tensor::from_strings([1], vec!["\u{e9}".into()]).unwrap());
        assert!(Tensor::from_npy(&array(Kind::Bytes, 0, &[])).is_ok());
    }
}
