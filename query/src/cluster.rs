//! The interface of clusters that run queries.

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// A cluster that runs physical plans. A [`Database::open_on`](crate::Database::open_on) a cluster plans in this
/// process, over the same tables as a local one: sealed traces are scans of their Parquet files, all other rows are a
/// [`StreamingTableExec`](datafusion::physical_plan::streaming::StreamingTableExec), which can only run in this
/// process.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Adds the settings and rules with which plans for the cluster are made.
    ///
    /// # Errors
    /// DataFusion refuses them.
    fn prepare(&self, state: SessionState) -> Result<SessionState>;

    /// Runs a plan, and returns its rows in the plan's order.
    ///
    /// # Errors
    /// The cluster cannot be reached, or cannot run the plan.
    async fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream>;

    /// Ends the last plan if it still runs, and frees its resources. Called after every plan, whether it succeeded or
    /// not.
    async fn release(&self);
}
