//! The program: a graph of nodes, built node by node, checked as it grows.
//!
//! A [`Graph`] is a cheap handle to shared nodes together with the context in which it adds more: name scope, device
//! and control dependencies. Nodes lie in an arena, refer to each other by id, and do not change once added, so
//! that whoever holds a [`Node`] needs no lock.

mod arena;
mod attr_def;
mod build_flow;
mod builder;
mod call;
mod constant;
mod contexts;
mod control_flow;
mod def;
mod error;
mod id;
mod import_error;
mod infer;
mod input;
mod loops;
mod math;
mod nn;
mod node;
mod sources;
mod sparse;
mod staged;
mod summaries;
mod value;
mod within;

pub use crate::ops::{Attr, FuncRef, InferContext, Port, ShapeError};
pub use arena::Capture;
pub use arena::{Graph, Nodes};
pub use attr_def::to_proto as attr_to_proto;
pub use build_flow::WhileOptions;
pub use builder::NodeBuilder;
pub use call::{Attrs, Open};
pub use contexts::{CondContext, ContextId, ContextKind, ControlFlowContext, LoopVar, WhileContext};
pub use def::colocated_with;
pub use error::{ControlFlowError, GraphError};
pub use id::{NodeId, Output};
pub use import_error::{FunctionError, ImportError};
pub use nn::{BatchNorm, LstmState, LstmWeights, Padding};
pub use node::Node;
pub use sources::Var;
pub use sparse::SparseTensor;
pub use value::{Ints, Operand, Value};
