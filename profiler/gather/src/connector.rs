//! Connections that somebody else makes on request, for senders whose collector cannot be reached at an address.

use hyper_util::rt::TokioIo;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tonic::transport::{Channel, Endpoint};

/// Why a connection was not made or broke.
pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Connections that may wait to be used.
const WAITING: usize = 16;
/// How long a connection that was asked for may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Hands connections to the [`Connector`] of a [`crate::Sender`].
#[derive(Clone)]
pub struct ConnectionSupplier(mpsc::Sender<UnixStream>);

/// Where a [`crate::Sender`] takes its connections from.
pub struct Connector {
    request: Box<dyn Fn() + Send + Sync>,
    supplied: Mutex<mpsc::Receiver<UnixStream>>,
}

/// A supplier and a connector. `request` is called when a connection is needed; it has one supplied.
pub fn connector(request: impl Fn() + Send + Sync + 'static) -> (ConnectionSupplier, Connector) {
    let (supply, supplied) = mpsc::channel(WAITING);
    (ConnectionSupplier(supply), Connector { request: Box::new(request), supplied: Mutex::new(supplied) })
}

impl ConnectionSupplier {
    /// Supplies a connection whose other end a collector has ([`crate::Server::take`]). One that nobody requested is closed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn supply(&self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        // Dropped where there is no room, or no sender any more.
        let _ = self.0.try_send(stream);
        Ok(())
    }
}

impl Connector {
    /// The next connection.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, Problem> {
        let mut supplied = self.supplied.lock().await;
        (self.request)();
        let next = tokio::time::timeout(PATIENCE, supplied.recv()).await;
        let stream = next.map_err(|_| "no connection to the collector was made")?.ok_or("nobody makes connections")?;
        drop(supplied);
        let mut stream = Some(tokio::net::UnixStream::from_std(stream)?);
        let connector = tower::service_fn(move |_| {
            let taken = stream.take().map(TokioIo::new).ok_or(io::ErrorKind::NotConnected);
            async move { taken.map_err(io::Error::from) }
        });
        Ok(endpoint.connect_with_connector(connector).await?)
    }
}
