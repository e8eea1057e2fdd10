//! The numbers of a TensorProto, in either of its forms. The field numbers are those of
//! tensorflow/core/framework/tensor.proto.

use formats::{
    proto::{DataType, TensorProto},
    wire::{Fields, Value},
};
use half::{bf16, f16};
use prost::Message;

use crate::damage::DamageKind;

const FLOAT: u64 = DataType::DtFloat as u64;
const DOUBLE: u64 = DataType::DtDouble as u64;

/// The most elements to which a tensor with fewer values is filled up with its last value; real summaries have about
/// 100.
const MAX_FILLED: usize = 1 << 16;

/// Decodes the elements of a numeric tensor as f64, row by row; `None` when the tensor is not numeric, its parts do not
/// match, or it claims far more elements than it contains.
pub(crate) fn numbers(tensor: &TensorProto) -> Option<Vec<f64>> {
    let n = n_elements(tensor)?;
    if !tensor.tensor_content.is_empty() {
        return from_content(tensor.dtype(), &tensor.tensor_content).filter(|values| values.len() == n);
    }
    let mut values = typed_values(tensor)?;
    if values.len() > n || values.len() < n && (values.is_empty() || n > MAX_FILLED) {
        // C++ writers leave out all values of a tensor of zeros; large tensors without values are refused.
        return (values.is_empty() && n <= MAX_FILLED).then(|| vec![0.0; n]);
    }
    let last = values.last().copied().unwrap_or(0.0);
    values.resize(n, last);
    Some(values)
}

/// The sizes of the dimensions; `None` when one is unknown.
pub(crate) fn shape(tensor: &TensorProto) -> Option<Vec<usize>> {
    let dims = tensor.tensor_shape.as_ref().map_or(&[][..], |shape| &shape.dim);
    dims.iter().map(|dim| usize::try_from(dim.size).ok()).collect()
}

/// Decodes the number of a serialised scalar tensor as [`numbers`] does, but without building the message. `None` for
/// rare forms, which `numbers` may still decode.
pub(crate) fn scalar(tensor: &[u8]) -> Option<f64> {
    let mut dtype = 0;
    let (mut content, mut single, mut double) = (None, None, None);
    for field in Fields::new(tensor) {
        match field.ok()? {
            (1, Value::Varint(v)) => dtype = v,
            // Shapes with dimensions are left to `numbers`.
            (2, Value::Bytes([])) => {}
            (4, Value::Bytes(bytes)) => content = Some(bytes),
            (5, Value::Fixed32(bits)) => single = Some(f32::from_bits(bits)),
            (5, Value::Bytes(packed)) => single = Some(f32::from_le_bytes(packed.try_into().ok()?)),
            (6, Value::Fixed64(bits)) => double = Some(f64::from_bits(bits)),
            (6, Value::Bytes(packed)) => double = Some(f64::from_le_bytes(packed.try_into().ok()?)),
            (3, _) => {}
            _ => return None,
        }
    }
    match (dtype, content) {
        (FLOAT, Some(bytes)) => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        (DOUBLE, Some(bytes)) => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        (FLOAT, None) => single.map(f64::from),
        (DOUBLE, None) => double,
        _ => None,
    }
}

/// Finds the 4 or 8 bytes of [`scalar`]'s number in the tensor; `None` for rarer forms.
pub(crate) fn scalar_bytes(tensor: &[u8]) -> Option<&[u8]> {
    scalar(tensor)?;
    let (mut content, mut typed) = (None, None);
    for field in Fields::new(tensor) {
        match field.ok()? {
            (4, Value::Bytes(bytes)) => content = Some(bytes),
            (5, Value::Bytes(bytes)) | (6, Value::Bytes(bytes)) if typed.is_none() => typed = Some(bytes),
            // Values that are not packed, or in both fields, are left to `scalar`.
            (5 | 6, _) => return None,
            _ => {}
        }
    }
    content.or(typed)
}

/// The dtype and the bytes of a serialised tensor of shape `[k, n_columns]` whose numbers are all in `tensor_content`;
/// `None` for other forms.
pub(crate) fn content_of_rows(tensor: &[u8], n_columns: u64) -> Option<(DataType, &[u8])> {
    let (mut dtype, mut shape, mut content) = (DataType::DtInvalid, None, None);
    for field in Fields::new(tensor) {
        match field.ok()? {
            (1, Value::Varint(v)) => dtype = DataType::try_from(i32::try_from(v).ok()?).ok()?,
            (2, Value::Bytes(bytes)) if shape.is_none() => shape = Some(two_dims(bytes)?),
            (4, Value::Bytes(bytes)) => content = Some(bytes),
            _ => return None,
        }
    }
    let ([n_rows, n], content) = (shape?, content?);
    let size = match dtype {
        DataType::DtFloat => 4,
        DataType::DtDouble => 8,
        _ => return None,
    };
    let n_bytes = n_rows.checked_mul(n)?.checked_mul(size)?;
    (n == n_columns && n_rows > 0 && n_bytes == content.len() as u64).then_some((dtype, content))
}

