//! Checkpoints: the state of a computation on disk, from which it continues after a failure (white paper, section 3.3). The files
//! are [`engine_core::checkpoint`]'s, whose items are here too.
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

mod saver;
mod snapshot;

pub use engine_core::checkpoint::*;
pub use saver::{Restored, Saver, SaverOptions};
