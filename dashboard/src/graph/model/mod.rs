//! A graph file as columns: the tree of name scopes with its nodes and edges.
//!
//! Items are numbered in pre-order, so that the items below a scope are one contiguous range and "is below" is two
//! comparisons. Edges are stored twice: [`Model::inputs`] / [`Model::outputs`] are the graph as written; flow edges and
//! metaedges are what a picture shows, with constants and summary ops made annotations of the nodes they belong to.
//!
//! Reading order: `items` and `columns` are the vocabulary and the tables; [`build`](Model::build) in `build`, names to
//! scopes in `tree`, folding in `series`, input strings in `input_ref`, tensor shapes in `shapes`, adjacency in `edges`
//! on `csr`, identical structure in `structure`, loops in `control`; then side areas in `side_area`, attributes as text
//! in `attrs`, search terms in `query`.

mod attrs;
mod build;
mod columns;
mod control;
mod csr;
mod edges;
mod input_ref;
mod items;
mod query;
mod series;
mod shapes;
pub(crate) mod side_area;
mod structure;
mod tree;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use attrs::attr_text;
pub(crate) use build::function_prefix;
pub use columns::Model;
pub(crate) use csr::Csr;
pub use items::{Control, Edge, ItemId, Kind, MetaEdge, Role};
pub(crate) use query::Query;
pub use shapes::output_shape;
