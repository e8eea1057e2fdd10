//! Runs that other tools logged: found below a folder, and read while they grow.
//!
//! - [`logs_in`] finds the logs of a folder, [`logs_of_file`] those of a single file. A [`Log`] is one run of one tool:
//!   a file, a folder, or the rows of a database.
//! - [`Log::open`] gives its [`Reader`], which hands out what is new as a [`Batch`] of [`Entry`]s: scalars, histograms,
//!   images, sounds, texts, hyperparameters.
//!
//! Nothing in a log is ever executed, and no log is changed: databases are opened read-only. (SQLite itself puts the index of
//! its journal next to a database in WAL mode.)

mod csv;
mod entry;
mod file;
mod find;
mod image;
mod json;
mod json_lines;
mod log;
mod mlflow;
mod names;
mod open;
mod progress;
mod reader;
mod sqlite;
mod tail;
mod time;
mod trackio;
mod trainer_state;
mod wandb;
mod yaml;

pub use entry::{Bucket, Entry, Param, Value};
pub use find::{logs_in, logs_of_file};
pub use log::{Log, LogKind};
pub use reader::{Batch, Problem, Reader};
