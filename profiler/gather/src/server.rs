//! The collector as a whole: listens, keeps what comes, follows it for remote viewers, and ends.

use crate::MAX_MESSAGE;
use crate::hub::{Hub, HubError};
use crate::limits::Incoming;
use crate::receive::Receiver;
use crate::remote::{Gathered, RemoteService, follow};
use crate::wire::far_server::FarServer;
use crate::wire::gather_server::GatherServer;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use trace_store::{Store, StoreOptions};

/// Connections that were given and wait to be served.
const GIVEN: usize = 64;

/// How to gather.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Sync files before what is in them is acknowledged: acknowledged events then survive the machine's stop too, not only the
    /// collector's.
    pub sync: bool,
    /// Connections at once; a sender has two, a viewer one.
    pub max_connections: usize,
    /// The limits of the store for remote viewers.
    pub keep: StoreOptions,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let keep = StoreOptions { slices_per_lane: 1 << 20, events_per_kind: 1 << 18, steps: 1 << 18 };
        ServerOptions { sync: true, max_connections: 1024, keep }
    }
}

/// A collector's counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Trace folders that are here.
    pub folders: u64,
    /// Senders that are connected now.
    pub open: u64,
    /// Connections of senders, ever.
    pub connections: u64,
    /// Bytes of traces that came.
    pub bytes: u64,
    /// Bytes that came again and were known by their position.
    pub repeated: u64,
    /// Connections that were ended because they did not keep to the protocol, or could not be written down.
    pub refused: u64,
    /// Connections for which there was no place.
    pub turned_away: u64,
    /// Exchanges of stamps with other machines' clocks.
    pub exchanges: u64,
    /// Writes that failed; their senders try again.
    pub failed_writes: u64,
}

/// Why a collector did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The folder holds something else.
    #[error("{0} holds something else than a gathered trace: choose an empty or new folder")]
    NotEmpty(PathBuf),
    /// Another collector writes there.
    #[error("another collector gathers into {0}")]
    InUse(PathBuf),
    /// The folder's times are of a clock that has ended.
    #[error("{0} was gathered before this machine was started again, on another clock: choose a new folder")]
    OtherClock(PathBuf),
    /// The folder cannot be written.
    #[error("cannot gather into {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// The address cannot be listened at.
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The system gives no threads.
    #[error("cannot start the collector's threads: {0}")]
    Threads(#[source] io::Error),
}

