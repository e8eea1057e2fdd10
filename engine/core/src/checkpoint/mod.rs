//! Checkpoints as files: the state of a computation on disk (white paper, section 3.3).
//!
//! A checkpoint is named by a prefix, `runs/x/model-1200`. Files written here are safetensors (`safetensors`): one file
//! `PREFIX.safetensors`, or, of several tasks, `PREFIX-00000-of-00002.safetensors` ... with an index
//! `PREFIX.safetensors.index.json`, which is written last: where it is, the checkpoint is whole. Each file is
//! written under another name, synced, renamed, and its folder synced. TensorFlow's tensor bundles and older tables are
//! read as well (`bundle`, `v1`).
//!
//! [`Checkpoint`] reads any of these; [`write_shard`] and [`merge`] write.

mod bundle;
pub mod encode;
mod error;
pub mod files;
pub mod keys;
mod ordered;
mod reader;
mod safetensors;
pub mod slice;
mod state;
pub mod state_file;
mod store;
mod table;
mod v1;
pub mod write;

pub use error::CheckpointError;
pub use files::TensorInfo;
pub use keys::{saved_kernel, saved_kernels};
pub use reader::Checkpoint;
pub use slice::{Slice, SliceSpec};
pub use state::as_checkpointed;
pub use state::{AsCheckpointed, CHECKPOINTED, Checkpointed, Fields};
pub use store::FileStore;
#[cfg(feature = "s3")]
pub use store::ObjectStoreFiles;
pub use write::{Saved, merge, write_bundle, write_shard};
