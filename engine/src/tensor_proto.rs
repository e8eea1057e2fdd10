//! Tensors from and to protobuf's `TensorProto`.
//!
//! A proto may write fewer values than the shape has elements: the last one then repeats. What a proto claims is
//! checked before memory is taken: a shape beyond [`MAX_REPEATED`] elements must bring its values.

use formats::proto::{DataType, TensorProto, TensorShapeProto, tensor_shape_proto::Dim};

use crate::buffer::Allocator;
use crate::dtype::{DType, Element};
use crate::shape::{PartialShape, Shape};
use crate::tensor::{Tensor, TensorError};

/// Elements that one repeated value may stand for.
const MAX_REPEATED: usize = 1 << 26;

/// Why a proto is not a tensor.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TensorProtoError {
    /// The element type is not one of this engine's.
    #[error("element type number {0} is not supported")]
    DType(i32),
    /// The shape is unknown, negative, too large or of too high a rank.
    #[error("{0} is not the shape of a tensor")]
    Shape(String),
    /// The number of values or bytes does not fit the shape.
    #[error("{got} {unit} for a {dtype} tensor of shape {shape}")]
    Count {
        /// What was counted.
        unit: &'static str,
        /// How many there are.
        got: usize,
        /// The element type.
        dtype: DType,
        /// The shape.
        shape: Shape,
    },
    /// The tensor could not be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The shape that a proto writes, possibly partial.
///
/// # Errors
/// A dimension is below -1, or the rank too high.
pub fn shape_from_proto(proto: &TensorShapeProto) -> Result<PartialShape, TensorProtoError> {
    if proto.unknown_rank {
        return Ok(PartialShape::unknown());
    }
    let bad = || TensorProtoError::Shape(format!("{:?}", proto.dim.iter().take(9).map(|d| d.size).collect::<Vec<_>>()));
    if proto.dim.len() > 254 {
        return Err(bad());
    }
    let dim = |d: &Dim| match usize::try_from(d.size) {
        Ok(d) => Ok(Some(d)),
        Err(_) if d.size == -1 => Ok(None),
        Err(_) => Err(bad()),
    };
    Ok(PartialShape::new(&proto.dim.iter().map(dim).collect::<Result<Vec<_>, _>>()?))
}

/// The proto of a shape.
pub fn shape_to_proto(shape: &PartialShape) -> TensorShapeProto {
    let dim = |d: &Option<usize>| Dim { size: d.map_or(-1, |d| d as i64), name: String::new() };
    TensorShapeProto {
        dim: shape.dims().unwrap_or_default().iter().map(dim).collect(),
        unknown_rank: shape.dims().is_none(),
    }
}

/// A tensor of the values of a proto.
///
/// # Errors
/// Type, shape and values do not fit each other, or the type is not supported.
pub fn from_proto(proto: &TensorProto) -> Result<Tensor, TensorProtoError> {
    let dtype = DType::from_number(proto.dtype).filter(|d| *d != DType::Resource);
    let dtype = dtype.ok_or(TensorProtoError::DType(proto.dtype))?;
    let shape = match &proto.tensor_shape {
        Some(s) => shape_from_proto(s)?,
        None => PartialShape::scalar(),
    };
    let shape = shape.known().ok_or_else(|| TensorProtoError::Shape(shape.to_string()))?;
    let n = shape.checked_n_elements().ok_or_else(|| TensorProtoError::Shape(shape.to_string()))?;
    let from = Source { proto, dtype, shape, n };
    match dtype {
        DType::F32 => from.numbers(&proto.float_val, |v| *v, f32::from_le_bytes),
        DType::F64 => from.numbers(&proto.double_val, |v| *v, f64::from_le_bytes),
        DType::I32 => from.numbers(&proto.int_val, |v| *v, i32::from_le_bytes),
        DType::I64 => from.numbers(&proto.int64_val, |v| *v, i64::from_le_bytes),
        DType::U8 => from.numbers(&proto.int_val, |v| *v as u8, u8::from_le_bytes),
        DType::Bool => from.numbers(&proto.bool_val, |v| *v, |[b]: [u8; 1]| b != 0),
        DType::String => {
            from.check_count(proto.string_val.len())?;
            let mut values = proto.string_val.clone();
            let last = values.last().cloned().unwrap_or_default();
            values.resize(from.n, last);
            Ok(Tensor::from_strings(from.shape, values)?)
        }
        DType::Resource => Err(TensorProtoError::DType(proto.dtype)),
    }
}

/// A proto with its type and shape understood.
struct Source<'a> {
    proto: &'a TensorProto,
    dtype: DType,
    shape: Shape,
    n: usize,
}

