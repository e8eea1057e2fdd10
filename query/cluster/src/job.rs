//! Talks to a scheduler, and to the executors that have the rows of a result.

use crate::error::{ClusterError, one_line};
use ballista_core::BALLISTA_VERSION;
use ballista_core::client::BallistaClient;
use ballista_core::error::BallistaError;
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::get_job_status_result::FlightProxy;
use ballista_core::serde::protobuf::job_status::Status as JobStatus;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, CleanJobDataParams, ExecuteQueryParams, ExecutorMetadata, GetJobStatusParams, KeyValuePair,
    PartitionLocation, RemoveSessionParams, execute_query_result,
};
use ballista_core::version;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use formats::all_causes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use url::Url;

type Client = SchedulerGrpcClient<Channel>;

/// How long a scheduler or an executor may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a scheduler may take to answer, which it does before it plans the stages of a query.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest message that schedulers and executors accept by default, bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The bytes of a message that are reserved for the settings.
const SETTINGS_BYTES: usize = 1 << 20;
/// The pause between two polls of a job, which doubles from the first to the last.
const FIRST_POLL: Duration = Duration::from_millis(5);
const LAST_POLL: Duration = Duration::from_millis(200);
/// How often an executor that does not send rows is asked for them, and the pause between the requests, ms.
const N_FETCHES: u8 = 3;
const FETCH_PAUSE_MS: u64 = 500;

/// The address of the scheduler.
#[derive(Clone)]
pub(crate) struct Scheduler {
    url: Url,
}

/// A query that a scheduler accepted.
#[derive(Clone)]
pub(crate) struct Job {
    client: Client,
    id: String,
    session: String,
    is_over: Arc<AtomicBool>,
}

impl Scheduler {
    pub(crate) fn new(url: Url) -> Self {
        Scheduler { url }
    }

    /// The scheduler's host and port.
    fn host_and_port(&self) -> String {
        self.url.authority().to_owned()
    }

    pub(crate) async fn connect(&self) -> Result<Client, ClusterError> {
        let failed = |error: tonic::transport::Error| ClusterError::NoScheduler {
            at: self.host_and_port(),
            reason: all_causes(&error),
        };
        let endpoint = Endpoint::from_shared(self.url.to_string()).map_err(failed)?;
        let endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT).timeout(ANSWER_TIMEOUT).tcp_nodelay(true);
        // The endpoint's own timeout does not cover a peer that accepts the connection and stays silent.
        let connected = tokio::time::timeout(2 * CONNECT_TIMEOUT, endpoint.connect()).await;
        let silent = || ClusterError::NoScheduler { at: self.host_and_port(), reason: "it says nothing".to_owned() };
        let channel = connected.map_err(|_| silent())?.map_err(failed)?;
        Ok(Client::new(channel)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
            .max_decoding_message_size(MAX_MESSAGE_BYTES))
    }

    fn refusal(&self, what: &'static str, status: &Status) -> ClusterError {
        match status.code() {
            // Schedulers refuse clients of another version with this status.
            Code::FailedPrecondition => ClusterError::VersionMismatch(status.message().to_owned()),
            Code::Unimplemented => {
                ClusterError::NoScheduler { at: self.host_and_port(), reason: status.message().to_owned() }
            }
            _ => ClusterError::Refused { at: self.host_and_port(), what, reason: one_line(&all_causes(status)) },
        }
    }

    /// Sends a plan; returns the job that runs it.
    pub(crate) async fn submit(
        &self,
        mut client: Client,
        plan: &Arc<dyn ExecutionPlan>,
        context: &TaskContext,
    ) -> Result<Job> {
        let codec = context.session_config().ballista_physical_extension_codec();
        let mut encoded = Vec::new();
        PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), codec.as_ref())?.try_encode(&mut encoded)?;
        if encoded.len() > MAX_MESSAGE_BYTES - SETTINGS_BYTES {
            return Err(ClusterError::PlanTooLarge { bytes: encoded.len() }.into());
        }
        let settings = context.session_config().options().entries().into_iter();
        let session = context.session_id();
        let mut request = Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(encoded)),
            settings: settings.map(|entry| KeyValuePair { key: entry.key, value: entry.value }).collect(),
            session_id: session.clone(),
            operation_id: session.clone(),
        });
        version::insert_version_header(request.metadata_mut());
        let answer = client.execute_query(request).await.map_err(|s| self.refusal("refused the query", &s))?;
        let scheduler_version = version::version_from_metadata(answer.metadata());
        let compatibility = version::check_compatibility(Some(BALLISTA_VERSION), scheduler_version)
            .map_err(ClusterError::VersionMismatch);
        let job = |id| Job { client, id, session, is_over: Arc::default() };
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(accepted)) => {
                let job = job(accepted.job_id);
                if let Err(error) = compatibility {
                    // A scheduler that does not check versions has started the job.
                    job.end().await;
                    return Err(error.into());
                }
                Ok(job)
            }
            Some(execute_query_result::Result::Failure(failure)) => {
                compatibility?;
                Err(ClusterError::from_job_error(&format!("{:?}", failure.failure)).into())
            }
            None => Err(self.refusal("gave an empty answer", &Status::unknown("no job, no error")).into()),
        }
    }

    /// Waits until the job is done, and returns its rows as they come.
    pub(crate) async fn result(&self, mut job: Job) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + use<>> {
        let mut pause = FIRST_POLL;
        loop {
            let request = GetJobStatusParams { job_id: job.id.clone() };
            let answer = job.client.get_job_status(request).await.map_err(|s| self.refusal("lost the query", &s))?;
            let answer = answer.into_inner();
            match answer.status.and_then(|job| job.status) {
                Some(JobStatus::Failed(failed)) => {
                    job.is_over.store(true, Ordering::Relaxed);
                    return Err(ClusterError::from_job_error(&failed.error).into());
                }
                Some(JobStatus::Successful(successful)) => {
                    job.is_over.store(true, Ordering::Relaxed);
                    let (scheduler, proxy) = (self.url.clone(), answer.flight_proxy);
                    let parts = futures_util::stream::iter(successful.partition_location);
                    let rows = parts.then(move |part| fetch_partition(part, scheduler.clone(), proxy.clone()));
                    return Ok(rows.try_flatten());
                }
                // The job is queued, running, or so new that it has no status.
                _ => tokio::time::sleep(pause).await,
            }
            pause = (2 * pause).min(LAST_POLL);
        }
    }
}

