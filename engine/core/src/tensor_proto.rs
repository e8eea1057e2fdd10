//! Tensors from and to protobuf's `TensorProto`.
//!
//! A proto may write fewer values than the shape has elements: the last one then repeats. What a proto claims is
//! checked before memory is taken: a shape beyond [`MAX_REPEATED`] elements must bring its values.

use formats::proto::{DataType, TensorProto, TensorShapeProto, tensor_shape_proto::Dim};

use crate::buffer::Allocator;
use crate::dtype::{Complex32, Complex64, DType, Element, QInt8, QInt16, QInt32, QUInt8, QUInt16, bf16, f16};
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
    let dtype = DType::from_number_or_reference(proto.dtype);
    let dtype = dtype.ok_or(TensorProtoError::DType(proto.dtype))?;
    let shape = match &proto.tensor_shape {
        Some(s) => shape_from_proto(s)?,
        None => PartialShape::scalar(),
    };
    let shape = shape.known().ok_or_else(|| TensorProtoError::Shape(shape.to_string()))?;
    let n = shape.checked_n_elements().ok_or_else(|| TensorProtoError::Shape(shape.to_string()))?;
    let from = Source { proto, dtype, shape, n };
    match dtype {
        DType::F32 => from.numbers(&proto.float_val, |v| *v),
        DType::F64 => from.numbers(&proto.double_val, |v| *v),
        DType::I32 => from.numbers(&proto.int_val, |v| *v),
        DType::I64 => from.numbers(&proto.int64_val, |v| *v),
        DType::I8 => from.numbers(&proto.int_val, |v| *v as i8),
        DType::I16 => from.numbers(&proto.int_val, |v| *v as i16),
        DType::U8 => from.numbers(&proto.int_val, |v| *v as u8),
        DType::U16 => from.numbers(&proto.int_val, |v| *v as u16),
        DType::U32 => from.numbers(&proto.uint32_val, |v| *v),
        DType::U64 => from.numbers(&proto.uint64_val, |v| *v),
        DType::F16 => from.numbers(&proto.half_val, |v| f16::from_bits(*v as u16)),
        DType::BF16 => from.numbers(&proto.half_val, |v| bf16::from_bits(*v as u16)),
        DType::C64 => from.numbers(proto.scomplex_val.as_chunks::<2>().0, |[re, im]| Complex32::new(*re, *im)),
        DType::C128 => from.numbers(proto.dcomplex_val.as_chunks::<2>().0, |[re, im]| Complex64::new(*re, *im)),
        DType::QI8 => from.numbers(&proto.int_val, |v| QInt8(*v as i8)),
        DType::QU8 => from.numbers(&proto.int_val, |v| QUInt8(*v as u8)),
        DType::QI16 => from.numbers(&proto.int_val, |v| QInt16(*v as i16)),
        DType::QU16 => from.numbers(&proto.int_val, |v| QUInt16(*v as u16)),
        DType::QI32 => from.numbers(&proto.int_val, |v| QInt32(*v)),
        DType::Bool => from.bools(),
        DType::String => {
            from.check_count(proto.string_val.len())?;
            let mut values = proto.string_val.clone();
            let last = values.last().cloned().unwrap_or_default();
            values.resize(from.n, last);
            Ok(Tensor::from_strings(from.shape, values)?)
        }
        DType::Resource | DType::Variant => Err(TensorProtoError::DType(proto.dtype)),
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

    /// Numbers, from their bytes (little endian, as this engine's machines are) or one by one.
    fn numbers<T: Element, V>(self, values: &[V], convert: fn(&V) -> T) -> Result<Tensor, TensorProtoError> {
        let content = &self.proto.tensor_content;
        if !content.is_empty() {
            if self.n.checked_mul(size_of::<T>()) != Some(content.len()) {
                return Err(self.count_error("bytes", content.len()));
            }
            return Ok(Tensor::from_bytes(self.dtype, self.shape, content, Allocator::host())?);
        }
        self.check_count(values.len())?;
        let mut t = Tensor::zeros(self.dtype, self.shape, Allocator::host())?;
        if let (Some(out), Some(last)) = (t.slice_mut::<T>()?, values.last()) {
            out.iter_mut().zip(values).for_each(|(o, v)| *o = convert(v));
            out[values.len()..].fill(convert(last));
        }
        Ok(t)
    }

    /// Any byte but 0 is true.
    fn bools(self) -> Result<Tensor, TensorProtoError> {
        let proto = self.proto;
        let content = &proto.tensor_content;
        if content.is_empty() {
            return self.numbers(&proto.bool_val, |v| *v);
        }
        if content.len() != self.n {
            return Err(self.count_error("bytes", content.len()));
        }
        Ok(Tensor::from_vec(self.shape, content.iter().map(|b| *b != 0).collect())?)
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "tensors' bytes are written and read as they lie in memory");

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
            Tensor::vector(&[f16::from_f32(1.5), f16::NAN]),
            Tensor::scalar(bf16::from_f32(-2.0)),
            Tensor::vector(&[Complex32::new(1.0, -2.0), Complex32::new(0.0, 3.0)]),
            Tensor::scalar(Complex64::new(1e300, -2.0)),
            Tensor::vector(&[QInt8(-7), QInt8(7)]),
        ];
        for t in all {
            assert_eq!(from_proto(&to_proto(&t)).unwrap(), t);
        }
    }

    #[test]
    fn each_type_has_its_field_of_values() {
        let of = |p: TensorProto| from_proto(&p).unwrap();
        let halves = of(TensorProto { half_val: vec![0x3c00, 0x4000], ..proto(DType::F16, &[3]) });
        assert_eq!(halves.slice::<f16>().unwrap(), [1.0, 2.0, 2.0].map(f16::from_f32));
        let brains = of(TensorProto { half_val: vec![0x3f80], ..proto(DType::BF16, &[2]) });
        assert_eq!(brains.slice::<bf16>().unwrap(), [1.0, 1.0].map(bf16::from_f32));
        let complex = of(TensorProto { scomplex_val: vec![1.0, 2.0, 3.0, 4.0], ..proto(DType::C64, &[3]) });
        assert_eq!(complex.slice::<Complex32>().unwrap()[2], Complex32::new(3.0, 4.0));
        let small = of(TensorProto { int_val: vec![-1, 255], ..proto(DType::U16, &[2]) });
        assert_eq!(small.slice::<u16>().unwrap(), [65535, 255]);
        let large = of(TensorProto { uint64_val: vec![u64::MAX], ..proto(DType::U64, &[1]) });
        assert_eq!(large.slice::<u64>().unwrap(), [u64::MAX]);
        let reference = of(TensorProto { float_val: vec![1.5], dtype: 101, ..proto(DType::F32, &[]) });
        assert_eq!(reference, Tensor::scalar(1.5f32));
        let bools = of(TensorProto { tensor_content: vec![0, 2], ..proto(DType::Bool, &[2]) });
        assert_eq!(bools.slice::<bool>().unwrap(), [false, true]);
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
        assert_eq!(err(&TensorProto { dtype: 24, ..Default::default() }), "element type number 24 is not supported");
    }
}
