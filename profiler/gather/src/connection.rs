//! The viewer's side: a connection to a collector or to `stepscope serve`, which have traces and logdirs.

use crate::transport::{endpoint, runtime};
use crate::wire::far_client::FarClient;
use crate::wire::{ListRequest, Listing, LookRequest, ReadRequest};
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::future::Future;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Join;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use trace_store::remote::{RemoteError, Transport};

/// The longest answer that is accepted, bytes.
const MAX_ANSWER: usize = 64 << 20;
/// The longest time for an answer: the server reads large traces first, and the user may have to type a password for
/// ssh.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no connection, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The address is invalid.
    #[error("{0} is no address (HOST:PORT)")]
    Address(String),
    /// The server did not answer, or answered with an error.
    #[error("{0}: {1}")]
    Answer(String, String),
    /// The program at the other end has ended.
    #[error("{0}: {1} ended with exit code {2}")]
    Ended(String, String, i32),
    /// The threads of the connection cannot be started.
    #[error("cannot start a connection: {0}")]
    Thread(#[source] io::Error),
}

/// A connection to a collector, or to `stepscope serve`. The first request opens it, and the next request after a
/// failure opens it again. All functions block until the answer comes: call them on a loader's thread.
pub struct Connection {
    runtime: Runtime,
    client: FarClient<Channel>,
    location: String,
    /// The program at the other end, for a connection through pipes.
    program: Program,
}

/// The name and process of the program that was started last. The process is killed when another replaces it or the
/// connection is dropped.
type Program = Arc<Mutex<Option<(String, Child)>>>;

/// The longest wait for the exit code of a program whose pipe broke.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

impl Connection {
    /// Returns a connection to an address.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn to_address(address: &str) -> Result<Arc<Connection>, ViewError> {
        let endpoint = endpoint(address).ok_or_else(|| ViewError::Address(address.to_owned()))?;
        Connection::with_channel(address, Program::default(), |runtime| {
            let _guard = runtime.enter();
            with_timeouts(endpoint).tcp_nodelay(true).connect_lazy()
        })
    }

    /// Returns a connection through a program's standard input and output: `ssh host stepscope serve --stdio DIR`. The
    /// first request starts the program, and the next request after it ended starts it again.
    ///
    /// # Errors
    /// The threads of the connection cannot be started.
    pub fn to_program(location: &str, program: &[String]) -> Result<Arc<Connection>, ViewError> {
        let command: Arc<[String]> = program.into();
        let running = Program::default();
        let started = Arc::clone(&running);
        let connector = tower::service_fn(move |_| {
            let (command, started) = (Arc::clone(&command), Arc::clone(&started));
            async move { start(&command, &started).map(TokioIo::new) }
        });
        Connection::with_channel(location, running, |runtime| {
            let _guard = runtime.enter();
            // A placeholder: the connector ignores the address.
            with_timeouts(Endpoint::from_static("http://stdio")).connect_with_connector_lazy(connector)
        })
    }

    fn with_channel(
        location: &str,
        program: Program,
        channel: impl FnOnce(&Runtime) -> Channel,
    ) -> Result<Arc<Connection>, ViewError> {
        let runtime = runtime("remote", 1).map_err(ViewError::Thread)?;
        let client = FarClient::new(channel(&runtime)).max_decoding_message_size(MAX_ANSWER);
        Ok(Arc::new(Connection { runtime, client, location: location.to_owned(), program }))
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>) -> Result<T, ViewError> {
        let answer = self.runtime.block_on(answer).map(tonic::Response::into_inner);
        answer.map_err(|status| {
            // Only errors of the connection have a source; an error that the server answered has none.
            let is_broken = std::error::Error::source(&status).is_some();
            let ended = is_broken.then(|| self.exit_error()).flatten();
            ended.unwrap_or_else(|| ViewError::Answer(self.location.clone(), reason(&status)))
        })
    }

    /// Returns the exit of the program, which says more than its broken pipe; `None` where the program runs on.
    fn exit_error(&self) -> Option<ViewError> {
        let mut program = self.program.lock();
        let (name, child) = program.as_mut()?;
        let exit_status = self.runtime.block_on(async { tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await });
        let code = exit_status.ok()?.ok()?.code()?;
        Some(ViewError::Ended(self.location.clone(), name.clone(), code))
    }

    /// Lists the traces and event files that the server serves.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn list(&self) -> Result<Listing, ViewError> {
        self.wait(self.client.clone().list(ListRequest { version: crate::VERSION }))
    }

    /// Reads `length` bytes of a file, at most a mebibyte; fewer only at the file's end.
    ///
    /// # Errors
    /// There is no such file, or the server does not answer.
    pub fn read(&self, path: &str, offset: u64, length: u32) -> Result<Bytes, ViewError> {
        let request = ReadRequest { path: path.to_owned(), offset, length };
        Ok(self.wait(self.client.clone().read(request))?.data)
    }

    /// Returns the transport by which a viewer reads one of the traces.
    #[must_use]
    pub fn trace(self: &Arc<Connection>, path: &str) -> Arc<dyn Transport> {
        Arc::new(RemoteTrace { connection: Arc::clone(self), path: path.to_owned() })
    }
}

fn with_timeouts(endpoint: Endpoint) -> Endpoint {
    endpoint.connect_timeout(REQUEST_TIMEOUT).timeout(REQUEST_TIMEOUT).http2_adaptive_window(true)
}

/// Returns the innermost error of a failed request, else its message.
fn reason(status: &tonic::Status) -> String {
    let mut source: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
    let mut innermost = None;
    while let Some(error) = source {
        innermost = Some(error.to_string());
        source = error.source();
    }
    innermost.unwrap_or_else(|| status.message().to_owned())
}

/// Starts a program with pipes to its standard input and output; it inherits standard error.
fn start(command: &[String], started: &Program) -> io::Result<Join<ChildStdout, ChildStdin>> {
    let (name, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = tokio::process::Command::new(name);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
    *started.lock() = Some((name.clone(), child));
    Ok(tokio::io::join(output, input))
}

/// A trace that the server has.
struct RemoteTrace {
    connection: Arc<Connection>,
    path: String,
}

impl Transport for RemoteTrace {
    fn request(&self, request: &[u8]) -> Result<Bytes, RemoteError> {
        let request = LookRequest { trace: self.path.clone(), question: Bytes::copy_from_slice(request) };
        let reply = self.connection.wait(self.connection.client.clone().look(request));
        Ok(reply.map_err(|error| RemoteError::Connection(error.to_string()))?.answer)
    }

    fn location(&self) -> String {
        match self.path.as_str() {
            "" => self.connection.location.clone(),
            path => format!("{}/{path}", self.connection.location),
        }
    }
}
