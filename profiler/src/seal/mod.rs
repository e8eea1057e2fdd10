//! A finished trace in its last form: Parquet files that any tool reads, and a sidecar from which it is drawn.
//!
//! ```text
//! sealed/                 in a trace folder; or a folder of its own (an import, an export)
//!   slices.parquet        zstd; times, correlations and args as differences, names by dictionary; row groups of 131,072
//!                         slices by start, with page index
//!   tracks, processes, sites, nodes, steps, flows, counters, instants, memory, transfers, open_slices, stacks, frames,
//!   functions, warnings, rings, meta .parquet
//!   lod.bin               the pyramids of all lanes ([`sidecar`]): mapped; has its own checksum, and can be made again
//!   sources.txt           of a gathered trace: the folders beside it that it holds already ([`mod@gathered`])
//!   checksums.txt         of every byte of the Parquet files ([`checksums`])
//! ```
//!
//! In reading order:
//! 1. [`schema`]: the tables. [`names`], [`mod@tables`], [`part`]: the store's rows as columns.
//! 2. [`mod@file`], [`runs`], [`dictionary`], [`group_file`], [`slices`], [`pyramids`], [`writer`]: the files as they are
//!    written, from a store or from batches.
//! 3. [`verify`], [`place`]: what was written is read back and compared, then put in place in one step.
//! 4. [`folder`], [`mod@gathered`]: seals the trace that a collector left, and removes what it was made from.
//! 5. [`mod@open`], [`columns`], [`rows`], [`resolver`], [`foreign`]: a folder becomes a store.
//! 6. [`pager`], [`group`], [`paged`]: slices stay on disk and come by row group, within a budget.
//! 7. [`mod@batches`]: the tables of any store, and of a sealed folder whether it is whole, for SQL.
//! 8. [`mod@unseal`]: a store as the files of a collector, to be sent to another one.

mod batches;
mod checksums;
mod columns;
mod dictionary;
mod file;
mod folder;
mod foreign;
mod gathered;
mod group;
mod group_file;
mod names;
mod open;
mod paged;
mod pager;
mod part;
mod place;
mod pyramids;
mod resolver;
mod rows;
mod runs;
mod schema;
mod sidecar;
mod slices;
mod tables;
mod unseal;
mod verify;
mod writer;

pub(crate) use batches::side_files;
pub use batches::{Take, batches, check, tables, whole_folder};
pub use checksums::RemoteChecksums;
pub use folder::{SealReport, seal};
pub(crate) use gathered::sources_of;
pub use open::is_sealed;
pub(crate) use open::{SealedTrace, find, parts_of, positions};
pub(crate) use paged::{PagedLane, PagedSlices};
pub use pager::{BUDGET, Pager};
pub(crate) use tables::{Point, RingPosition};
pub use unseal::unseal;
pub use writer::{Sealed, SealedWriter, write};

use std::io;
use std::path::PathBuf;

/// The sidecar's file.
const SIDECAR: &str = "lod.bin";
/// The sealed part of a trace folder.
pub const FOLDER: &str = "sealed";

/// Why a trace was not sealed. What was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A file or folder cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The columns cannot be coded.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The columns do not fit together.
    #[error("cannot make columns: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// What was read back is not what was written.
    #[error("{0}: what was read back is not what was written: {1}")]
    Verify(PathBuf, String),
    /// The trace cannot be read.
    #[error(transparent)]
    Open(#[from] crate::OpenError),
    /// Somebody collects into the folder, or a traced process lives.
    #[error("{0} is still being recorded: {1}")]
    Busy(PathBuf, String),
}

#[cfg(test)]
mod tests;
