//! A finished trace in its last form: Parquet files that any tool reads, and a sidecar from which it is drawn.
//!
//! ```text
//! sealed/                 in a trace folder; or a folder of its own (an import, an export)
//!   slices.parquet        zstd; times, correlations and args as differences, names by dictionary; row groups of 131,072
//!                         slices by start, with page index
//!   tracks, processes, sites, nodes, steps, flows, counters, instants, memory, transfers, open_slices, stacks, frames,
//!   functions, warnings, rings, meta .parquet
//!   lod.bin               the pyramids of all lanes ([`sidecar`]): mapped; has its own checksum, and can be made again
//!   sources.txt           of a gathered trace: the folders next to it that it holds already ([`sources`])
//!   checksums.txt         of every byte of the Parquet files ([`checksums`])
//! ```
//!
//! In reading order:
//! 1. [`table`], [`schema`]: the tables, each declared once. [`names`], [`mod@tables`], [`row_group`]: the store's rows as columns.
//! 2. [`mod@file`], [`runs`], [`dictionary`], [`group_file`], [`slices`], [`pyramids`], [`writer`]: the files as they are
//!    written, from a store or from batches.
//! 3. [`verify`], [`place`]: what was written is read back and compared, then put in place in one step.
//! 4. [`mod@open`], [`columns`], [`rows`], [`resolver`], [`foreign`]: a folder becomes a store.
//! 5. [`pager`], [`group`], [`paged`]: slices stay on disk and come by row group, within a budget.
//! 6. [`mod@batches`]: the tables of any store, and of a sealed folder whether it is whole, for SQL.
//! 7. [`mod@unseal`]: a store as the files of a collector, to be sent to another one.

mod batches;
mod checksums;
mod columns;
mod dictionary;
mod error;
mod file;
mod foreign;
mod group;
mod group_file;
mod names;
mod open;
mod paged;
mod pager;
mod place;
mod pyramids;
mod resolver;
mod row_group;
mod rows;
mod runs;
mod schema;
mod sidecar;
mod slices;
mod sources;
mod table;
mod tables;
mod unseal;
mod verify;
mod writer;

pub(crate) use batches::side_files;
pub use batches::{Take, batches, check, tables, whole_folder};
pub use checksums::Checksums;
pub use error::SealError;
pub use open::is_sealed;
pub(crate) use open::{SealedTrace, contents_of, positions};
pub use pager::{BUDGET, Pager};
pub(crate) use place::{kill_point, sync_folder};
pub(crate) use sources::sources_of;
pub use table::{Column, Kind, Table};
pub use unseal::unseal;
pub(crate) use writer::write_all;
pub use writer::{Sealed, SealedWriter, write};

#[cfg(test)]
mod tests;
