//! The dataflow engine: graph, ops, kernels, gradients, plan, executor, session.
//!
//! The map, in the order in which data flows: values ([`dtype`], [`shape`], [`buffer`], [`tensor`], [`mod@convert`]), the program
//! ([`graph`], [`ops`]), what computes it ([`kernels`], [`resources`], [`device`]), and how: a [`session`] compiles what is
//! asked of it to a [`plan`], which the [`executor`] runs on the threads of a [`pool`], emitting events ([`trace`]).

mod array;
pub mod buffer;
pub mod checkpoint;
pub mod compile;
pub mod convert;
pub mod data;
mod denormals;
pub mod device;
pub mod dtype;
pub mod freeze;
pub mod functions;
pub mod gradients;
pub mod graph;
pub mod kernel;
pub mod kernels;
pub mod lookup;
pub mod memory;
pub mod models;
pub mod numpy;
pub mod ops;
pub mod optimizer;
pub mod philox;
pub mod queues;
pub mod readers;
pub mod resources;
pub mod run;
pub mod schedule;
pub mod session;
pub mod shape;
pub mod slices;
pub mod strided;
pub mod tasks;
pub mod tensor;
pub mod tensor_list;
pub mod tensor_proto;
mod trace;
pub mod training;
pub mod window;

pub use dtype::DType;
pub use graph::{Graph, NodeId, Output};
pub use session::{Callable, Numerics, RunOptions, Session, SessionOptions};
pub use shape::{PartialShape, Shape};
pub use tensor::Tensor;
