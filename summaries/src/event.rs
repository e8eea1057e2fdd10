//! Events and their values as views into a record, without copies; payloads are decoded only when they are used.
//!
//! The field numbers are those of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.

use formats::wire::{Fields, Malformed, Value};

/// An event's wall time, step and payload.
#[derive(Debug, PartialEq)]
pub(crate) struct EventView<'a> {
    pub wall: f64,
    pub step: i64,
    pub kind: EventKind<'a>,
}

/// An event's payload, serialised.
#[derive(Debug, PartialEq)]
pub(crate) enum EventKind<'a> {
    Summary(&'a [u8]),
    Graph(&'a [u8]),
    MetaGraph(&'a [u8]),
    /// A `TaggedRunMetadata`.
    RunMetadata(&'a [u8]),
    /// The file's version, log lines, session states: not summaries.
    Other,
}

impl<'a> EventView<'a> {
    /// The fields of `tensorflow.Event`, whatever their order.
    pub fn parse(record: &'a [u8]) -> Result<Self, Malformed> {
        let mut event = Self { wall: 0.0, step: 0, kind: EventKind::Other };
        for field in Fields::new(record) {
            match field? {
                (1, Value::Fixed64(bits)) => event.wall = f64::from_bits(bits),
                (2, Value::Varint(step)) => event.step = step as i64,
                (4, Value::Bytes(bytes)) => event.kind = EventKind::Graph(bytes),
                (5, Value::Bytes(bytes)) => event.kind = EventKind::Summary(bytes),
                (8, Value::Bytes(bytes)) => event.kind = EventKind::RunMetadata(bytes),
                (9, Value::Bytes(bytes)) => event.kind = EventKind::MetaGraph(bytes),
                _ => {}
            }
        }
        Ok(event)
    }
}

/// A `Summary.Value`.
#[derive(Debug, PartialEq)]
pub(crate) struct ValueView<'a> {
    pub tag: &'a [u8],
    pub node_name: &'a [u8],
    /// The serialised `SummaryMetadata`, which many writers write with a tag's first value only.
    pub metadata: Option<&'a [u8]>,
    pub data: Data<'a>,
}

/// The forms of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Data<'a> {
    Simple(f32),
    Histogram(&'a [u8]),
    Tensor(&'a [u8]),
    Image(&'a [u8]),
    Audio(&'a [u8]),
    /// Metadata alone (hyperparameters), or a form from before TensorFlow 1.
    None,
}

/// The values of a serialised `Summary`.
pub(crate) fn values(summary: &[u8]) -> impl Iterator<Item = Result<ValueView<'_>, Malformed>> {
    Fields::new(summary).filter_map(|field| match field {
        Ok((1, Value::Bytes(value))) => Some(ValueView::parse(value)),
        Ok(_) => None,
        Err(e) => Some(Err(e)),
    })
}

impl<'a> ValueView<'a> {
    fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut view = Self { tag: &[], node_name: &[], metadata: None, data: Data::None };
        for field in Fields::new(value) {
            match field? {
                (1, Value::Bytes(tag)) => view.tag = tag,
                (2, Value::Fixed32(bits)) => view.data = Data::Simple(f32::from_bits(bits)),
                (4, Value::Bytes(image)) => view.data = Data::Image(image),
                (5, Value::Bytes(histogram)) => view.data = Data::Histogram(histogram),
                (6, Value::Bytes(audio)) => view.data = Data::Audio(audio),
                (7, Value::Bytes(name)) => view.node_name = name,
                (8, Value::Bytes(tensor)) => view.data = Data::Tensor(tensor),
                (9, Value::Bytes(metadata)) => view.metadata = Some(metadata),
                _ => {}
            }
        }
        Ok(view)
    }
}

/// `SummaryMetadata.plugin_data.plugin_name`; empty when there is none.
pub(crate) fn plugin_name(metadata: &[u8]) -> Result<&[u8], Malformed> {
    let mut name = &[][..];
    for field in Fields::new(metadata) {
        if let (1, Value::Bytes(plugin_data)) = field? {
            for field in Fields::new(plugin_data) {
                if let (1, Value::Bytes(bytes)) = field? {
                    name = bytes;
                }
            }
        }
    }
    Ok(name)
}
