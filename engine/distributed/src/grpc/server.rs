//! The master's side.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::session::{CancelToken, Steps};
use engine::{Graph, RunOptions, Tensor, tensor_proto};
use formats::proto::{GraphDef, TensorProto};
use net::{Address, AddressError};
use parking_lot::Mutex;
use prost::Message;
use rustc_hash::FxHashMap;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tonic::{Code, Request, Response, Status};

use super::MAX_MESSAGE;
use super::wire::master_service_server::{MasterService, MasterServiceServer};
use super::wire::{
    CloseSessionRequest, CloseSessionResponse, CreateSessionRequest, CreateSessionResponse, DeviceAttributes,
    ExtendSessionRequest, ExtendSessionResponse, ListDevicesRequest, ListDevicesResponse, NamedTensorProto,
    ResetRequest, ResetResponse, RunStepRequest, RunStepResponse,
};
use crate::error::DistributedError;
use crate::master::{Master, Session};

/// Sessions that may be open at once: clients that end without closing theirs leave them.
const MAX_SESSIONS: usize = 1000;

/// Why a master does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is none, or not of this host.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// It is a socket's path.
    #[error("{0}: clients come over TCP: give HOST:PORT")]
    NoTcp(Address),
    /// It cannot be listened at.
    #[error("listening at {0}: {1}")]
    Listen(Address, #[source] std::io::Error),
}

/// A master that clients in other processes can ask, until it is dropped.
pub struct Server {
    address: SocketAddr,
    sessions: Arc<Sessions>,
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Listens at an address of this host.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(master: Master, address: &Address) -> Result<Server, ServeError> {
        let listen = |error| ServeError::Listen(address.clone(), error);
        let Some(at) = address.resolve(false)?.first().copied() else { return Err(ServeError::NoTcp(address.clone())) };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(256)
            .thread_name("master")
            .enable_all()
            .build()
            .map_err(listen)?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(at)).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let sessions = Arc::new(Sessions { master, open: Mutex::default(), next: AtomicU64::new(1) });
        let (stop, stopped) = oneshot::channel::<()>();
        let service = Service(Arc::clone(&sessions));
        runtime.spawn(async move {
            let service = MasterServiceServer::new(service)
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE);
            let router = tonic::transport::Server::builder()
                .tcp_nodelay(true)
                .initial_stream_window_size(4 << 20)
                .initial_connection_window_size(8 << 20)
                .http2_keepalive_interval(Some(Duration::from_secs(2)))
                .http2_keepalive_timeout(Some(Duration::from_secs(5)))
                .add_service(service);
            let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
            // It ends on request; connections that are open then are cut with the runtime.
            let until = async { stopped.await.unwrap_or(()) };
            let _ = router.serve_with_incoming_shutdown(incoming, until).await;
        });
        Ok(Server { address: bound, sessions, stop: Some(stop), runtime: Some(runtime) })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sessions that are open.
    pub fn n_sessions(&self) -> usize {
        self.sessions.open.lock().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}

/// The clients' sessions by handle.
struct Sessions {
    master: Master,
    open: Mutex<FxHashMap<String, Arc<Session>>>,
    next: AtomicU64,
}

struct Service(Arc<Sessions>);

/// Runs what waits for workers where it may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Status::internal(e.to_string()))?.map(Response::new)
}

fn status(error: &DistributedError) -> Status {
    Status::new(error.code(), error.to_string())
}

fn graph_def(bytes: &[u8]) -> Result<GraphDef, Status> {
    GraphDef::decode(bytes).map_err(|e| Status::invalid_argument(format!("the graph: {e}")))
}

impl Sessions {
    fn find(&self, handle: &str) -> Result<Arc<Session>, Status> {
        let found = self.open.lock().get(handle).cloned();
        // As TensorFlow says it: its clients then know that the session is over.
        found.ok_or_else(|| {
            Status::aborted(format!("session {handle} is not found: it was closed, or the master was restarted"))
        })
    }

