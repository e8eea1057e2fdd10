//! Sealed traces: Parquet files that any tool reads, and a sidecar with the pyramids from which the timeline is drawn.
//!
//! ```text
//! sealed/                 in a trace folder; or a folder of its own (an import, an export)
//!   slices.parquet        zstd; times, correlations and args delta-coded, names by dictionary; row groups of 131,072
//!                         slices, ordered by start, with page index
//!   tracks, processes, sites, nodes, steps, flows, counters, instants, memory, transfers, open_slices, stacks, frames,
//!   functions, warnings, rings, meta .parquet
//!   lod.bin               the pyramids of all lanes ([`sidecar`]): mapped; has its own checksum, and can be rebuilt
//!   sources.txt           of a gathered trace: the gathered folders that were sealed into it ([`sources`])
//!   checksums.txt         checksums over every byte of the Parquet files ([`checksums`])
//! ```
//!
//! In reading order:
//! 1. [`table`] declares tables, [`schema`] lists them. [`names`], [`table_columns`], [`row_group`]: store rows as
//!    columns.
//! 2. [`table_file`], [`runs`], [`dictionary`], [`row_group_writer`], [`slice_writer`], [`pyramids`], [`writer`] write
//!    the files, from a store or from batches.
//! 3. [`verify`] reads the files back and compares them, [`place`] puts the folder in place in one step.
//! 4. [`mod@open`], [`columns`], [`table_rows`], [`resolver`], [`foreign`] read a folder into a store.
//! 5. [`pager`], [`paged_group`], [`paged_lane`] load row groups of slices on demand, within a budget of bytes.
//! 6. [`mod@batches`] gives the tables of any store to SQL, and checks whether a sealed folder is complete.
//! 7. [`mod@unseal`] writes a store as the files of a collector, to be sent to another one.

mod batches;
mod checksums;
mod columns;
mod dictionary;
mod error;
mod foreign;
mod names;
mod open;
mod paged_group;
mod paged_lane;
mod pager;
mod place;
mod pyramids;
mod resolver;
mod row_group;
mod row_group_writer;
mod runs;
mod schema;
mod sidecar;
mod slice_writer;
mod sources;
mod table;
mod table_columns;
mod table_file;
mod table_rows;
mod unseal;
mod verify;
mod writer;

pub(crate) use batches::side_files;
pub use batches::{BatchVisitor, batches, check, complete_folder, tables};
pub use checksums::Checksums;
pub use error::SealError;
pub use open::is_sealed;
pub(crate) use open::{SealedTrace, contents_of, positions};
pub use pager::{DEFAULT_BUDGET, Pager};
pub(crate) use place::{kill_point, sync_folder};
pub(crate) use sources::sources_of;
pub use table::{Column, Kind, Table};
pub use unseal::unseal;
pub(crate) use writer::write_all;
pub use writer::{SealedSizes, SealedWriter, write};

#[cfg(test)]
mod tests;
