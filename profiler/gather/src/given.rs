//! Connections that somebody else makes, one after the other as they are asked for: for senders whose collector cannot be reached at an
//! address.

use crate::sender::Problem;
use hyper_util::rt::TokioIo;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tonic::transport::{Channel, Endpoint};

/// Connections that may wait to be used.
const WAITING: usize = 16;
/// How long a connection that was asked for may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Gives a [`crate::Sender`] connections.
#[derive(Clone)]
pub struct Giver(mpsc::Sender<UnixStream>);

/// What a [`crate::Sender`] takes its connections from.
pub struct Given {
    ask: Box<dyn Fn() + Send + Sync>,
    came: Mutex<mpsc::Receiver<UnixStream>>,
}

/// Both ends. `ask` is called when a connection is wanted; whoever hears it gives one.
pub fn given(ask: impl Fn() + Send + Sync + 'static) -> (Giver, Given) {
    let (give, came) = mpsc::channel(WAITING);
    (Giver(give), Given { ask: Box::new(ask), came: Mutex::new(came) })
}

impl Giver {
    /// A connection whose other end a collector has ([`crate::Server::take`]). One that nobody wants is closed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn give(&self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        // Dropped where there is no room, or no sender any more.
        let _ = self.0.try_send(stream);
        Ok(())
    }
}

impl Given {
    /// The next one.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, Problem> {
        let mut came = self.came.lock().await;
        (self.ask)();
        let next = tokio::time::timeout(PATIENCE, came.recv()).await;
        let stream = next.map_err(|_| "no connection to the collector was made")?.ok_or("nobody makes connections")?;
        drop(came);
        let mut stream = Some(tokio::net::UnixStream::from_std(stream)?);
        let connector = tower::service_fn(move |_| {
            let taken = stream.take().map(TokioIo::new).ok_or(io::ErrorKind::NotConnected);
            async move { taken.map_err(io::Error::from) }
        });
        Ok(endpoint.connect_with_connector(connector).await?)
    }
}
