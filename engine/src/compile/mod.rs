//! From a graph and what is asked of it to a plan.
//!
//! A [`WorkGraph`] is the part of a graph that one step needs; [`passes`] rewrite it, two of which have folders of their own:
//! [`placement`] and [`partition`]. [`pipeline`] has the order of all, and [`plan`] is what they end in.

mod compiler;
mod error;
mod lowered;
mod node_kernels;
pub mod partition;
pub mod passes;
mod pins;
pub mod pipeline;
pub mod placement;
pub mod plan;
mod signature;
mod work_graph;

pub(crate) use compiler::{CompileOptions, Compiler, Rewritten};
pub use error::CompileError;
pub use node_kernels::{Numerics, SharedKernels};
pub use pipeline::{PIPELINE, PassReport, Passes};
pub use signature::Signature;
pub use work_graph::{NewNode, Pair, Source, Use, Uses, WorkFeed, WorkGraph, WorkId, WorkNode};
