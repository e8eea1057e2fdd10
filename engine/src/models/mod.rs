//! Models: networks that can be trained by name, on one device or several.
//!
//! A [`Network`] adds the computation of one tower to a graph, from a batch to its loss, taking its variables from
//! [`Variables`](crate::layers::Variables), so that several towers share them. [`crate::training`] makes a training step of it.

mod convnet;
mod embeddings;
mod inception;
mod lstm;
mod mlp;
mod network;

pub use convnet::Convnet;
pub use embeddings::SkipGram;
pub(crate) use embeddings::VECTORS;
pub use inception::Inception;
pub use lstm::{LanguageModel, Unrolling};
pub use mlp::MlpOptions;
pub use network::{Input, Network, Tower};
