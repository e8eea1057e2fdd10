//! The dataflow engine: graph, ops, kernels, gradients, plan, executor, session.
//!
#![doc = include_str!("../README.md")]
//!
//! The map, from the ground up; a file takes names from its own floor and those below. Values ([`dtype`], [`shape`], [`buffer`],
//! [`tensor`], [`mod@convert`]); the [`device`]s that have them, with their [`resources`]; the [`ops`] and their [`geometry`];
//! the program ([`graph`], [`functions`], [`gradients`]); what computes it ([`kernel`], [`kernels`]); how it becomes a plan
//! ([`compile`]) and is run ([`run`]); a [`session`], which does both; and what uses sessions ([`models`], [`training`],
//! [`tasks`]).

pub mod checkpoint;
pub mod compile;
pub mod data;
mod denormals;
mod error;
pub mod freeze;
pub mod layers;
pub mod models;
pub mod optimizer;
pub mod prelude;
pub mod queues;
pub mod run;
pub mod schedule;
pub mod session;
pub mod slices;
pub mod tasks;
pub mod training;

pub use engine_core::{
    DType, Graph, NodeId, Output, PartialShape, Shape, Tensor, buffer, convert, device, dtype, functions, geometry,
    graph, kernel, lookup, memory, numpy, ops, philox, readers, resources, shape, strided, tensor, tensor_list,
    tensor_proto, window,
};
pub use engine_ops::{gradients, kernels};

pub use error::Error;
pub use session::{Callable, Numerics, RunOptions, Session, SessionOptions};