/// Parses the sizes of a serialised shape's dimensions, if there are two of known size.
fn two_dims(shape: &[u8]) -> Option<[u64; 2]> {
    let mut dims = Fields::new(shape);
    let mut next = || match dims.next()?.ok()? {
        (2, Value::Bytes(dim)) => {
            let mut fields = Fields::new(dim);
            match (fields.next()?.ok()?, fields.next()) {
                ((1, Value::Varint(size)), None) if size <= i64::MAX as u64 => Some(size),
                _ => None,
            }
        }
        _ => None,
    };
    let sizes = [next()?, next()?];
    dims.next().is_none().then_some(sizes)
}

/// The number of elements of the shape; `None` for unknown sizes and products that overflow.
fn n_elements(tensor: &TensorProto) -> Option<usize> {
    let dims = tensor.tensor_shape.as_ref().map_or(&[][..], |shape| &shape.dim);
    dims.iter().try_fold(1_usize, |n, dim| n.checked_mul(usize::try_from(dim.size).ok()?))
}

/// Decodes the values in `tensor_content`.
fn from_content(dtype: DataType, bytes: &[u8]) -> Option<Vec<f64>> {
    fn all<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Option<Vec<f64>> {
        let (chunks, rest) = bytes.as_chunks::<N>();
        rest.is_empty().then(|| chunks.iter().map(|chunk| read(*chunk)).collect())
    }
    match dtype {
        DataType::DtFloat => all(bytes, |b| f64::from(f32::from_le_bytes(b))),
        DataType::DtDouble => all(bytes, f64::from_le_bytes),
        DataType::DtHalf => all(bytes, |b| f16::from_le_bytes(b).to_f64()),
        DataType::DtBfloat16 => all(bytes, |b| bf16::from_le_bytes(b).to_f64()),
        DataType::DtInt64 => all(bytes, |b| i64::from_le_bytes(b) as f64),
        DataType::DtUint64 => all(bytes, |b| u64::from_le_bytes(b) as f64),
        DataType::DtInt32 => all(bytes, |b| f64::from(i32::from_le_bytes(b))),
        DataType::DtUint32 => all(bytes, |b| f64::from(u32::from_le_bytes(b))),
        DataType::DtInt16 => all(bytes, |b| f64::from(i16::from_le_bytes(b))),
        DataType::DtUint16 => all(bytes, |b| f64::from(u16::from_le_bytes(b))),
        DataType::DtInt8 => all(bytes, |b| f64::from(i8::from_le_bytes(b))),
        DataType::DtUint8 | DataType::DtBool => all(bytes, |b| f64::from(u8::from_le_bytes(b))),
        _ => None,
    }
}

/// Decodes the values in the field of the tensor's type, such as `float_val`.
fn typed_values(tensor: &TensorProto) -> Option<Vec<f64>> {
    let t = tensor;
    Some(match t.dtype() {
        DataType::DtFloat => t.float_val.iter().map(|v| f64::from(*v)).collect(),
        DataType::DtDouble => t.double_val.clone(),
        DataType::DtHalf => halves(t, |bits| f16::from_bits(bits).to_f64())?,
        DataType::DtBfloat16 => halves(t, |bits| bf16::from_bits(bits).to_f64())?,
        DataType::DtInt64 => t.int64_val.iter().map(|v| *v as f64).collect(),
        DataType::DtUint64 => t.uint64_val.iter().map(|v| *v as f64).collect(),
        DataType::DtUint32 => t.uint32_val.iter().map(|v| f64::from(*v)).collect(),
        DataType::DtBool => t.bool_val.iter().map(|v| f64::from(u8::from(*v))).collect(),
        DataType::DtInt32 | DataType::DtInt16 | DataType::DtUint16 | DataType::DtInt8 | DataType::DtUint8 => {
            t.int_val.iter().map(|v| f64::from(*v)).collect()
        }
        _ => return None,
    })
}

