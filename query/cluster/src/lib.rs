//! SQL over traces on a [Ballista](https://datafusion.apache.org/ballista/) cluster: DataFusion's own distributed
//! engine.
//!
//! A query is planned in this process, over the same tables as a local query, and the physical plan is sent. Stock
//! executors can run the plan, since it needs only Parquet and DataFusion's functions. In reading order:
//!
//! 1. [`ballista`]: the address of a scheduler and the settings of plans; runs a plan and returns its rows.
//! 2. `ship`: replaces rows that only this process can read, by rows within the plan or a Parquet file that executors
//!    see.
//! 3. `job`: talks to the scheduler, and to the executors that have the result.
//! 4. `error`: the errors, which say what the user can do.

pub mod ballista;
mod error;
mod job;
mod ship;

pub use ballista::Ballista;
pub use error::ClusterError;
