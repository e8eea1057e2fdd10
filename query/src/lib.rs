//! SQL over traces and logdirs, on DataFusion.
//!
//! In reading order:
//!
//! 1. [`mod@schema`]: the tables: their columns, types and units.
//! 2. `source`: what a path or URL holds: the traces whose rows the tables have, and how each is opened. `bucket`: the same for
//!    URLs.
//! 3. `derived`, `logdir`: rows that are computed only when a query names their table.
//! 4. `table`: a table as DataFusion scans it. Sealed traces are read from their Parquet files, all others through
//!    [`trace_store::Store`] as record batches.
//! 5. [`database`]: runs queries, with a budget of memory; or has a [`Cluster`] run them.
//! 6. [`mod@output`]: rows as an aligned table, CSV, JSON or Parquet.

mod bucket;
mod cluster;
mod database;
mod derived;
mod error;
mod logdir;
pub mod output;
pub mod schema;
mod source;
mod table;

pub use cluster::Cluster;
pub use database::{Canceller, Database, Options};
pub use error::QueryError;
pub use output::{Format, QueryResult};
