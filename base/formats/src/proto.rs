//! Protobuf messages of TensorFlow's graphs and event files, generated from `proto/tensorflow/*.proto`.
//!
//! Maps are ordered, so the same message always encodes to the same bytes.

// The generated code: its documentation is the comments of the .proto files, which do not cover every field.
#[allow(missing_docs, unused_qualifications, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/tensorflow.rs"));
}

pub use generated::*;

/// The serialised `FileDescriptorSet` of every message here, for the text format.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
