//! Where a query runs that does not run in this process.

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Machines that run physical plans. [`Database::open_on`](crate::Database::open_on) makes such plans here, over the same tables as
/// for itself: sealed traces are scans of their Parquet files, all else is a
/// [`StreamingTableExec`](datafusion::physical_plan::streaming::StreamingTableExec), which can only run here.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// The settings and rules that plans for it are made with.
    ///
    /// # Errors
    /// DataFusion's message about them.
    fn prepare(&self, state: SessionState) -> Result<SessionState>;

    /// Runs a plan, and gives its rows in its order.
    ///
    /// # Errors
    /// The cluster cannot be reached, or cannot run the plan.
    async fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream>;

    /// Ends what still runs of the last plan, and frees what it left behind. Called after each, whatever became of it.
    async fn release(&self);
}