/// Decodes the 16-bit floats of `half_val`, each in the low bits of an `int32`; `None` for larger integers: torch's
/// `add_tensor` writes the bits of 32-bit floats, which TensorBoard does not read either.
fn halves(tensor: &TensorProto, value: impl Fn(u16) -> f64) -> Option<Vec<f64>> {
    tensor.half_val.iter().map(|bits| u16::try_from(*bits).ok().map(&value)).collect()
}

/// Decodes a tensor's message and its numbers.
pub(crate) fn decode(bytes: &[u8]) -> Result<(TensorProto, Vec<f64>), DamageKind> {
    let tensor = TensorProto::decode(bytes).map_err(|_| DamageKind::Undecodable)?;
    let numbers = numbers(&tensor).ok_or(DamageKind::Undecodable)?;
    Ok((tensor, numbers))
}

#[cfg(test)]
mod tests {
    use formats::proto::{TensorShapeProto, tensor_shape_proto::Dim};

    use super::*;

    fn tensor(dtype: DataType, dims: &[i64]) -> TensorProto {
        let dim = dims.iter().map(|&size| Dim { size, name: String::new() }).collect();
        TensorProto {
            dtype: dtype.into(),
            tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
            ..TensorProto::default()
        }
    }

    #[test]
    fn both_forms_give_the_same_numbers() {
        let content = TensorProto {
            tensor_content: [1.5_f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
            ..tensor(DataType::DtFloat, &[2])
        };
        let typed = TensorProto { float_val: vec![1.5, -2.0], ..tensor(DataType::DtFloat, &[2]) };
        assert_eq!(numbers(&content), Some(vec![1.5, -2.0]));
        assert_eq!(numbers(&typed), numbers(&content));
    }

    #[test]
    fn the_short_way_agrees_with_the_general_one() {
        let floats = TensorProto { float_val: vec![0.1], ..tensor(DataType::DtFloat, &[]) };
        let doubles = TensorProto { double_val: vec![0.1], ..tensor(DataType::DtDouble, &[]) };
        let content = TensorProto { tensor_content: 0.1_f64.to_le_bytes().to_vec(), ..doubles.clone() };
        for proto in [floats, TensorProto { double_val: vec![], ..content }, doubles] {
            assert_eq!(scalar(&proto.encode_to_vec()).map(|v| vec![v]), numbers(&proto));
        }
        // Left to the general way: another type, a shape, a value of another type than it says.
        let ints = TensorProto { int64_val: vec![3], ..tensor(DataType::DtInt64, &[]) };
        let shaped = TensorProto { float_val: vec![0.1], ..tensor(DataType::DtFloat, &[1]) };
        let two = TensorProto { float_val: vec![0.1, 0.2], ..tensor(DataType::DtFloat, &[]) };
        for proto in [ints, shaped, two] {
            assert_eq!(scalar(&proto.encode_to_vec()), None);
        }
    }

    #[test]
    fn the_last_value_fills_up() {
        let filled = TensorProto { float_val: vec![1.0, 7.0], ..tensor(DataType::DtFloat, &[2, 2]) };
        assert_eq!(numbers(&filled), Some(vec![1.0, 7.0, 7.0, 7.0]));
    }

    #[test]
    fn claims_without_content_are_not_believed() {
        let huge = TensorProto { float_val: vec![1.0], ..tensor(DataType::DtFloat, &[1 << 40]) };
        assert_eq!(numbers(&huge), None);
        assert_eq!(numbers(&tensor(DataType::DtFloat, &[i64::MAX, i64::MAX])), None);
        assert_eq!(numbers(&tensor(DataType::DtFloat, &[-1])), None);
        let torn = TensorProto { tensor_content: vec![0; 7], ..tensor(DataType::DtFloat, &[2]) };
        assert_eq!(numbers(&torn), None);
        assert_eq!(numbers(&tensor(DataType::DtString, &[])), None);
    }

    #[test]
    fn half_precision() {
        for (dtype, bits, value) in [(DataType::DtHalf, 0x3555, 0.333_251_953_125), (DataType::DtBfloat16, 0x3f80, 1.0)]
        {
            let content = u16::to_le_bytes(bits).to_vec();
            assert_eq!(numbers(&TensorProto { tensor_content: content, ..tensor(dtype, &[1]) }), Some(vec![value]));
            let typed = TensorProto { half_val: vec![i32::from(bits)], ..tensor(dtype, &[1]) };
            assert_eq!(numbers(&typed), Some(vec![value]));
        }
        // The bytes that torch 2.15 writes for 0.5.
        let of_torch = TensorProto { half_val: vec![0x3f00_0000], ..tensor(DataType::DtHalf, &[]) };
        assert_eq!(numbers(&of_torch), None);
    }
}