impl Job {
    /// Ends the job if it runs; the executors delete its rows.
    pub(crate) async fn end(mut self) {
        // Errors are ignored: the cluster cleans up by itself some minutes later.
        if self.is_over.load(Ordering::Relaxed) {
            let request = CleanJobDataParams { job_id: self.id.clone(), ..Default::default() };
            let _ = self.client.clean_job_data(request).await;
        } else {
            let _ = self.cancel().await;
        }
        let _ = self.client.remove_session(RemoveSessionParams { session_id: self.session }).await;
    }

    /// Repeats the cancellation until the scheduler reports the end: schedulers silently ignore the cancellation of a
    /// job that is still being planned.
    async fn cancel(&mut self) -> Result<(), Status> {
        let mut pause = FIRST_POLL;
        loop {
            self.client.cancel_job(CancelJobParams { job_id: self.id.clone() }).await?;
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LAST_POLL);
            let answer = self.client.get_job_status(GetJobStatusParams { job_id: self.id.clone() }).await?;
            let status = answer.into_inner().status.and_then(|job| job.status);
            if matches!(status, Some(JobStatus::Failed(_) | JobStatus::Successful(_))) {
                return Ok(());
            }
        }
    }
}

/// The host and port from which an executor's rows are fetched: its own, or its proxy's.
fn flight_address(executor: &ExecutorMetadata, scheduler: &Url, proxy: Option<&FlightProxy>) -> Option<(String, u16)> {
    let of_url = |url: &Url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?));
    match proxy {
        Some(FlightProxy::External(address)) => of_url(&Url::parse(&format!("http://{address}")).ok()?),
        Some(FlightProxy::Local(true)) => of_url(scheduler),
        Some(FlightProxy::Local(false)) | None => Some((executor.host.clone(), u16::try_from(executor.port).ok()?)),
    }
}

/// Fetches the rows of a partition of the result.
async fn fetch_partition(
    part: PartitionLocation,
    scheduler: Url,
    proxy: Option<FlightProxy>,
) -> Result<SendableRecordBatchStream> {
    let layout = part.layout();
    let missing = || ClusterError::Failed("the scheduler does not say who has the result".to_owned());
    let (Some(executor), Some(partition)) = (part.executor_meta, part.partition_id) else {
        return Err(missing().into());
    };
    let (host, port) = flight_address(&executor, &scheduler, proxy.as_ref()).ok_or_else(missing)?;
    let at = format!("{host}:{port}");
    let failed =
        |reason: String| DataFusionError::from(ClusterError::FetchFailed { at: at.clone(), reason: one_line(&reason) });
    let client = BallistaClient::try_new(&host, port, MAX_MESSAGE_BYTES, false, None, N_FETCHES, FETCH_PAUSE_MS, 0, 0);
    let client = tokio::time::timeout(CONNECT_TIMEOUT, client).await;
    let mut client = client.map_err(|_| failed("no connection".to_owned()))?.map_err(|e| failed(message_text(&e)))?;
    let executor_port = u16::try_from(executor.port).map_err(|_| missing())?;
    let rows = client
        .fetch_partition_proxied(
            &executor.id,
            &partition.into(),
            part.file_id,
            layout,
            &executor.host,
            executor_port,
            true,
        )
        .await
        .map_err(|e| failed(message_text(&e)))?;
    let at = at.clone();
    let rows_failed = move |e: DataFusionError| {
        DataFusionError::from(ClusterError::FetchFailed { at: at.clone(), reason: one_line(&e.strip_backtrace()) })
    };
    let schema = rows.schema();
    let rows = rows.map_err(rows_failed);
    Ok(Box::pin(datafusion::physical_plan::stream::RecordBatchStreamAdapter::new(schema, rows)))
}

/// The message of a Ballista error, without the name of its variant.
fn message_text(error: &BallistaError) -> String {
    match error {
        BallistaError::GrpcConnectionError(text)
        | BallistaError::GrpcActionError(text)
        | BallistaError::FetchFailed(_, _, _, text) => text.clone(),
        other => other.to_string(),
    }
}
