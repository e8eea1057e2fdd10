//! Decodes histograms from their messages.
//!
//! Writers pack the numbers, which are then read from the message's bytes; any other form that protobuf allows is
//! decoded by `prost`. The field numbers are those of `HistogramProto` in tensorflow/core/framework/summary.proto.

use formats::{
    proto::{DataType, HistogramProto},
    wire::{Fields, Value},
};
use prost::Message;

use crate::{damage::DamageKind, histogram::Histogram, tensor};

/// Decodes TensorFlow 1's form: limits, counts and totals.
pub(super) fn decode_proto(bytes: &[u8], into: &mut Histogram) -> Result<(), DamageKind> {
    if let Some((totals, limits, counts)) = parse_packed(bytes) {
        let numbers = |bytes| f64s(bytes).ok_or(DamageKind::Undecodable);
        let (limits, counts) = (numbers(limits)?, numbers(counts)?);
        return set_limits(into, &totals, limits, counts);
    }
    let proto = HistogramProto::decode(bytes).map_err(|_| DamageKind::Undecodable)?;
    set_limits(into, &proto, proto.bucket_limit.iter().copied(), proto.bucket.iter().copied())
}

/// Decodes TensorFlow 2's form: a tensor of shape `[k, 3]`.
pub(super) fn decode_tensor(bytes: &[u8], into: &mut Histogram) -> Result<(), DamageKind> {
    if let Some((dtype, content)) = tensor::content_of_rows(bytes, 3) {
        match dtype {
            DataType::DtFloat => {
                let (rows, _) = content.as_chunks::<12>();
                into.set_rows(rows.iter().map(|row| numbers(row, |b| f64::from(f32::from_le_bytes(b)))));
                return Ok(());
            }
            DataType::DtDouble => {
                let (rows, _) = content.as_chunks::<24>();
                into.set_rows(rows.iter().map(|row| numbers(row, f64::from_le_bytes)));
                return Ok(());
            }
            _ => {}
        }
    }
    let (tensor, numbers) = tensor::decode(bytes)?;
    match tensor::shape(&tensor).as_deref() {
        Some([_, 3]) => {
            into.set_rows(numbers.as_chunks().0.iter().copied());
            Ok(())
        }
        _ => Err(DamageKind::Undecodable),
    }
}

fn set_limits(
    into: &mut Histogram,
    totals: &HistogramProto,
    limits: impl ExactSizeIterator<Item = f64>,
    counts: impl ExactSizeIterator<Item = f64>,
) -> Result<(), DamageKind> {
    if limits.len() != counts.len() {
        return Err(DamageKind::Undecodable);
    }
    into.set_limits(totals, limits.zip(counts));
    Ok(())
}

/// Parses the totals, and finds the bytes of limits and counts; `None` unless each of the two is packed in one field.
fn parse_packed(proto: &[u8]) -> Option<(HistogramProto, &[u8], &[u8])> {
    let mut totals = HistogramProto::default();
    let (mut limits, mut counts) = (None, None);
    for field in Fields::new(proto) {
        match field.ok()? {
            (1, Value::Fixed64(bits)) => totals.min = f64::from_bits(bits),
            (2, Value::Fixed64(bits)) => totals.max = f64::from_bits(bits),
            (3, Value::Fixed64(bits)) => totals.num = f64::from_bits(bits),
            (4, Value::Fixed64(bits)) => totals.sum = f64::from_bits(bits),
            (5, Value::Fixed64(bits)) => totals.sum_squares = f64::from_bits(bits),
            (6, Value::Bytes(bytes)) if limits.is_none() => limits = Some(bytes),
            (7, Value::Bytes(bytes)) if counts.is_none() => counts = Some(bytes),
            _ => return None,
        }
    }
    Some((totals, limits.unwrap_or_default(), counts.unwrap_or_default()))
}

fn f64s(bytes: &[u8]) -> Option<impl ExactSizeIterator<Item = f64>> {
    let (numbers, rest) = bytes.as_chunks();
    rest.is_empty().then(|| numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)))
}

/// The three numbers of a row, each of `N` bytes.
fn numbers<const N: usize>(row: &[u8], read: impl Fn([u8; N]) -> f64) -> [f64; 3] {
    let (cells, _) = row.as_chunks::<N>();
    [read(cells[0]), read(cells[1]), read(cells[2])]
}

#[cfg(test)]
mod tests {
    use formats::proto::{TensorProto, TensorShapeProto, tensor_shape_proto::Dim};
    use proptest::prelude::*;

    use super::*;

    /// By the message, number for number.
    fn expected_of_tensor(proto: &TensorProto) -> Option<Histogram> {
        let numbers = tensor::numbers(proto)?;
        let [_, 3] = tensor::shape(proto)?[..] else { return None };
        let mut histogram = Histogram::default();
        histogram.set_rows(numbers.as_chunks().0.iter().copied());
        Some(histogram)
    }

    proptest! {
        /// The short way and the general one agree, on whole messages and on messages with a byte changed.
        #[test]
        fn tensors_are_read_as_their_messages_say(
            values in prop::collection::vec(any::<f64>(), 0..30),
            is_double in any::<bool>(),
            n_rows in 0_i64..10,
            n_columns in prop_oneof![4 => Just(3_i64), 1 => 0_i64..5],
            (at, flip) in (0_usize..400, any::<u8>()),
        ) {
            let content: Vec<u8> = match is_double {
                true => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
                false => values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect(),
            };
            let dim = [n_rows, n_columns].map(|size| Dim { size, name: String::new() }).to_vec();
            let proto = TensorProto {
                dtype: if is_double { DataType::DtDouble } else { DataType::DtFloat }.into(),
                tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
                tensor_content: content,
                ..TensorProto::default()
            };
            let mut bytes = proto.encode_to_vec();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            let expected = TensorProto::decode(&bytes[..]).ok().and_then(|proto| expected_of_tensor(&proto));
            let mut found = Histogram::default();
            let result = decode_tensor(&bytes, &mut found);
            prop_assert_eq!(result.ok().map(|()| found.bits()), expected.map(|expected| expected.bits()));
        }

        #[test]
        fn old_histograms_are_read_as_their_messages_say(
            totals in prop::array::uniform5(any::<f64>()),
            bucket_limit in prop::collection::vec(any::<f64>(), 0..20),
            bucket in prop::collection::vec(prop_oneof![Just(0.0), any::<f64>()], 0..20),
            is_paired in prop::bool::weighted(0.8),
            (at, flip) in (0_usize..400, any::<u8>()),
        ) {
            let n = if is_paired { bucket_limit.len().min(bucket.len()) } else { 20 };
            let [min, max, num, sum, sum_squares] = totals;
            let bucket_limit = bucket_limit.into_iter().take(n).collect();
            let bucket = bucket.into_iter().take(n).collect();
            let mut bytes =
                HistogramProto { min, max, num, sum, sum_squares, bucket_limit, bucket }.encode_to_vec();
            if !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] ^= flip;
            }
            let proto = HistogramProto::decode(&bytes[..]).ok();
            let expected = proto.filter(|p| p.bucket.len() == p.bucket_limit.len()).map(|p| {
                let mut histogram = Histogram::default();
                histogram.set_limits(&p, p.bucket_limit.iter().copied().zip(p.bucket.iter().copied()));
                histogram
            });
            let mut found = Histogram::default();
            let result = decode_proto(&bytes, &mut found);
            prop_assert_eq!(result.ok().map(|()| found.bits()), expected.map(|expected| expected.bits()));
        }
    }
}
