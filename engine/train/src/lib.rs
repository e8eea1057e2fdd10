//! Training of the engine's models: the loop with its checkpoints, summaries and trace, in this process, on a cluster,
//! or in worker processes that a launcher starts again when they are lost. Prints nothing: callers receive [`Event`]s.
//!
//! In reading order:
//!
//! 1. [`TaskSpec`], [`TrainOptions`], [`devices`]: the model, the options and the devices of a run.
//! 2. [`RunFolder`], [`TraceRecorder`], [`sending`], `run`: a run's folder and its trace.
//! 3. `backend`, `stall`, `named_graph`: where steps run, how they are watched, how their nodes are named.
//! 4. `input`, `feeder`, `evaluator`, `checkpointer`, `worker_summaries`, `backups`: the parts of a training loop.
//! 5. `training_loop`, [`Trainer`], [`TrainingResult`], [`FinishedRun`]: the loop, the run around it, and its results.
//! 6. [`WorkerTask`], `recorder`, `trace_protocol`, `gatherer`: a task of a cluster, and how its trace gets to the run.
//! 7. [`Launcher`], `worker_processes`, [`client`], `launcher_link`, [`mpi`]: runs of several processes.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backend;
mod backups;
mod checkpointer;
pub mod client;
pub mod devices;
mod error;
mod evaluator;
mod event;
mod feeder;
mod finished_run;
mod gatherer;
mod input;
mod launcher;
mod launcher_link;
#[cfg_attr(not(feature = "mpi"), path = "no_mpi.rs")]
pub mod mpi;
mod named_graph;
mod options;
mod progress;
mod recorder;
mod report;
mod result;
mod run;
mod run_folder;
pub mod sending;
mod stall;
mod task;
mod trace_protocol;
mod tracing;
mod trainer;
mod training_loop;
mod worker;
mod worker_processes;
mod worker_summaries;

pub use backend::Location;
pub use checkpointer::has_checkpoints;
pub use error::{Result, TrainError};
pub use event::{Event, Observer};
pub use finished_run::FinishedRun;
pub use launcher::{Commands, LaunchOptions, Launcher, StopSignal};
pub use options::{TraceTarget, TrainOptions, refuse_used_dump_folder};
pub use progress::{Progress, Snapshot};
pub use report::Report;
pub use result::{TestResult, TrainingResult};
pub use run_folder::{RunFolder, is_over, refuse_if_used};
pub use task::{Model, TaskSpec};
pub use tracing::TraceRecorder;
pub use trainer::Trainer;
pub use worker::{TaskAddress, WorkerTask, WorkerTaskOptions};
