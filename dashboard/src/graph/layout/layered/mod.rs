//! Layered drawing of a directed graph of boxes (Sugiyama, Tagawa, Toda 1981), without egui.
//!
//! [`draw`](draw::draw) takes sizes of boxes and edges between them and returns centres and paths. Ranks grow downwards
//! (y); callers that want the flow upwards flip the drawing. Each phase has a file: `rank` breaks cycles, assigns ranks
//! and shortens edges, `order` reduces crossings, `positions` straightens edges by isotonic regression. Edges of one
//! source share their dummy vertices, so that fans are drawn as bundles and the work stays linear in boxes and ranks.
//!
//! Deterministic: the same request gives the same drawing. Cost: O(V + E) per sweep, a fixed number of sweeps, fewer
//! for large graphs.

mod cache;
mod draw;
mod drawing;
mod layers;
mod order;
mod positions;
mod rank;

#[cfg(test)]
mod tests;

pub(crate) use cache::DrawingCache;
pub(crate) use drawing::{Arc, Cancelled, Drawing, RankConstraint, Spacing, Vertex};
