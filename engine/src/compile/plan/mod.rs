//! A plan: what one (feeds, fetches, targets) signature executes, compiled to flat arrays.
//!
//! [`crate::compile::passes`] take what a [`Signature`](crate::compile::Signature) needs out of the graph and rewrites it; [`compile`] numbers the remaining
//! nodes and lays them out, [`cost`] keeps what their executions take. The executor's hot loop reads only the arrays here: a record per node, edges as `u32`s grouped
//! into data and control, no names, maps or graph nodes.
//!
//! ```text
//! nodes   | record 0 | record 1 | ... | record n-1 | sink |
//! data    | edges of node 0 by port | edges of node 1 | ... | edges of feed 0 | feed 1 | ...
//! control | consumers of node 0 | consumers of node 1 | ...
//! slots   | inputs of node 0 | inputs of node 1 | ... | fetches (the sink's inputs) |
//! ```
//!
//! The sink is a node that waits for one arrival more than it can get, so it never runs: fetched values stay in its
//! input slots. Feeds are in their slots before the step begins and are not waited for.

mod arrays;
pub mod compile;

pub mod cost;
pub(crate) mod frames;
pub(crate) mod merge;

pub(crate) use arrays::{DataEdge, NodeRecord, Plan};
