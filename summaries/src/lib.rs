//! TensorBoard's event files: write them, follow them while they grow, keep every point. Other tools' logs (crate
//! `trackers`) are followed in the same way.
//!
//! - [`SummaryWriter`] writes summaries of every kind from a training program, on a thread of its own.
//! - [`Logdir`] finds the runs below some folders and follows their event files; each [`Logdir::poll`] reads what is
//!   new and commits it to the [`Runs`] that a window shares.
//! - [`Run`], [`Series`]: the data that were read: all points, in the order of their arrival. Values that are not
//!   numbers stay in their files until [`MediaSeries::read`] decodes one to a [`Sample`].
//! - [`Run::tagged_graphs`], [`Run::profiles`]: graphs and profiles that TensorFlow 2 and Keras wrote as summaries.
//! - [`Alerts`]: rules such as `loss > 3 for 100 steps`, and where they hold.
//! - [`mod@derive`]: alignment, groups of runs with their bands.
//! - [`mod@projection`]: layouts of vectors in two or three dimensions.
//! - [`charts`]: curves, ridges, distributions and bars as SVG and PNG.
//! - `Remote` (feature `buckets`): logdirs on S3, Google, Azure and web servers.
//! - [`convert`]: other tools' logs as event files.
//! - [`Damage`]: ranges of event files that cannot be read.
//!
//! ```
//! use summaries::{Logdir, Series, SummaryWriter, WriterOptions};
//!
//! let folder = tempfile::tempdir()?;
//! let writer = SummaryWriter::create(folder.path(), WriterOptions::default())?;
//! writer.add_scalar("loss", 0.5, 1);
//! writer.add_text("note", "first *light*", 1);
//! writer.close()?;
//!
//! let mut logdir = Logdir::open(&[folder.path().to_owned()])?;
//! logdir.read_all();
//! let runs = logdir.runs();
//! let run = &runs.by_name["."];
//! let Series::Scalar(loss) = &run.series["loss"] else { panic!("loss is a scalar") };
//! assert_eq!(loss.last().map(|point| (point.step, point.value)), Some((1, 0.5)));
//! let Series::Media(note) = &run.series["note"] else { panic!("note is no number") };
//! println!("{:?}", note.read(0)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alerts;
pub mod charts;
mod column;
mod damage;
pub mod derive;
mod embedding;
mod event;
mod follow;
mod graphs;
mod histogram;
mod histograms;
mod logdir;
mod logs;
mod media;
mod name_map;
mod packed;
pub mod projection;
mod pyramid;
#[cfg(feature = "buckets")]
mod remote;
mod run;
mod sample;
mod series;
mod spill;
mod stage;
mod tensor;
mod walk;
mod watch;
mod writer;

pub use alerts::{Alert, Alerts, Rule, RuleError};
pub use column::Numbers;
pub use damage::{Damage, DamageKind};
pub use embedding::{Embedding, EmbeddingError, Sprites};
pub use graphs::{KerasError, NamedGraph, Profile, TaggedGraph, TaggedGraphError, is_graph_kind};
pub use histogram::{Bucket, Histogram};
pub use histograms::HistogramSeries;
pub use logdir::{Changes, Logdir, LogdirError};
pub use logs::{ConvertError, ConvertedRun, convert};
pub use media::{MediaError, MediaRow, MediaSeries, RecordPosition};
pub use name_map::NameMap;
pub use pyramid::Extent;
#[cfg(feature = "buckets")]
pub use remote::{FetchResult, Remote, RemoteCost, RemoteError, open_bucket};
pub use run::{FileState, FileStatus, GraphBlob, Problem, Run, Runs, TaggedRecord};
pub use sample::{EncodedAudio, EncodedImage, MeshPart, NumberTensor, PrCurve, Sample, TextTensor};
pub use series::{Point, ScalarSeries, Series};
pub use writer::{
    HParam, Mesh, Pixels, SummaryWriter, ValueError, WriterError, WriterOptions, encode_png, read_projector_config,
};
