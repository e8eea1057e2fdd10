//! TensorBoard's event files: write them, follow them while they grow, keep every point.
//!
//! - [`EventWriter`] writes summaries from a training program, on a thread of its own.
//! - [`Logdir`] finds the runs below some folders and follows their event files; each [`Logdir::poll`] reads what is new
//!   and commits it to the [`Runs`] that a window shares.
//! - [`Run`], [`Series`]: what was read. Points are kept in the order of their arrival, all of them.
//! - [`Damage`]: what could not be read, and where.

mod damage;
mod event;
mod follow;
mod histogram;
mod logdir;
mod run;
mod series;
mod stage;
mod tensor;
mod walk;
mod writer;

pub use damage::{Damage, DamageKind};
pub use histogram::{Bucket, Histogram};
pub use logdir::{Changes, Logdir, LogdirError};
pub use run::{FileState, FileStatus, GraphBlob, Problem, Run, Runs};
pub use series::{HistogramSeries, OtherSeries, ScalarSeries, Series};
pub use writer::{EventWriter, EventWriterError, WriterOptions};
