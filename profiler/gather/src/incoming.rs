//! The incoming connections of a server, up to a maximum at once: further connections are closed immediately and
//! counted.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// The pause after `accept` failed.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// The byte stream of a connection.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for T {}

/// A connection, with a guard that is dropped when the connection ends.
pub(crate) struct IncomingConnection {
    stream: Box<dyn ByteStream>,
    _guard: Box<dyn Any + Send>,
}

impl IncomingConnection {
    /// Returns the connection through standard input and output, which drops `alive` when it ends.
    pub(crate) fn from_stdio(alive: oneshot::Sender<()>) -> IncomingConnection {
        let stream = Box::new(tokio::io::join(tokio::io::stdin(), tokio::io::stdout()));
        IncomingConnection { stream, _guard: Box::new(alive) }
    }
}

impl Connected for IncomingConnection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for IncomingConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for IncomingConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Admits connections to a server, up to a maximum at once.
#[derive(Clone)]
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    admitted_tx: mpsc::Sender<io::Result<IncomingConnection>>,
    turned_away: Arc<AtomicU64>,
}

impl Admission {
    /// Returns an admission of `permits` connections at once, and the stream of admitted connections.
    pub(crate) fn new(permits: usize) -> (Admission, ReceiverStream<io::Result<IncomingConnection>>) {
        // A connection in the channel has its permit already: the channel never needs more room.
        let (admitted_tx, incoming) = mpsc::channel(permits);
        let permits = Arc::new(Semaphore::new(permits));
        (Admission { permits, admitted_tx, turned_away: Arc::default() }, ReceiverStream::new(incoming))
    }

    /// Admits a connection; closes and counts it if the maximum is reached.
    pub(crate) fn admit(&self, stream: impl ByteStream) {
        let is_admitted = Arc::clone(&self.permits).try_acquire_owned().is_ok_and(|permit| {
            let connection = IncomingConnection { stream: Box::new(stream), _guard: Box::new(permit) };
            self.admitted_tx.try_send(Ok(connection)).is_ok()
        });
        self.turned_away.fetch_add(u64::from(!is_admitted), Ordering::Relaxed);
    }

    /// Admits the connections to an address until the server ends.
    pub(crate) async fn listen(self, listener: TcpListener) {
        while !self.admitted_tx.is_closed() {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Without Nagle's algorithm: clock stamps must not wait for more data.
                    let _ = stream.set_nodelay(true);
                    self.admit(stream);
                }
                // Too many open files, or a connection that broke meanwhile: later connections may succeed.
                Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
            }
        }
    }

    /// The number of connections that were closed because the maximum was reached.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }
}
