//! Checkpoints: the state of a computation on disk, from which it continues after a failure (white paper, section 3.3).
//!
//! A checkpoint is named by a prefix, `runs/x/model-1200`. Files written here are safetensors (`safetensors`): one file
//! `PREFIX.safetensors`, or, of several tasks, `PREFIX-00000-of-00002.safetensors` ... with an index
//! `PREFIX.safetensors.index.json`, which is written last: where it is, the checkpoint is whole. Each file is
//! written under another name, synced, renamed, and its folder synced. TensorFlow's tensor bundles and older tables are
//! read as well (`bundle`, `v1`).
//!
//! [`Checkpoint`] reads any of these; [`write_shard`] and [`merge`] write; [`Saver`] keeps the checkpoints of a session:
//!
//! ```
//! # use engine::checkpoint::{Saver, SaverOptions};
//! # use engine::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let g = Graph::new();
//! let v = g.variable("v", Tensor::vector(&[1f32, 2.0]));
//! let session = Session::new(&g, SessionOptions::default())?;
//! session.step().target(v.init).run()?;
//! Saver::new(folder, SaverOptions::default())?.save(&session, 100)?;
//!
//! let later = Session::new(&g, SessionOptions::default())?;
//! let restored = Saver::new(folder, SaverOptions::default())?.restore(&later)?;
//! assert_eq!(restored.map(|restored| restored.step), Some(100));
//! assert_eq!(later.step().fetch(v.value).run()?, [Tensor::vector(&[1f32, 2.0])]);
//! # Ok(())
//! # }
//! ```

mod bundle;
pub(crate) mod encode;
mod error;
mod files;
mod keys;
mod ordered;
mod reader;
mod safetensors;
mod saver;
pub(crate) mod slice;
mod snapshot;
mod state;
mod state_file;
mod store;
mod table;
mod v1;
mod write;

pub use error::CheckpointError;
pub use files::TensorInfo;
pub(crate) use keys::{saved_kernel, saved_kernels};
pub use reader::Checkpoint;
pub use saver::{Restored, Saver, SaverOptions};
pub use slice::{Slice, SliceSpec};
pub(crate) use state::as_checkpointed;
pub use state::{AsCheckpointed, CHECKPOINTED, Checkpointed, Fields};
pub use store::FileStore;
#[cfg(feature = "s3")]
pub use store::ObjectStoreFiles;
pub use write::{Saved, merge, write_bundle, write_shard};
