//! Connections to a collector: to its address, or, for a collector without an address, connections that the caller
//! makes on request. Also the runtime whose threads serve connections.

use hyper_util::rt::TokioIo;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};
use tonic::transport::{Channel, Endpoint};

/// The most connections that wait to be used.
const MAX_WAITING: usize = 16;
/// The longest wait for a requested connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the endpoint of an address; `None` unless the address is `HOST:PORT`.
pub(crate) fn endpoint(address: &str) -> Option<Endpoint> {
    let (host, port) = address.rsplit_once(':')?;
    let is_address = !host.is_empty() && port.parse::<u16>().is_ok();
    Endpoint::from_shared(format!("http://{address}")).ok().filter(|_| is_address)
}

/// Starts the threads that serve connections.
pub(crate) fn runtime(name: &str, threads: usize) -> io::Result<Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads).max_blocking_threads(32).thread_name(name).enable_all().build()
}

pub(crate) type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// The end that makes the connections of a [`crate::Sender`].
#[derive(Clone)]
pub struct TransportProvider(mpsc::Sender<UnixStream>);

/// The end from which a [`crate::Sender`] takes its connections.
pub struct Transport {
    request: Box<dyn Fn() + Send + Sync>,
    connections: Mutex<mpsc::Receiver<UnixStream>>,
}

/// Creates both ends. `request` is called when a connection is needed; the provider then makes one.
pub fn transport(request: impl Fn() + Send + Sync + 'static) -> (TransportProvider, Transport) {
    let (sender, connections) = mpsc::channel(MAX_WAITING);
    (TransportProvider(sender), Transport { request: Box::new(request), connections: Mutex::new(connections) })
}

impl TransportProvider {
    /// Provides a connection whose other end a collector has ([`crate::Server::take`]). Closes the connection where it
    /// is not needed.
    ///
    /// # Errors
    /// The stream cannot be made non-blocking.
    pub fn provide(&self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        // The connection is dropped where too many wait, or the sender has ended.
        let _ = self.0.try_send(stream);
        Ok(())
    }
}

impl Transport {
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, BoxedError> {
        let mut connections = self.connections.lock().await;
        (self.request)();
        let next = tokio::time::timeout(CONNECTION_TIMEOUT, connections.recv()).await;
        let stream = next.map_err(|_| "no connection to the collector was made")?.ok_or("nobody makes connections")?;
        drop(connections);
        let mut stream = Some(tokio::net::UnixStream::from_std(stream)?);
        let connector = tower::service_fn(move |_| {
            let taken = stream.take().map(TokioIo::new).ok_or(io::ErrorKind::NotConnected);
            async move { taken.map_err(io::Error::from) }
        });
        Ok(endpoint.connect_with_connector(connector).await?)
    }
}
