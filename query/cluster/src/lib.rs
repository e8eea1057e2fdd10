//! SQL over traces on a [Ballista](https://datafusion.apache.org/ballista/) cluster: DataFusion's own distributed engine.
//!
//! A query is planned here, over the same tables as a local one, and the physical plan is sent: what executors of a cluster as it is
//! installed have to know is Parquet and DataFusion's functions, nothing of traces. In reading order:
//!
//! 1. [`ballista`]: the address of a scheduler; the settings of plans; runs one and gives its rows.
//! 2. `ship`: what of a plan can only be read here, as rows within the plan or as a Parquet file that executors see.
//! 3. `job`: talks to the scheduler, and to the executors that have the result.
//! 4. `error`: what went wrong, and what to do next.

pub mod ballista;
mod error;
mod job;
mod ship;

pub use ballista::Ballista;
pub use error::ClusterError;
