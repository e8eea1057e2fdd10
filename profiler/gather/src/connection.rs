//! The viewer's side: a connection to who has traces and logdirs.

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

/// The longest answer that is taken.
const MAX_ANSWER: usize = 64 << 20;
/// How long an answer may take: large traces are read there first, and somebody may have to type a password.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no connection, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The address is invalid.
    #[error("{0} is no address (HOST:PORT)")]
    Address(String),
    /// There was no answer.
    #[error("{0}: {1}")]
    Answer(String, String),
    /// The program that was to answer has ended.
    #[error("{0}: {1} ended with exit code {2}")]
    Ended(String, String, i32),
    /// The system gives no threads.
    #[error("cannot start a connection: {0}")]
    Thread(#[source] io::Error),
}

/// A connection to a collector, or to `stepscope serve`. It is made with the first question, and again when it broke. Its functions wait
/// for the answer: keep it in a loader's thread.
pub struct Connection {
    runtime: Runtime,
    client: FarClient<Channel>,
    place: String,
    /// The program at the other end of pipes, if it is one.
    program: Program,
}

/// The program that was started last, by its name. It is killed when another takes its place, or the connection goes.
type Program = Arc<Mutex<Option<(String, Child)>>>;

/// How long a program may take to end once it says nothing more: its exit code says why.
const TO_END: Duration = Duration::from_secs(2);

impl Connection {
    /// To who listens at an address.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn to_address(address: &str) -> Result<Arc<Connection>, ViewError> {
        let endpoint = endpoint(address).ok_or_else(|| ViewError::Address(address.to_owned()))?;
        Connection::made(address, Program::default(), |runtime| {
            let _inside = runtime.enter();
            patient(endpoint).tcp_nodelay(true).connect_lazy()
        })
    }

    /// To what a program says on its standard output to what it reads on its standard input: `ssh host stepscope serve --stdio DIR`. It
    /// is started with the first question, and again when it has ended.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn to_program(place: &str, program: &[String]) -> Result<Arc<Connection>, ViewError> {
        let command: Arc<[String]> = program.into();
        let running = Program::default();
        let started = Arc::clone(&running);
        let connector = tower::service_fn(move |_| {
            let (command, started) = (Arc::clone(&command), Arc::clone(&started));
            async move { start(&command, &started).map(TokioIo::new) }
        });
        Connection::made(place, running, |runtime| {
            let _inside = runtime.enter();
            // The name is nobody's: the connector does not look at it.
            patient(Endpoint::from_static("http://stdio")).connect_with_connector_lazy(connector)
        })
    }

    fn made(
        place: &str,
        program: Program,
        channel: impl FnOnce(&Runtime) -> Channel,
    ) -> Result<Arc<Connection>, ViewError> {
        let runtime = runtime("remote", 1).map_err(ViewError::Thread)?;
        let client = FarClient::new(channel(&runtime)).max_decoding_message_size(MAX_ANSWER);
        Ok(Arc::new(Connection { runtime, client, place: place.to_owned(), program }))
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>) -> Result<T, ViewError> {
        let answer = self.runtime.block_on(answer).map(tonic::Response::into_inner);
        answer.map_err(|status| {
            // What the other side answers has no source: then it is there.
            let is_broken = std::error::Error::source(&status).is_some();
            let ended = is_broken.then(|| self.ended()).flatten();
            ended.unwrap_or_else(|| ViewError::Answer(self.place.clone(), reason(&status)))
        })
    }

    /// That the program has ended, which says more than its broken pipe.
    fn ended(&self) -> Option<ViewError> {
        let mut program = self.program.lock();
        let (name, child) = program.as_mut()?;
        let ending = self.runtime.block_on(async { tokio::time::timeout(TO_END, child.wait()).await });
        let code = ending.ok()?.ok()?.code()?;
        Some(ViewError::Ended(self.place.clone(), name.clone(), code))
    }

    /// The traces and event files to look at.
    ///
    /// # Errors
    /// Nobody answers there.
    pub fn list(&self) -> Result<Listing, ViewError> {
        self.wait(self.client.clone().list(ListRequest { version: crate::VERSION }))
    }

    /// Up to a mebibyte of a file; less only at its end.
    ///
    /// # Errors
    /// There is no such file, or nobody answers.
    pub fn read(&self, path: &str, offset: u64, length: u32) -> Result<Bytes, ViewError> {
        let request = ReadRequest { path: path.to_owned(), offset, length };
        Ok(self.wait(self.client.clone().read(request))?.data)
    }

    /// One of the traces, to be viewed.
    #[must_use]
    pub fn trace(self: &Arc<Connection>, path: &str) -> Arc<dyn Transport> {
        Arc::new(RemoteTrace { connection: Arc::clone(self), path: path.to_owned() })
    }
}

fn patient(endpoint: Endpoint) -> Endpoint {
    endpoint.connect_timeout(PATIENCE).timeout(PATIENCE).http2_adaptive_window(true)
}

/// Why there is no answer: the innermost reason, which says what happened.
fn reason(status: &tonic::Status) -> String {
    let mut source: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
    let mut innermost = None;
    while let Some(error) = source {
        innermost = Some(error.to_string());
        source = error.source();
    }
    innermost.unwrap_or_else(|| status.message().to_owned())
}

/// Starts a program; what it says on its standard error goes to ours.
fn start(command: &[String], started: &Program) -> io::Result<Join<ChildStdout, ChildStdin>> {
    let (name, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = tokio::process::Command::new(name);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
    *started.lock() = Some((name.clone(), child));
    Ok(tokio::io::join(output, input))
}

/// A trace on the other side of a connection.
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
            "" => self.connection.place.clone(),
            path => format!("{}/{path}", self.connection.place),
        }
    }
}
