//! The client's side: a session whose master is another process.

use std::time::Duration;

use engine::session::Steps;
use engine::{RunOptions, Tensor, tensor_proto};
use formats::proto::{GraphDef, TensorProto};
use prost::Message;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use super::MAX_MESSAGE;
use super::wire::master_service_client::MasterServiceClient;
use super::wire::{
    self, CloseSessionRequest, CreateSessionRequest, ExtendSessionRequest, ListDevicesRequest, NamedTensorProto,
    ResetRequest, RunStepRequest,
};
use crate::error::DistributedError;

/// How long connecting may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a token is looked at.
const TOKEN_PERIOD: Duration = Duration::from_millis(10);

/// A session of a master in another process: what [`crate::Session`] is in the master's own. It may be used from several threads at
/// once.
pub struct ClientSession {
    runtime: Runtime,
    client: MasterServiceClient<Channel>,
    handle: String,
    place: String,
}

impl ClientSession {
    /// Opens a session on a graph with the master at `address` (`HOST:PORT`).
    ///
    /// # Errors
    /// Nobody answers there, the master cannot reach its workers, or the graph does not fit.
    pub fn connect(address: &str, graph: &GraphDef) -> Result<ClientSession, DistributedError> {
        let failed = |code, message: String| DistributedError::Master { code, message };
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).thread_name("client").enable_all();
        let runtime = runtime.build().map_err(|e| failed(Code::Internal, format!("starting a client: {e}")))?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|_| failed(Code::InvalidArgument, format!("{address} is no address (HOST:PORT)")))?;
        let endpoint = endpoint
            .connect_timeout(PATIENCE)
            .tcp_nodelay(true)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .http2_keep_alive_interval(Duration::from_secs(1))
            .keep_alive_timeout(Duration::from_secs(2));
        let channel = runtime
            .block_on(endpoint.connect())
            .map_err(|e| failed(Code::Unavailable, format!("no master at {address}: {}", innermost(&e))))?;
        let client = MasterServiceClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        let mut session = ClientSession { runtime, client, handle: String::new(), place: address.to_owned() };
        let request = CreateSessionRequest { graph_def: graph.encode_to_vec() };
        let created = session.runtime.block_on(session.client.clone().create_session(request));
        session.handle = session.reply(created)?.session_handle;
        Ok(session)
    }

    /// Adds nodes to the session's graph; gives its new version, the number of its nodes. `expected_version` is the one that the
    /// caller knows.
    ///
    /// # Errors
    /// Another version, or a node that does not fit.
    pub fn extend(&self, def: &GraphDef, expected_version: usize) -> Result<usize, DistributedError> {
        let request = ExtendSessionRequest {
            session_handle: self.handle.clone(),
            graph_def: def.encode_to_vec(),
            current_graph_version: expected_version as i64,
        };
        let extended = self.reply(self.runtime.block_on(self.client.clone().extend_session(request)))?;
        Ok(usize::try_from(extended.new_graph_version).unwrap_or(0))
    }

    /// The full names of the devices.
    ///
    /// # Errors
    /// The master does not answer.
    pub fn devices(&self) -> Result<Vec<String>, DistributedError> {
        let request = ListDevicesRequest { session_handle: self.handle.clone() };
        let listed = self.reply(self.runtime.block_on(self.client.clone().list_devices(request)))?;
        Ok(listed.local_device.into_iter().chain(listed.remote_device).map(|device| device.name).collect())
    }

    /// Drops the variables of containers (none named: of the default one) on all tasks.
    ///
    /// # Errors
    /// A worker cannot be reached.
    pub fn reset(&self, containers: &[&str]) -> Result<(), DistributedError> {
        let request = ResetRequest { container: containers.iter().map(|name| (*name).to_owned()).collect() };
        self.reply(self.runtime.block_on(self.client.clone().reset(request))).map(drop)
    }

    /// Closes the session. Variables stay in their containers.
    ///
    /// # Errors
    /// The master does not answer.
    pub fn close(self) -> Result<(), DistributedError> {
        let request = CloseSessionRequest { session_handle: self.handle.clone() };
        self.reply(self.runtime.block_on(self.client.clone().close_session(request))).map(drop)
    }

    fn reply<T>(&self, answer: Result<Response<T>, Status>) -> Result<T, DistributedError> {
        answer.map(Response::into_inner).map_err(|status| {
            let (code, said) = (status.code(), status.message());
            let message = if code == Code::Unavailable {
                format!("the master at {}: {said}", self.place)
            } else {
                said.to_owned()
            };
            DistributedError::Master { code, message }
        })
    }
}

impl Steps for ClientSession {
    type Error = DistributedError;

    /// Of the options, timeout and cancellation go along.
    fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>, DistributedError> {
        let named = |(name, value): &(&str, Tensor)| NamedTensorProto {
            name: (*name).to_owned(),
            tensor: tensor_proto::to_proto(value).encode_to_vec(),
        };
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let timeout = options.timeout.map(|timeout| wire::RunOptions {
            timeout_in_ms: i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX).max(1),
        });
        let request = RunStepRequest {
            session_handle: self.handle.clone(),
            feed: feeds.iter().map(named).collect(),
            fetch: texts(fetches),
            target: texts(targets),
            options: timeout,
            store_errors_in_response_body: true,
            ..RunStepRequest::default()
        };
        let mut client = self.client.clone();
        let answered = self.runtime.block_on(async {
            let step = client.run_step(request);
            let Some(token) = options.cancel else { return Some(step.await) };
            tokio::pin!(step);
            loop {
                // A call that is dropped is cancelled at the master.
                match tokio::time::timeout(TOKEN_PERIOD, &mut step).await {
                    Ok(answered) => return Some(answered),
                    Err(_) if token.is_cancelled() => return None,
                    Err(_) => {}
                }
            }
        });
        let Some(answered) = answered else { return Err(DistributedError::Cancelled) };
        let response = self.reply(answered)?;
        if response.status_code != 0 {
            let (code, message) = (Code::from_i32(response.status_code), response.status_error_message);
            return Err(DistributedError::Master { code, message });
        }
        let value = |name: &&str| {
            let bad = |what: String| DistributedError::Invalid(format!("fetch {name}: {what}"));
            let found = response.tensor.iter().find(|tensor| tensor.name == **name);
            let found = found.ok_or_else(|| bad("the master gave no value".into()))?;
            let proto = TensorProto::decode(&found.tensor[..]).map_err(|e| bad(e.to_string()))?;
            tensor_proto::from_proto(&proto).map_err(|e| bad(e.to_string()))
        };
        fetches.iter().map(value).collect()
    }
}

/// The cause that says most.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