impl Source<'_> {
    fn count_error(&self, unit: &'static str, got: usize) -> TensorProtoError {
        TensorProtoError::Count { unit, got, dtype: self.dtype, shape: self.shape.clone() }
    }

    fn check_count(&self, got: usize) -> Result<(), TensorProtoError> {
        if got > self.n || (got < self.n && self.n > MAX_REPEATED) {
            return Err(self.count_error("values", got));
        }
        Ok(())
    }

    fn numbers<T: Element + Default, V, const N: usize>(
        self,
        values: &[V],
        convert: fn(&V) -> T,
        from_bytes: fn([u8; N]) -> T,
    ) -> Result<Tensor, TensorProtoError> {
        let content = &self.proto.tensor_content;
        if !content.is_empty() {
            if self.n.checked_mul(N) != Some(content.len()) {
                return Err(self.count_error("bytes", content.len()));
            }
            let (chunks, _) = content.as_chunks::<N>();
            return Ok(Tensor::from_vec(self.shape, chunks.iter().map(|c| from_bytes(*c)).collect())?);
        }
        self.check_count(values.len())?;
        let mut t = Tensor::zeros(self.dtype, self.shape, Allocator::host())?;
        if let (Some(out), Some(last)) = (t.slice_mut::<T>()?, values.last()) {
            out.iter_mut().zip(values).for_each(|(o, v)| *o = convert(v));
            out[values.len()..].fill(convert(last));
        }
        Ok(t)
    }
}

/// The proto of a tensor: its bytes as they are, strings one by one. A resource handle has only its type.
pub fn to_proto(t: &Tensor) -> TensorProto {
    let mut proto = TensorProto {
        dtype: t.dtype() as i32,
        tensor_shape: Some(shape_to_proto(&t.shape().into())),
        ..Default::default()
    };
    match (t.dtype(), t.len()) {
        (DType::String, _) => proto.string_val = t.strings().unwrap_or_default().to_vec(),
        // As TensorFlow writes scalars, which reads better as text.
        (DType::F32, 1) => proto.float_val = t.slice::<f32>().unwrap_or_default().to_vec(),
        (DType::I32, 1) => proto.int_val = t.slice::<i32>().unwrap_or_default().to_vec(),
        _ => proto.tensor_content = t.bytes().to_vec(),
    }
    proto
}

/// The number of a dtype in a proto.
pub fn dtype_to_proto(dtype: DType) -> i32 {
    DataType::try_from(dtype as i32).map_or(0, |d| d as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proto(dtype: DType, dims: &[i64]) -> TensorProto {
        let dim = dims.iter().map(|d| Dim { size: *d, name: String::new() }).collect();
        let tensor_shape = Some(TensorShapeProto { dim, unknown_rank: false });
        TensorProto { dtype: dtype as i32, tensor_shape, ..Default::default() }
    }

    #[test]
    fn the_last_value_repeats() {
        let p = TensorProto { float_val: vec![1.0, 2.0], ..proto(DType::F32, &[2, 2]) };
        assert_eq!(from_proto(&p).unwrap().slice::<f32>().unwrap(), [1.0, 2.0, 2.0, 2.0]);
        assert_eq!(from_proto(&proto(DType::I64, &[3])).unwrap().slice::<i64>().unwrap(), [0, 0, 0]);
    }

    #[test]
    fn tensors_survive_the_way_there_and_back() {
        let all = [
            Tensor::from_vec([2, 1], vec![1.5f32, -0.0]).unwrap(),
            Tensor::scalar(7i32),
            Tensor::vector(&[true, false]),
            Tensor::vector::<f64>(&[]),
            Tensor::from_strings([2], vec![b"a".to_vec(), vec![255]]).unwrap(),
        ];
        for t in all {
            assert_eq!(from_proto(&to_proto(&t)).unwrap(), t);
        }
    }

    #[test]
    fn claims_beyond_the_values_are_refused_without_memory() {
        let err = |p: &TensorProto| from_proto(p).unwrap_err().to_string();
        assert_eq!(err(&proto(DType::F32, &[1 << 40])), "0 values for a float tensor of shape [1099511627776]");
        assert_eq!(err(&proto(DType::F32, &[i64::MAX, 8])), "[9223372036854775807,8] is not the shape of a tensor");
        assert_eq!(err(&proto(DType::F32, &[-2])), "[-2] is not the shape of a tensor");
        assert_eq!(err(&proto(DType::F32, &[-1])), "[?] is not the shape of a tensor");
        let p = TensorProto { tensor_content: vec![0; 7], ..proto(DType::F32, &[2]) };
        assert_eq!(err(&p), "7 bytes for a float tensor of shape [2]");
        let p = TensorProto { float_val: vec![0.0; 3], ..proto(DType::F32, &[2]) };
        assert_eq!(err(&p), "3 values for a float tensor of shape [2]");
        assert_eq!(err(&TensorProto { dtype: 14, ..Default::default() }), "element type number 14 is not supported");
    }
}
