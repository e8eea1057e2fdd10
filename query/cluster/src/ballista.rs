//! Runs queries on a Ballista cluster.

use crate::error::ClusterError;
use crate::job::{Job, Scheduler};
use crate::ship::{PlanConverter, rows_in_plan};
use async_trait::async_trait;
use ballista_core::extension::SessionConfigExt;
use ballista_core::optimizer::with_ballista_optimizer_rules;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures_util::TryStreamExt;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use url::Url;

/// The port of a scheduler whose address has none.
const DEFAULT_PORT: u16 = 50050;
/// The number of partitions where `--threads` is not given: that of Ballista's own clients.
const DEFAULT_PARTITIONS: usize = 16;
/// How long ending a job at the scheduler may take.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A Ballista cluster.
pub struct Ballista {
    scheduler: Scheduler,
    scratch: Option<PathBuf>,
    current: Mutex<CurrentQuery>,
}

/// The state of the current or last query.
#[derive(Default)]
struct CurrentQuery {
    /// The task that submits the plan. A query that is cancelled while its plan is sent has a job too, which this task
    /// returns.
    job: Option<JoinHandle<Option<Job>>>,
    /// The folder of the query's files, deleted when this is dropped.
    folder: Option<tempfile::TempDir>,
}

impl Ballista {
    /// The cluster of the scheduler at `df://HOST:PORT`, `http://HOST:PORT` or `HOST:PORT` (default port 50050). Sends
    /// no request yet. `scratch` is a folder that the executors see at the same path: rows that are in no Parquet file
    /// and too many for a plan go there while a query runs.
    ///
    /// # Errors
    /// [`ClusterError::Address`] for any other address, [`ClusterError::Scratch`] where `scratch` is no folder.
    pub fn new(address: &str, scratch: Option<PathBuf>) -> Result<Ballista, ClusterError> {
        let scratch = scratch.map(|path| match std::fs::canonicalize(&path) {
            Ok(folder) if folder.is_dir() => Ok(folder),
            Ok(_) => Err(ClusterError::Scratch { path, reason: "it is no folder".to_owned() }),
            Err(error) => Err(ClusterError::Scratch { path, reason: error.to_string() }),
        });
        Ok(Ballista {
            scheduler: Scheduler::new(parse_address(address)?),
            scratch: scratch.transpose()?,
            current: Mutex::default(),
        })
    }
}

/// The HTTP address of a scheduler.
fn parse_address(address: &str) -> Result<Url, ClusterError> {
    let refused = |reason: &str| ClusterError::Address { address: address.to_owned(), reason: reason.to_owned() };
    let (scheme, rest) = address.split_once("://").unwrap_or(("df", address));
    match scheme {
        "df" | "http" => {}
        "https" => return Err(refused("there is no TLS here; tunnel to it: ssh -L 50050:HOST:50050")),
        _ => return Err(refused("it begins with neither df:// nor http://")),
    }
    let mut url = Url::parse(&format!("http://{rest}")).map_err(|e| refused(&e.to_string()))?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !is_bare || !url.username().is_empty() || url.password().is_some() {
        return Err(refused("it has more than a host and a port"));
    }
    // 80 is the default port of `http`, which `Url` does not distinguish from none.
    let has_port_80 = rest.trim_end_matches('/').ends_with(":80");
    if url.port().is_none() && !has_port_80 {
        url.set_port(Some(DEFAULT_PORT)).map_err(|()| refused("it has no host"))?;
    }
    Ok(url)
}

#[async_trait]
impl query::Cluster for Ballista {
    fn prepare(&self, state: SessionState) -> Result<SessionState> {
        let config = state.config().clone().upgrade_for_ballista().with_target_partitions(DEFAULT_PARTITIONS);
        let rules = with_ballista_optimizer_rules(state.optimizers());
        Ok(SessionStateBuilder::new_from_existing(state).with_config(config).with_optimizer_rules(rules).build())
    }

    async fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let client = self.scheduler.connect().await?;
        let mut converter = PlanConverter::new(Arc::clone(&context), self.scratch.clone());
        let plan = converter.convert(plan).await?;
        self.current.lock().folder = converter.folder;
        let schema = plan.schema();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let scheduler = self.scheduler.clone();
        self.current.lock().job = Some(tokio::spawn(async move {
            let job = scheduler.submit(client, &plan, &context).await;
            let submitted = job.as_ref().ok().cloned();
            // Sending fails where the query was cancelled; `release` then ends the job.
            let _ = sender.send(job);
            submitted
        }));
        let job = receiver.await.map_err(|e| DataFusionError::External(Box::new(e)))??;
        let batches = self.scheduler.result(job).await?;
        let target = Arc::clone(&schema);
        let rows = batches.and_then(move |batch| {
            let target = Arc::clone(&target);
            async move { rows_in_plan(&batch, target) }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    async fn release(&self) {
        let CurrentQuery { job, folder } = std::mem::take(&mut *self.current.lock());
        if let Some(job) = job {
            let end = async {
                if let Ok(Some(job)) = job.await {
                    job.end().await;
                }
            };
            // If the scheduler is gone, there is no job to end; after a timeout, the cluster cleans up by itself.
            let _ = tokio::time::timeout(END_TIMEOUT, end).await;
        }
        drop(folder);
    }
}

impl From<ClusterError> for DataFusionError {
    fn from(error: ClusterError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_ballistas_users_write_them() {
        let good = [
            ("df://localhost:50050", "http://localhost:50050/"),
            ("df://10.0.0.7", "http://10.0.0.7:50050/"),
            ("http://host:1234/", "http://host:1234/"),
            ("http://host:80", "http://host/"),
            ("host", "http://host:50050/"),
            ("host:9", "http://host:9/"),
            ("df://[::1]:7", "http://[::1]:7/"),
        ];
        for (address, url) in good {
            assert_eq!(parse_address(address).unwrap().as_str(), url, "{address}");
        }
        for bad in
            ["", "https://host", "s3://host", "df://", "host:port", "df://host/path", "df://me@host", "host:99999"]
        {
            assert!(matches!(parse_address(bad), Err(ClusterError::Address { .. })), "{bad}");
        }
    }
}
