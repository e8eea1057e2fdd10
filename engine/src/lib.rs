//! The dataflow engine: graph, ops, kernels, gradients, plan, executor, session.
//!
//! The map, in the order in which data flows: values ([`dtype`], [`shape`], [`buffer`], [`tensor`]), the program
//! ([`graph`], [`ops`]), what computes it ([`kernels`], [`resources`]).

pub mod buffer;
pub mod dtype;
pub mod graph;
pub mod kernels;
pub mod ops;
pub mod resources;
pub mod shape;
pub mod tensor;
pub mod trace;

pub use dtype::DType;
pub use graph::{Graph, NodeId, Output};
pub use shape::{PartialShape, Shape};
pub use tensor::Tensor;
