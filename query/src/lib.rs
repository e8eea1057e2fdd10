//! SQL over traces and logdirs, on DataFusion.
//!
//! In reading order:
//!
//! 1. [`mod@schema`]: the columns of the tables, their types and units.
//! 2. `source`: finds and opens the traces below a path. `bucket`: finds those below a URL.
//! 3. `derived`, `logdir`: tables whose rows are computed when a query names them.
//! 4. `table`: a table as a DataFusion table provider. Sealed traces are read from their Parquet files, all others
//!    through [`trace_store::Store`] as record batches.
//! 5. [`database`]: runs queries within a memory budget, in this process or on a [`Cluster`].
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
