//! Graph passes: what happens to the part of a graph that a step needs before it is compiled (white paper section 5).
//!
//! The first, [`prune`], takes the nodes that a signature needs out of the graph into a [`WorkGraph`]; the others rewrite that.
//! [`crate::compile::pipeline`] has their order.

pub(super) mod branches;
pub mod collectives;
pub(super) mod constants;
pub(super) mod cse;
pub(super) mod dump;
pub mod fold;
pub(super) mod fuse;
pub(super) mod fuse_matmul;
pub mod memory;
pub(super) mod pack;
mod pass;
pub(super) mod products;
pub mod prune;
pub mod redirect;
pub(super) mod references;
pub mod region;
pub(super) mod simplify;
pub mod verify;

pub use super::work_graph::{NewNode, Source, Use, Uses, WorkFeed, WorkGraph, WorkId, WorkNode};
pub use pass::{Pass, PassContext};
pub use redirect::Redirects;
