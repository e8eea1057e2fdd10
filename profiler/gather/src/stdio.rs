//! A connection through pipes: a program's standard input and output.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tonic::transport::server::Connected;

/// What is read from one pipe, and written to another.
pub(crate) struct Pipes {
    reads: Box<dyn AsyncRead + Send + Unpin>,
    writes: Box<dyn AsyncWrite + Send + Unpin>,
    /// Goes with the connection.
    _alive: Option<oneshot::Sender<()>>,
}

impl Pipes {
    /// A child's.
    pub(crate) fn of_child(input: ChildStdin, output: ChildStdout) -> Pipes {
        Pipes { reads: Box::new(output), writes: Box::new(input), _alive: None }
    }

    /// Our own; `alive` is dropped when the connection has ended.
    pub(crate) fn of_this_program(alive: oneshot::Sender<()>) -> Pipes {
        let (reads, writes) = (Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout()));
        Pipes { reads, writes, _alive: Some(alive) }
    }
}

impl Connected for Pipes {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Pipes {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reads).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipes {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writes).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writes).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writes).poll_shutdown(cx)
    }
}
