//! Ops: the kinds of computation, with TensorFlow's names and attributes, and their registry.
//!
//! An op is written as one line of a table, in TensorFlow's own notation:
//! `op("MatMul", "a: T, b: T -> product: T", "transpose_a: bool = false; T: {float, double}", shape_fn)`.
//! Tables register in the link-time slice [`OP_TABLES`], which other crates may extend, or at run time with [`register`].

mod activation;
pub mod aliases;
mod array;
mod arrays;
mod attr;
mod candidates;
mod checkpoint;
mod collective;
pub(crate) mod control_flow;
mod conv;
mod ctc;
mod def;
pub(crate) mod einsum;
mod elementwise;
mod facts;
mod functional;
mod fused;
mod indexing;
mod infer;
mod input;
mod layout;
mod library;
mod linalg;
mod lookup;
mod math;
mod nn;
mod norm;
mod optional;
mod pool;
mod quantized;
mod queue;
mod random;
mod registry;
mod resize;
mod rnn;
mod scatter;
mod segment;
mod sequence;
mod shapes;
mod sparse;
mod spec;
mod staging;
mod state;
mod strings;
mod summary;
mod sync;
mod tensor_list;
mod training;
mod transfer;
mod variables;

pub(crate) use attr::wrong_kind;
pub use attr::{Attr, AttrError, AttrKind, FuncRef};
pub use def::{ArgDef, ArgType, AttrDef, OpDef, ShapeFn};
pub use facts::{Effect, OpKind};
pub(crate) use infer::InputFacts;
pub use infer::{InferContext, Maker, Port, ShapeError};
pub(crate) use library::Budget;
pub use library::{Library, LibraryError};
pub use registry::{OP_TABLES, all, kind, lookup, register};
pub use spec::{OpSpec, SpecError, checks, of_step, op, random, reads, stateful};
