//! Connections that a collector takes at once: further ones are closed at their door and counted.

use std::io;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::transport::server::Connected;

/// The transport of a connection.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A connection that gives its place back when it ends.
pub(crate) struct Limited {
    stream: Box<dyn Wire>,
    _place: OwnedSemaphorePermit,
}

impl Connected for Limited {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Limited {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Limited {
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

/// The source of connections.
enum Door {
    Listener(TcpListener),
    /// Somebody else makes them.
    Given(mpsc::Receiver<UnixStream>),
}

/// The connections that come, as many at once as there are places.
pub(crate) struct Incoming {
    door: Door,
    places: Arc<Semaphore>,
    turned_away: Arc<AtomicU64>,
}

impl Incoming {
    pub(crate) fn new(listener: TcpListener, places: usize, turned_away: Arc<AtomicU64>) -> Incoming {
        Incoming { door: Door::Listener(listener), places: Arc::new(Semaphore::new(places)), turned_away }
    }

    pub(crate) fn given(streams: mpsc::Receiver<UnixStream>, places: usize, turned_away: Arc<AtomicU64>) -> Incoming {
        Incoming { door: Door::Given(streams), places: Arc::new(Semaphore::new(places)), turned_away }
    }
}

impl Door {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Box<dyn Wire>>>> {
        Poll::Ready(match self {
            Door::Listener(listener) => Some(ready!(listener.poll_accept(cx)).map(|(stream, _)| {
                // Stamps must not wait for more to send.
                let _ = stream.set_nodelay(true);
                Box::new(stream) as Box<dyn Wire>
            })),
            Door::Given(streams) => ready!(streams.poll_recv(cx))
                .map(|stream| Ok(Box::new(tokio::net::UnixStream::from_std(stream)?) as Box<dyn Wire>)),
        })
    }
}

impl tokio_stream::Stream for Incoming {
    type Item = io::Result<Limited>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let stream = match ready!(self.door.poll_next(cx)) {
                Some(Ok(stream)) => stream,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            match Arc::clone(&self.places).try_acquire_owned() {
                Ok(place) => return Poll::Ready(Some(Ok(Limited { stream, _place: place }))),
                Err(_) => {
                    self.turned_away.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}
