//! The form of a scalar's records, which mostly differ only in wall time, step and value.
//!
//! A record that equals the tag's last record in all other bytes, and whose step has as many bytes, is the same message
//! with other numbers: it is decoded without parsing its fields.

use std::ops::Range;

use formats::wire::{Fields, Value};

use crate::{series::Point, tensor};

/// The bytes of an event's wall time, field 1, after its key; the key of the step, field 2, follows.
const WALL_RANGE: Range<usize> = 1..9;
const WALL_KEY: u8 = 1 << 3 | 1;
const STEP_KEY: u8 = 2 << 3;
const STEP_BEGIN: usize = WALL_RANGE.end + 1;

/// The last record of a tag, with the ranges of its step and its number.
#[derive(Debug)]
pub(super) struct Form {
    record: Box<[u8]>,
    step: Range<usize>,
    number: Range<usize>,
}

impl Form {
    /// Returns the form of an event with wall time, step and a summary of one value, in this order, as all writers
    /// write it. `None` for other events, and for values that are not a number of 4 or 8 bytes.
    pub fn from_record(record: &[u8]) -> Option<Self> {
        if record.first() != Some(&WALL_KEY) || record.get(WALL_RANGE.end) != Some(&STEP_KEY) {
            return None;
        }
        let n_step = record[STEP_BEGIN..].iter().take(10).position(|byte| *byte < 0x80)? + 1;
        let step = STEP_BEGIN..STEP_BEGIN + n_step;
        let value = only_field(only_field(&record[step.end..], 5)?, 1)?;
        let number = number_bytes(value)?;
        // `number` is a subslice of `record`, so that the difference of the pointers is its position.
        let begin = number.as_ptr() as usize - record.as_ptr() as usize;
        Some(Self { record: record.into(), step, number: begin..begin + number.len() })
    }

    /// Returns the point of a record of this form; `None` for any other record.
    #[inline]
    pub fn point(&self, record: &[u8]) -> Option<Point> {
        let known = &*self.record;
        if record.len() != known.len() || record[0] != WALL_KEY || record[WALL_RANGE.end] != STEP_KEY {
            return None;
        }
        let step = parse_step(&record[self.step.clone()])?;
        let between_numbers = self.step.end..self.number.start;
        if record[between_numbers.clone()] != known[between_numbers]
            || record[self.number.end..] != known[self.number.end..]
        {
            return None;
        }
        let wall = f64::from_le_bytes(record[WALL_RANGE].try_into().ok()?);
        let number = &record[self.number.clone()];
        let value = match number.len() {
            4 => f64::from(f32::from_le_bytes(number.try_into().ok()?)),
            _ => f64::from_le_bytes(number.try_into().ok()?),
        };
        Some(Point { step, wall, value })
    }
}

/// Parses a varint that fills `bytes`; `None` for a shorter or longer one.
#[inline]
fn parse_step(bytes: &[u8]) -> Option<i64> {
    let (last, more) = bytes.split_last()?;
    let mut value = 0_u64;
    for (i, byte) in more.iter().enumerate() {
        if *byte < 0x80 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
    }
    (*last < 0x80).then(|| (value | u64::from(*last) << (7 * more.len())) as i64)
}

/// Returns the bytes of a message's only field, if the field has this number.
fn only_field(message: &[u8], field_number: u32) -> Option<&[u8]> {
    let mut fields = Fields::new(message);
    match (fields.next()?.ok()?, fields.next()) {
        ((number, Value::Bytes(bytes)), None) if number == field_number => Some(bytes),
        _ => None,
    }
}

