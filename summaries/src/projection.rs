//! Vectors of many dimensions laid out in two or three: principal components, t-SNE, UMAP, nearest neighbours.
//!
//! Every computation takes a [`Progress`] by which another thread watches and cancels it; t-SNE and UMAP pass
//! intermediate layouts to the caller. Given the same vectors and options, results are the same on every run.

mod axes;
mod neighbours;
mod pca;
mod tree;
mod tsne;
mod umap;
mod vectors;

pub use axes::project_on_axes;
pub use neighbours::{Metric, Neighbours, nearest, nearest_of};
pub use pca::{Pca, pca};
pub use tsne::{TsneOptions, tsne};
pub use umap::{UmapOptions, umap};
pub use vectors::{Position, Progress, Vectors};
