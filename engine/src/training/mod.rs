//! Training steps of networks: input, towers on several devices, gradients, optimizer, summaries.
//!
//! Data-parallel training (white paper section 7, figure 7): every device has a tower on the same variables, which lie on
//! the first one. Synchronous: one step computes all towers' gradients, averages and applies them, so that N devices
//! train as one with a batch N times as large. All-reduce: the same, but each tower has variables of its own, and collectives
//! average the gradients ([`replicas`]), so that no device sends or takes more than the others. With backup workers: synchronous, but the
//! step takes the gradients that come first ([`backup`]). Asynchronous: every tower has a training step of its own, run by a
//! client thread of its own, and applies its gradients to variables that the others move meanwhile.

mod backup;
mod build;
mod input;
mod mlp;
mod options;
mod replicas;
mod saving;
mod summaries;
mod tower;
mod tower_summaries;

pub use build::{Evaluation, TrainingGraph, build};
pub use input::{Enqueue, InputMode, Position, tower_position, tower_queue};
pub use mlp::{Mlp, mlp};
pub use options::{Parallelism, TrainingOptions};
pub use saving::Saving;
pub use tower::Pushes;
pub use tower_summaries::TowerSummaries;