/// Returns the bytes of the number of a `Summary.Value`; if several fields have a number, those of the last.
fn number_bytes(value: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields::new(value);
    let mut number = None;
    while let Some(field) = fields.next() {
        let end = value.len() - fields.rest().len();
        match field.ok()? {
            (2, Value::Fixed32(_)) => number = Some(&value[end - 4..end]),
            (8, Value::Bytes(tensor)) => number = tensor::scalar_bytes(tensor),
            (4..=6, _) => number = None,
            _ => {}
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use formats::proto::{
        DataType, Event, Summary, SummaryMetadata, TensorProto, event::What, summary, summary_metadata::PluginData,
    };
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn event(step: i64, wall: f64, values: Vec<summary::value::Value>) -> Vec<u8> {
        let plugin = PluginData { plugin_name: "scalars".into(), content: Vec::new() };
        let metadata = SummaryMetadata { plugin_data: Some(plugin), ..SummaryMetadata::default() };
        let value = |value| summary::Value {
            tag: "train/loss".into(),
            metadata: Some(metadata.clone()),
            value: Some(value),
            ..summary::Value::default()
        };
        let what = Some(What::Summary(Summary { value: values.into_iter().map(value).collect() }));
        Event { wall_time: wall, step, what, source_metadata: None }.encode_to_vec()
    }

    fn tensor(proto: TensorProto) -> summary::value::Value {
        summary::value::Value::Tensor(TensorProto { tensor_shape: Some(Default::default()), ..proto })
    }

    /// A number in each of the forms that writers use.
    fn forms(x: f64) -> [summary::value::Value; 5] {
        let single = x as f32;
        let (float, double) = (DataType::DtFloat.into(), DataType::DtDouble.into());
        let content = |dtype, bytes: &[u8]| TensorProto { dtype, tensor_content: bytes.into(), ..Default::default() };
        [
            summary::value::Value::SimpleValue(single),
            tensor(content(float, &single.to_le_bytes())),
            tensor(content(double, &x.to_le_bytes())),
            tensor(TensorProto { dtype: float, float_val: vec![single], ..Default::default() }),
            tensor(TensorProto { dtype: double, double_val: vec![x], ..Default::default() }),
        ]
    }

    proptest! {
        /// What the short way gives, prost gives; records that differ elsewhere are left to the long way.
        #[test]
        fn a_form_gives_what_the_message_holds(
            steps in (1_i64.., any::<i64>()),
            // Zeros are left out of messages.
            walls in (prop::num::f64::NORMAL, prop::num::f64::NORMAL),
            numbers in any::<(f64, f64)>(),
            i in 0_usize..5,
            (at, flip) in (0_usize..200, 1_u8..),
        ) {
            let form = Form::from_record(&event(steps.0, walls.0, vec![forms(numbers.0)[i].clone()])).unwrap();
            let mut record = event(steps.1, walls.1, vec![forms(numbers.1)[i].clone()]);
            let value = if [2, 4].contains(&i) { numbers.1 } else { f64::from(numbers.1 as f32) };
            let given = form.point(&record);
            if let Some(point) = given {
                prop_assert_eq!(point.step, steps.1);
                prop_assert_eq!([point.wall, point.value].map(f64::to_bits), [walls.1, value].map(f64::to_bits));
            }
            prop_assert_eq!(given.is_some(), record.len() == form.record.len());
            // One byte changed: still this message with other numbers, or not taken.
            let at = at % record.len();
            record[at] ^= flip;
            if let (Some(point), Ok(event)) = (form.point(&record), Event::decode(&record[..])) {
                prop_assert_eq!((point.step, point.wall.to_bits()), (event.step, event.wall_time.to_bits()));
                let is_number = WALL_RANGE.contains(&at) || form.step.contains(&at) || form.number.contains(&at);
                prop_assert!(is_number, "byte {} is no part of a number", at);
            }
        }
    }

    #[test]
    fn other_records_have_no_form() {
        let x = || forms(1.0)[0].clone();
        let histogram = summary::value::Value::Histo(Default::default());
        // Without a step, with two values, with none, of another kind, cut.
        let records = [
            event(0, 1.0, vec![x()]),
            event(1, 1.0, vec![x(), x()]),
            event(1, 1.0, vec![]),
            event(1, 1.0, vec![histogram]),
        ];
        for record in records {
            assert!(Form::from_record(&record).is_none());
        }
        let whole = event(1, 1.0, vec![x()]);
        assert!((0..whole.len()).all(|n| Form::from_record(&whole[..n]).is_none()));
        let shaped = TensorProto { dtype: DataType::DtFloat.into(), float_val: vec![1.0, 2.0], ..Default::default() };
        assert!(Form::from_record(&event(1, 1.0, vec![tensor(shaped)])).is_none());
    }
}
