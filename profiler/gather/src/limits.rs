//! Connections that a collector takes at once: further ones are closed at their door and counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::Connected;

/// A connection that gives its place back when it ends.
pub(crate) struct Limited {
    stream: TcpStream,
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

/// The connections that come, as many at once as there are places.
pub(crate) struct Incoming {
    listener: TcpListener,
    places: Arc<Semaphore>,
    turned_away: Arc<AtomicU64>,
}

impl Incoming {
    pub(crate) fn new(listener: TcpListener, places: usize, turned_away: Arc<AtomicU64>) -> Incoming {
        Incoming { listener, places: Arc::new(Semaphore::new(places)), turned_away }
    }
}

impl tokio_stream::Stream for Incoming {
    type Item = io::Result<Limited>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let stream = match self.listener.poll_accept(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((stream, _))) => stream,
                Poll::Ready(Err(e)) => return Poll::Ready(Some(Err(e))),
            };
            match Arc::clone(&self.places).try_acquire_owned() {
                Ok(place) => {
                    // Stamps must not wait for more to send.
                    let _ = stream.set_nodelay(true);
                    return Poll::Ready(Some(Ok(Limited { stream, _place: place })));
                }
                Err(_) => {
                    self.turned_away.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}
