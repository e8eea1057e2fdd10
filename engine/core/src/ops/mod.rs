//! Ops: the kinds of computation, with TensorFlow's names and attributes, and their registry.
//!
//! An op is written as one line of a table, in TensorFlow's own notation:
//! `op("MatMul", "a: T, b: T -> product: T", "transpose_a: bool = false; T: {float, double}", shape_fn)`.
//! Tables register in the link-time slice [`OP_TABLES`], which other crates may extend, or at run time with [`register`].

pub mod aliases;
mod attr;
mod def;
mod facts;
pub mod flow;
mod infer;
mod library;
mod registry;
mod spec;

pub use attr::wrong_kind;
pub use attr::{Attr, AttrError, AttrKind, FuncRef};
pub use def::{ArgDef, ArgType, AttrDef, OpDef, ShapeFn};
pub use facts::{Effect, OpKind};
pub(crate) use infer::InputFacts;
pub use infer::{InferContext, Maker, Port, ShapeError};
pub use library::Budget;
pub use library::{Library, LibraryError};
pub use registry::{OP_TABLES, all, kind, lookup, register};
pub use spec::{OpSpec, SpecError, checks, of_step, op, random, reads, stateful};
