//! Serves a path to remote viewers: on an address, or through standard input and output.

use crate::folder::Folder;
use crate::incoming::{Admission, IncomingConnection};
use crate::remote::RemoteService;
use crate::transport::runtime;
use crate::wire::far_server::FarServer;
use crate::{CONNECTION_WINDOW, MAX_MESSAGE, STREAM_WINDOW};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tonic::transport::Server;
use tonic::transport::server::Router;

/// The most connections of viewers at once.
const MAX_VIEWERS: usize = 64;

/// Why a path is not served.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The path cannot be read, or has no trace, run or graph.
    #[error("{0}: {1}")]
    Path(PathBuf, #[source] io::Error),
    /// The server cannot listen at the address.
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The server's threads cannot be started.
    #[error("cannot start the server's threads: {0}")]
    Threads(#[source] io::Error),
}

/// A path that is served at an address until this is dropped.
#[must_use = "serving stops when the host is dropped"]
pub struct Host {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Host {
    /// Serves `path` at `listen`. There is no authentication: whoever reaches the address can read the path.
    ///
    /// # Errors
    /// The path has nothing to serve, or the server cannot listen at the address.
    pub fn start(path: &Path, listen: SocketAddr) -> Result<Host, HostError> {
        let router = router(path)?;
        let runtime = runtime("serve", 2).map_err(HostError::Threads)?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(listen));
        let listener = listener.map_err(|error| HostError::Listen(listen, error))?;
        let address = listener.local_addr().map_err(|error| HostError::Listen(listen, error))?;
        let (admission, incoming) = Admission::new(MAX_VIEWERS);
        runtime.spawn(admission.listen(listener));
        runtime.spawn(async move {
            // The server ends with the runtime.
            let _ = router.serve_with_incoming(incoming).await;
        });
        Ok(Host { address, _runtime: runtime })
    }

    /// The address of the server, with the port that the system chose where `listen` had port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves `path` through standard input and output, until they are closed.
///
/// # Errors
/// The path has nothing to serve, or the server's threads cannot be started.
pub fn serve_stdio(path: &Path) -> Result<(), HostError> {
    let router = router(path)?;
    let runtime = runtime("serve", 2).map_err(HostError::Threads)?;
    let (alive, ended) = oneshot::channel();
    runtime.block_on(async move {
        // `pending` keeps the server waiting after its only connection, whose end `ended` reports.
        let pipes = Ok::<_, io::Error>(IncomingConnection::from_stdio(alive));
        let incoming = tokio_stream::once(pipes).chain(tokio_stream::pending());
        tokio::spawn(router.serve_with_incoming(incoming));
        // Completes with an error when the connection drops the sender, which sends nothing.
        let _ = ended.await;
    });
    // Not joined: a read of standard input may still block.
    runtime.shutdown_background();
    Ok(())
}

fn router(path: &Path) -> Result<Router, HostError> {
    let folder = Folder::open(path).map_err(|error| HostError::Path(path.to_owned(), error))?;
    let remote = FarServer::new(RemoteService(Arc::new(folder))).max_decoding_message_size(MAX_MESSAGE);
    Ok(Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .add_service(remote))
}
