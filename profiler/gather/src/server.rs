//! The collector: listens, stores the traces that senders send, and serves them to remote viewers.

use crate::error::ServeError;
use crate::hub::{Hub, ServerReport};
use crate::incoming::Admission;
use crate::receive::Receiver;
use crate::remote::{GatheredTrace, RemoteService, follow};
use crate::transport::runtime;
use crate::wire::far_server::FarServer;
use crate::wire::gather_server::GatherServer;
use crate::{CONNECTION_WINDOW, MAX_MESSAGE, STREAM_WINDOW};
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use trace_store::{Store, StoreOptions};

/// The options of a collector.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Whether files are synced before their bytes are acknowledged, so that acknowledged events survive the machine's
    /// stop too.
    pub sync: bool,
    /// The most connections at once; a sender has two, a viewer one.
    pub max_connections: usize,
    /// The limits of the store for remote viewers.
    pub store_limits: StoreOptions,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let store_limits = StoreOptions { slices_per_lane: 1 << 20, events_per_kind: 1 << 18, steps: 1 << 18 };
        ServerOptions { sync: true, max_connections: 1024, store_limits }
    }
}

/// A running collector. Dropping it stops it.
#[must_use = "gathering stops when the server is dropped"]
pub struct Server {
    address: Option<SocketAddr>,
    hub: Arc<Hub>,
    admission: Admission,
    stopping: Arc<AtomicBool>,
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
    follow_thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts gathering into a folder, which is created if missing; a gathered folder is continued.
    ///
    /// There is no authentication: whoever reaches `listen` can add and read traces. Unless the network is trusted,
    /// listen on the loopback address, and let others connect through ssh.
    ///
    /// # Errors
    /// The folder has other files or is in use, or the collector cannot listen at the address.
    pub fn start(dir: &Path, listen: SocketAddr, options: &ServerOptions) -> Result<Server, ServeError> {
        let hub = Arc::new(Hub::open(dir, options.sync)?);
        let runtime = runtime("gather", 2).map_err(ServeError::Threads)?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(listen));
        let listener = listener.map_err(|e| ServeError::Listen(listen, e))?;
        let address = Some(listener.local_addr().map_err(|e| ServeError::Listen(listen, e))?);
        let store = Arc::new(parking_lot::RwLock::new(Store::with_options(options.store_limits)));
        let stopping = Arc::new(AtomicBool::new(false));
        let follow_thread = std::thread::Builder::new().name("follow".to_owned()).spawn({
            let (hub, store, stopping) = (Arc::clone(&hub), Arc::clone(&store), Arc::clone(&stopping));
            move || follow(&hub, &store, &stopping)
        });
        let follow_thread = Some(follow_thread.map_err(ServeError::Threads)?);
        let remote = FarServer::new(RemoteService(Arc::new(GatheredTrace(trace_store::remote::Server::new(store)))));
        let remote = remote.max_decoding_message_size(MAX_MESSAGE);
        let (admission, stop) = serve(&runtime, &hub, options.max_connections, Some(remote));
        runtime.spawn(admission.clone().listen(listener));
        Ok(Server { address, hub, admission, stopping, stop: Some(stop), runtime: Some(runtime), follow_thread })
    }

    /// Starts gathering into a folder that this machine's processes record into: the traces of other machines are
    /// stored within it, and are read with it as one trace. The server listens nowhere: the caller passes its
    /// connections to [`Server::take`].
    ///
    /// # Errors
    /// The folder is in use, or cannot be written.
    pub fn start_within(trace_dir: &Path, options: &ServerOptions) -> Result<Server, ServeError> {
        let hub = Arc::new(Hub::open_within(trace_dir, options.sync)?);
        let runtime = runtime("gather", 2).map_err(ServeError::Threads)?;
        let (admission, stop) = serve(&runtime, &hub, options.max_connections, None);
        let (stop, runtime, stopping) = (Some(stop), Some(runtime), Arc::default());
        Ok(Server { address: None, hub, admission, stopping, stop, runtime, follow_thread: None })
    }

    /// Takes one end of a connection that the caller made ([`crate::TransportProvider::provide`] takes the other). Closes the
    /// connection where too many are open.
    ///
    /// # Errors
    /// The stream cannot be made non-blocking or registered with the runtime.
    pub fn take(&self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let _guard = self.runtime.as_ref().map(Runtime::enter);
        self.admission.admit(tokio::net::UnixStream::from_std(stream)?);
        Ok(())
    }

    /// The address of the server, with the port that the system chose where `listen` had port 0; `0.0.0.0:0` where the
    /// server does not listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// The server's counts so far.
    #[must_use]
    pub fn progress(&self) -> ServerReport {
        let (folders, turned_away) = (self.hub.n_folders(), self.admission.turned_away());
        ServerReport { folders, turned_away, ..*self.hub.report.lock() }
    }

    /// Stops the server. Connected senders retain the bytes that are not acknowledged, and wait for the next collector.
    pub fn stop(mut self) -> ServerReport {
        self.stop_once();
        self.progress()
    }

    fn stop_once(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(stop) = self.stop.take() {
            // Fails where the server has ended by itself.
            let _ = stop.send(());
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
            self.hub.report.lock().open = 0;
        }
        if let Some(follow_thread) = self.follow_thread.take() {
            // A panic there has been reported by its hook; the gathered folder is as it was.
            let _ = follow_thread.join();
        }
    }
}

/// Serves the connections that the returned admission admits, until the returned sender is used or dropped.
fn serve(
    runtime: &Runtime,
    hub: &Arc<Hub>,
    max_connections: usize,
    remote: Option<FarServer<RemoteService>>,
) -> (Admission, oneshot::Sender<()>) {
    let (admission, incoming) = Admission::new(max_connections);
    let (stop, stopped) = oneshot::channel::<()>();
    let service = Arc::clone(hub);
    runtime.spawn(async move {
        let router = tonic::transport::Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(16)
            .http2_keepalive_interval(Some(Duration::from_secs(2)))
            .http2_keepalive_timeout(Some(Duration::from_secs(5)))
            .add_service(GatherServer::new(Receiver(service)).max_decoding_message_size(MAX_MESSAGE))
            .add_optional_service(remote);
        // The server ends when it is stopped; the runtime's shutdown ends connections that are open then.
        let until = async { stopped.await.unwrap_or(()) };
        let _ = router.serve_with_incoming_shutdown(incoming, until).await;
    });
    (admission, stop)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_once();
    }
}