    fn create(&self, request: &CreateSessionRequest) -> Result<CreateSessionResponse, Status> {
        let graph = Graph::new();
        graph.import(&graph_def(&request.graph_def)?, "").map_err(|e| Status::invalid_argument(e.to_string()))?;
        let session = self.master.session(&graph).map_err(|e| status(&e))?;
        let session_handle = format!("session-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let mut open = self.open.lock();
        if open.len() >= MAX_SESSIONS {
            return Err(Status::resource_exhausted(format!("{MAX_SESSIONS} sessions are open: close some")));
        }
        open.insert(session_handle.clone(), Arc::new(session));
        Ok(CreateSessionResponse { session_handle, graph_version: graph.n_nodes() as i64 })
    }

    fn extend(&self, request: &ExtendSessionRequest) -> Result<ExtendSessionResponse, Status> {
        let session = self.find(&request.session_handle)?;
        let known = usize::try_from(request.current_graph_version).ok();
        let version = session.extend(&graph_def(&request.graph_def)?, known).map_err(|e| status(&e))?;
        Ok(ExtendSessionResponse { new_graph_version: version as i64 })
    }

    fn run(&self, request: &RunStepRequest, cancel: &CancelToken) -> Result<Vec<NamedTensorProto>, Status> {
        if !request.partial_run_handle.is_empty() {
            return Err(Status::unimplemented("partial runs are not supported: run one step with all feeds"));
        }
        let session = self.find(&request.session_handle)?;
        let mut feeds = Vec::with_capacity(request.feed.len());
        for feed in &request.feed {
            let bad = |e: &dyn std::fmt::Display| Status::invalid_argument(format!("feed {}: {e}", feed.name));
            let proto = TensorProto::decode(&feed.tensor[..]).map_err(|e| bad(&e))?;
            feeds.push((feed.name.as_str(), tensor_proto::from_proto(&proto).map_err(|e| bad(&e))?));
        }
        let fetches: Vec<&str> = request.fetch.iter().map(String::as_str).collect();
        let targets: Vec<&str> = request.target.iter().map(String::as_str).collect();
        let timeout = request.options.as_ref().and_then(|options| u64::try_from(options.timeout_in_ms).ok());
        let options = RunOptions {
            timeout: timeout.filter(|ms| *ms > 0).map(Duration::from_millis),
            cancel: Some(cancel),
            ..RunOptions::default()
        };
        let values = session.run_step(&options, &feeds, &fetches, &targets).map_err(|e| status(&e))?;
        let named = |(name, value): (&String, &Tensor)| match value.dtype() {
            engine::DType::Resource | engine::DType::Variant => Err(Status::invalid_argument(format!(
                "fetch {name}: a {} value means nothing to a client",
                value.dtype()
            ))),
            _ => Ok(NamedTensorProto { name: name.clone(), tensor: tensor_proto::to_proto(value).encode_to_vec() }),
        };
        request.fetch.iter().zip(&values).map(named).collect()
    }

    fn devices(&self, request: &ListDevicesRequest) -> Result<ListDevicesResponse, Status> {
        let of = |device: &Arc<engine::device::Device>| DeviceAttributes {
            name: device.full_name().to_string(),
            device_type: device.kind().to_owned(),
            memory_limit: i64::try_from(device.memory_limit()).unwrap_or(i64::MAX),
            incarnation: device.incarnation(),
            physical_device_desc: String::new(),
        };
        let session = match request.session_handle.as_str() {
            "" => Arc::new(self.master.session(&Graph::new()).map_err(|e| status(&e))?),
            handle => self.find(handle)?,
        };
        let remote_device = session.known_devices().iter().map(of).collect();
        Ok(ListDevicesResponse { local_device: Vec::new(), remote_device })
    }
}

/// Cancels the step when the client's call is dropped: it went away, or gave up.
struct Abandoned(CancelToken);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[tonic::async_trait]
impl MasterService for Service {
    async fn create_session(
        &self,
        request: Request<CreateSessionRequest>,
    ) -> Result<Response<CreateSessionResponse>, Status> {
        let sessions = Arc::clone(&self.0);
        blocking(move || sessions.create(&request.into_inner())).await
    }

    async fn extend_session(
        &self,
        request: Request<ExtendSessionRequest>,
    ) -> Result<Response<ExtendSessionResponse>, Status> {
        let sessions = Arc::clone(&self.0);
        blocking(move || sessions.extend(&request.into_inner())).await
    }

    async fn run_step(&self, request: Request<RunStepRequest>) -> Result<Response<RunStepResponse>, Status> {
        let (sessions, cancel) = (Arc::clone(&self.0), CancelToken::new());
        let abandoned = Abandoned(cancel.clone());
        let answer = blocking(move || {
            let request = request.into_inner();
            match sessions.run(&request, &cancel) {
                Ok(tensor) => Ok(RunStepResponse { tensor, ..RunStepResponse::default() }),
                // A header, where gRPC would put it, has too little room for some messages.
                Err(status) if request.store_errors_in_response_body && status.code() != Code::Aborted => {
                    Ok(RunStepResponse {
                        tensor: Vec::new(),
                        status_code: status.code() as i32,
                        status_error_message: status.message().to_owned(),
                    })
                }
                Err(status) => Err(status),
            }
        });
        let answer = answer.await;
        drop(abandoned);
        answer
    }

    async fn close_session(
        &self,
        request: Request<CloseSessionRequest>,
    ) -> Result<Response<CloseSessionResponse>, Status> {
        let sessions = Arc::clone(&self.0);
        blocking(move || {
            let closed = sessions.open.lock().remove(&request.into_inner().session_handle);
            if let Some(session) = closed {
                session.close();
            }
            Ok(CloseSessionResponse {})
        })
        .await
    }

    async fn list_devices(
        &self,
        request: Request<ListDevicesRequest>,
    ) -> Result<Response<ListDevicesResponse>, Status> {
        let sessions = Arc::clone(&self.0);
        blocking(move || sessions.devices(&request.into_inner())).await
    }

    async fn reset(&self, request: Request<ResetRequest>) -> Result<Response<ResetResponse>, Status> {
        let sessions = Arc::clone(&self.0);
        blocking(move || {
            let asked = request.into_inner().container;
            // None named means the default one.
            let names: Vec<&str> =
                if asked.is_empty() { vec!["localhost"] } else { asked.iter().map(String::as_str).collect() };
            sessions.master.reset(&names).map_err(|e| status(&e))?;
            Ok(ResetResponse {})
        })
        .await
    }
}
