//! The dataflow engine: graph, ops, kernels, gradients, plan, executor, session.
//!
#![doc = include_str!("../README.md")]
//!
//! The map, from the ground up; a file takes names from its own floor and those below. Values ([`dtype`], [`shape`], [`buffer`],
//! [`tensor`], [`mod@convert`]); the [`device`]s that have them, with their [`resources`]; the [`ops`] and their [`geometry`];
//! the program ([`graph`], [`functions`], [`gradients`]); what computes it ([`kernel`], [`kernels`]); how it becomes a plan
//! ([`compile`]) and is run ([`run`]); a [`session`], which does both; and what uses sessions ([`models`], [`training`],
//! [`tasks`]).

mod array;
pub mod buffer;
pub mod checkpoint;
pub mod compile;
pub mod convert;
pub mod data;
mod denormals;
pub mod device;
pub mod dtype;
mod error;
pub mod freeze;
pub mod functions;
pub mod geometry;
pub mod gradients;
pub mod graph;
pub mod kernel;
pub mod kernels;
pub mod layers;
pub mod lookup;
pub mod memory;
pub mod models;
pub mod numpy;
pub mod ops;
pub mod optimizer;
pub mod philox;
pub mod prelude;
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
pub use error::Error;
pub use graph::{Graph, NodeId, Output};
pub use session::{Callable, Numerics, RunOptions, Session, SessionOptions};
pub use shape::{PartialShape, Shape};
pub use tensor::Tensor;
