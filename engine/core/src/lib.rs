//! What the engine is built on: values, devices, the vocabulary of ops, the graph, what a kernel is. Programs use it through the
//! crate `engine`.
//!
//! From the ground up; a file takes names from its own floor and those below: values ([`dtype`], [`shape`], [`buffer`],
//! [`tensor`], [`mod@convert`]); the [`device`]s that have them, with their [`resources`]; the vocabulary of [`ops`] and their
//! [`geometry`]; the program ([`graph`], [`functions`]); what a [`kernel`] is.

mod array;
pub mod buffer;
pub mod checkpoint;
pub mod convert;
pub mod device;
pub mod dtype;
pub mod functions;
pub mod geometry;
pub mod graph;
pub mod kernel;
pub mod lookup;
pub mod memory;
pub mod numpy;
pub mod ops;
pub mod philox;
pub mod queues;
pub mod readers;
pub mod resources;
pub mod shape;
pub mod strided;
pub mod tensor;
pub mod tensor_list;
pub mod tensor_proto;
pub mod trace;
pub mod window;

pub use dtype::DType;
pub use graph::{Graph, NodeId, Output};
pub use shape::{PartialShape, Shape};
pub use tensor::Tensor;
