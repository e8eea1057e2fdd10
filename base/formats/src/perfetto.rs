//! Perfetto's trace format, generated from `proto/perfetto/trace.proto`.

// The generated code: its documentation is the comments of the .proto file, which do not cover every field.
#[allow(missing_docs, unused_qualifications, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/perfetto.protos.rs"));
}

pub use generated::*;
