//! XPlane and StepStats, generated from `proto/tensorflow/profile.proto`.

// The generated code: its documentation is the comments of the .proto file, which do not cover every field.
#[allow(missing_docs, unused_qualifications, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/tensorflow.profile.rs"));
}

pub use generated::*;
