//! Protobuf's wire format, field by field, without building messages.
//!
//! This module is for readers that need a few fields of millions of messages. Strings are returned as bytes: a reader
//! may accept or repair a tag that is not UTF-8, for which a generated message would reject the entire record.

/// A field's value by its wire type. Groups, which proto3 does not have, are malformed here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// int32, int64, uint32, uint64, bool, enum.
    Varint(u64),
    /// fixed64, double.
    Fixed64(u64),
    /// string, bytes, message, packed values.
    Bytes(&'a [u8]),
    /// fixed32, float.
    Fixed32(u32),
}

/// The error for bytes that are not a protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed protobuf message")]
pub struct Malformed;

/// Iterates over a message's fields, in their order. Ends after [`Malformed`].
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of `message`.
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The bytes after the last field that was returned.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    // Inlined: for millions of messages with a few fields each, calls would cost as much as the decoding.
    #[inline(always)]
    fn field(&mut self) -> Result<(u32, Value<'a>), Malformed> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|n| *n > 0).ok_or(Malformed)?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.chunk()?)),
            2 => Value::Bytes(self.delimited()?),
            5 => Value::Fixed32(u32::from_le_bytes(self.chunk()?)),
            _ => return Err(Malformed),
        };
        Ok((number, value))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        match self.rest {
            // The fast path: almost all keys and lengths have one byte.
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        prost::encoding::decode_varint(&mut self.rest).map_err(|_| Malformed)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (chunk, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*chunk)
    }

    #[inline]
    fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::proto::{Event, event::What};

    #[test]
    fn fields_are_those_that_prost_wrote() {
        let event = Event {
            wall_time: 1.5,
            step: -1,
            what: Some(What::FileVersion("brain.Event:2".into())),
            source_metadata: None,
        };
        let bytes = event.encode_to_vec();
        let fields: Vec<_> = Fields::new(&bytes).map(|f| f.unwrap()).collect();
        let expected = [
            (1, Value::Fixed64(1.5_f64.to_bits())),
            (2, Value::Varint(-1_i64 as u64)),
            (3, Value::Bytes(b"brain.Event:2")),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn cut_messages_are_malformed() {
        let event =
            Event { wall_time: 1.5, step: 300, what: Some(What::FileVersion("v".into())), source_metadata: None };
        let bytes = event.encode_to_vec();
        // Between fields a cut message is a shorter one.
        let whole = [0, 9, 12, bytes.len()];
        for n in 0..=bytes.len() {
            let is_whole = Fields::new(&bytes[..n]).all(|f| f.is_ok());
            assert_eq!(is_whole, whole.contains(&n), "cut at {n}");
        }
    }

    #[test]
    fn varints_have_at_most_64_bits() {
        let number = |last: u8| [&[8u8][..], &[0xff; 9], &[last]].concat();
        assert_eq!(Fields::new(&number(1)).next(), Some(Ok((1, Value::Varint(u64::MAX)))));
        assert_eq!(Fields::new(&number(2)).next(), Some(Err(Malformed)));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let n = Fields::new(&bytes).count();
            prop_assert!(n <= bytes.len());
        }
    }
}