/// A running collector. Dropping it stops it.
#[must_use = "gathering stops when the server is dropped"]
pub struct Server {
    address: Option<SocketAddr>,
    hub: Arc<Hub>,
    turned_away: Arc<AtomicU64>,
    /// To connections that others make.
    given: Option<mpsc::Sender<UnixStream>>,
    stopping: Arc<AtomicBool>,
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
    following: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts gathering into a folder, which is made if missing; one that was gathered into before is continued.
    ///
    /// There is no authentication: who reaches `listen` can add traces and look at them. Listen on the loopback address, and let others
    /// come through ssh, unless the network is trusted.
    ///
    /// # Errors
    /// The folder holds something else or is in use, or the address cannot be listened at.
    pub fn start(dir: &Path, listen: SocketAddr, options: &ServerOptions) -> Result<Server, ServeError> {
        let hub = Arc::new(Hub::open(dir, options.sync).map_err(|e| refused(dir, e))?);
        let runtime = runtime()?;
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind(listen)).map_err(|e| ServeError::Listen(listen, e))?;
        let address = listener.local_addr().map_err(|e| ServeError::Listen(listen, e))?;
        let turned_away = Arc::new(AtomicU64::new(0));
        let incoming = Incoming::new(listener, options.max_connections, Arc::clone(&turned_away));
        let store = Arc::new(parking_lot::RwLock::new(Store::with_options(options.keep)));
        let stopping = Arc::new(AtomicBool::new(false));
        let following = std::thread::Builder::new().name("follow".to_owned()).spawn({
            let (hub, store, stopping) = (Arc::clone(&hub), Arc::clone(&store), Arc::clone(&stopping));
            move || follow(&hub, &store, &stopping)
        });
        let following = Some(following.map_err(ServeError::Threads)?);
        let remote = FarServer::new(RemoteService(Arc::new(Gathered(trace_store::remote::Server::new(store)))));
        let stop = serve(&runtime, &hub, incoming, Some(remote.max_decoding_message_size(MAX_MESSAGE)));
        let (stop, runtime, given) = (Some(stop), Some(runtime), None);
        Ok(Server { address: Some(address), hub, turned_away, given, stopping, stop, runtime, following })
    }

    /// Starts gathering into a folder that this machine's processes record into themselves: the others' traces come to lie within it, and
    /// whoever reads it reads all as one. It listens nowhere: connections are given ([`Server::take`]).
    ///
    /// # Errors
    /// The folder is in use, or cannot be written.
    pub fn start_within(trace_dir: &Path, options: &ServerOptions) -> Result<Server, ServeError> {
        let hub = Arc::new(Hub::within(trace_dir, options.sync).map_err(|e| refused(trace_dir, e))?);
        let runtime = runtime()?;
        let turned_away = Arc::new(AtomicU64::new(0));
        let (give, given) = mpsc::channel(GIVEN);
        let stop =
            serve(&runtime, &hub, Incoming::given(given, options.max_connections, Arc::clone(&turned_away)), None);
        let (stop, runtime, given) = (Some(stop), Some(runtime), Some(give));
        let stopping = Arc::new(AtomicBool::new(false));
        Ok(Server { address: None, hub, turned_away, given, stopping, stop, runtime, following: None })
    }

    /// Takes a connection that somebody else made ([`crate::transport()`] has its other end). One for which there is no place is closed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn take(&self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        if self.given.as_ref().is_none_or(|given| given.try_send(stream).is_err()) {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Its address, with the port where `listen` had 0; `0.0.0.0:0` where it listens nowhere.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Its counts so far.
    #[must_use]
    pub fn progress(&self) -> ServerReport {
        let counts = &self.hub.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ServerReport {
            folders: self.hub.n_folders(),
            open: read(&counts.open),
            connections: read(&counts.connections),
            bytes: read(&counts.bytes),
            repeated: read(&counts.repeated),
            refused: read(&counts.refused),
            turned_away: read(&self.turned_away),
            exchanges: read(&counts.exchanges),
            failed_writes: read(&counts.failed_writes),
        }
    }

    /// Ends it. Senders that are connected keep what is not acknowledged, and wait for the next collector.
    pub fn stop(mut self) -> ServerReport {
        self.end();
        self.progress()
    }

    fn end(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
            self.hub.counts.open.store(0, Ordering::Relaxed);
        }
        if let Some(following) = self.following.take() {
            // A panic there has been reported by its hook; the gathered folder is as it was.
            let _ = following.join();
        }
    }
}

/// Why a folder cannot be gathered into.
fn refused(dir: &Path, error: HubError) -> ServeError {
    let here = dir.to_owned();
    match error {
        HubError::NotEmpty => ServeError::NotEmpty(here),
        HubError::InUse => ServeError::InUse(here),
        HubError::OtherClock => ServeError::OtherClock(here),
        HubError::Io(error) => ServeError::Folder(here, error),
    }
}

fn runtime() -> Result<Runtime, ServeError> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).max_blocking_threads(32).thread_name("gather").enable_all();
    runtime.build().map_err(ServeError::Threads)
}

/// Serves what comes, until what this gives is used or dropped.
fn serve(
    runtime: &Runtime,
    hub: &Arc<Hub>,
    incoming: Incoming,
    remote: Option<FarServer<RemoteService>>,
) -> oneshot::Sender<()> {
    let (stop, stopped) = oneshot::channel::<()>();
    let service = Arc::clone(hub);
    runtime.spawn(async move {
        let router = tonic::transport::Server::builder()
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(2 << 20)
            .max_concurrent_streams(16)
            .http2_keepalive_interval(Some(Duration::from_secs(2)))
            .http2_keepalive_timeout(Some(Duration::from_secs(5)))
            .add_service(GatherServer::new(Receiver(service)).max_decoding_message_size(MAX_MESSAGE))
            .add_optional_service(remote);
        // It ends when it is stopped; connections that are open then are cut with the runtime.
        let until = async { stopped.await.unwrap_or(()) };
        let _ = router.serve_with_incoming_shutdown(incoming, until).await;
    });
    stop
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
